//! What came of one scenario on one machine, as it is kept beside what was brought back.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use sexton_lab::checks::Check;

/// The file in the folder of a run.
const FILE: &str = "outcome.json";

pub(super) struct Card {
    pub(super) scenario: String,
    pub(super) place: String,
    /// Of the binary, the scenario and all that plays it: the same key, the same run.
    pub(super) key: String,
    /// The kernel that ran, as it calls itself.
    pub(super) release: String,
    /// When it was played, in seconds since 1970.
    pub(super) at: u64,
    /// From the start of `sexton diagnose` to its answer.
    pub(super) seconds: Option<f64>,
    /// Why it was not played to its end.
    pub(super) failed: Option<String>,
    /// Questions, each with what is wrong.
    pub(super) checks: Vec<(String, Option<String>)>,
}

impl Card {
    pub(super) fn is_good(&self) -> bool {
        self.checks.iter().all(|(_, why)| why.is_none())
    }

    pub(super) fn add(&mut self, checks: Vec<Check>) {
        let checks = checks.into_iter();
        self.checks
            .extend(checks.map(|check| (check.what.to_owned(), check.why)));
    }

    /// Each question in a line.
    pub(super) fn show(&self) {
        for (what, why) in &self.checks {
            match why {
                None => println!("lab {} {}: {what} ... ok", self.scenario, self.place),
                Some(why) => println!(
                    "lab {} {}: {what} ... FAILED: {why}",
                    self.scenario, self.place
                ),
            }
        }
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|(what, why)| json!({"what": what, "why": why}))
            .collect();
        let text = json!({
            "scenario": self.scenario,
            "place": self.place,
            "key": self.key,
            "release": self.release,
            "at": self.at,
            "seconds": self.seconds,
            "failed": self.failed,
            "checks": checks,
        });
        let path = folder.join(FILE);
        fs::write(&path, format!("{text:#}\n"))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// The one of an earlier run, if there is any.
    pub(super) fn read(folder: &Path) -> Option<Card> {
        let text = fs::read_to_string(folder.join(FILE)).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let word = |key: &str| value[key].as_str().map(str::to_owned);
        let check = |check: &Value| {
            let why = check["why"].as_str().map(str::to_owned);
            Some((check["what"].as_str()?.to_owned(), why))
        };
        Some(Card {
            scenario: word("scenario")?,
            place: word("place")?,
            key: word("key")?,
            release: word("release")?,
            at: value["at"].as_u64()?,
            seconds: value["seconds"].as_f64(),
            failed: word("failed"),
            checks: value["checks"]
                .as_array()?
                .iter()
                .filter_map(check)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let folder = std::env::temp_dir().join(format!("sexton-card-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let card = Card {
            scenario: "timer".into(),
            place: "6.1-v2".into(),
            key: "0a".into(),
            release: "6.1.0".into(),
            at: 7,
            seconds: Some(22.5),
            failed: None,
            checks: vec![("root".into(), None), ("chain".into(), Some("none".into()))],
        };
        card.write(&folder).expect("written");
        let again = Card::read(&folder).expect("read");
        assert_eq!(again.checks, card.checks);
        assert_eq!((again.at, again.seconds), (7, Some(22.5)));
        assert!(!again.is_good());
        fs::remove_dir_all(&folder).expect("removed");
    }
}
