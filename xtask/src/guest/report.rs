//! Reads what the job wrote to the guest's second serial port.
//!
//! ```text
//! sexton-guest: begin NAME
//! …what the command printed…
//! sexton-guest: end NAME EXIT-CODE
//! sexton-guest: done
//! ```
//!
//! Standard output is the section `NAME`; what went to standard error, if anything did,
//! is the section `NAME.err`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

const MARK: &str = "sexton-guest: ";

/// What one command of the job printed, and how it ended.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub(super) text: String,
    pub(super) exit_code: i32,
}

#[derive(PartialEq, Eq, Debug)]
pub(super) struct Report(BTreeMap<String, Section>);

impl Report {
    /// Fails unless the job reached its end.
    pub(super) fn parse(text: &str) -> Result<Report> {
        let mut sections = BTreeMap::new();
        let mut body = String::new();
        let mut is_done = false;
        for line in text.lines() {
            let line = line.trim_end_matches('\r');
            let mut words = line.strip_prefix(MARK).unwrap_or_default().split(' ');
            match (words.next(), words.next(), words.next()) {
                (Some("begin"), Some(_), None) => body.clear(),
                (Some("end"), Some(name), Some(code)) => {
                    let exit_code = code
                        .parse()
                        .with_context(|| format!("section {name} ended with {code:?}"))?;
                    let text = std::mem::take(&mut body);
                    sections.insert(name.to_owned(), Section { text, exit_code });
                }
                (Some("done"), None, None) => is_done = true,
                _ => {
                    body.push_str(line);
                    body.push('\n');
                }
            }
        }
        ensure!(is_done, "the job did not reach its end");
        Ok(Report(sections))
    }

    pub(super) fn section(&self, name: &str) -> Result<&Section> {
        self.0
            .get(name)
            .with_context(|| format!("the job reported no section {name}"))
    }

    /// A section that is JSON.
    pub(super) fn json(&self, name: &str) -> Result<Value> {
        let Section { text, exit_code } = self.section(name)?;
        serde_json::from_str(text)
            .with_context(|| format!("{name} (exit code {exit_code}) printed no JSON: {text:?}"))
    }

    /// The number behind `key ` on a line of a section.
    pub(super) fn number(&self, name: &str, key: &str) -> Result<u64> {
        let Section { text, .. } = self.section(name)?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
        let value = value.with_context(|| format!("section {name} has no {key}: {text:?}"))?;
        value
            .parse()
            .with_context(|| format!("section {name} has {key} {value:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "noise\r\nsexton-guest: begin after\r\nmemory_cgroups 250\r\ndirectories 9\r\n\
        sexton-guest: end after 0\r\nsexton-guest: begin zombies\r\n{\"dying\": 241}\r\n\
        sexton-guest: end zombies 1\r\n";

    #[test]
    fn sections_are_read() {
        let report = Report::parse(&format!("{TEXT}sexton-guest: done\r\n")).unwrap();
        assert_eq!(report.number("after", "directories").unwrap(), 9);
        assert_eq!(report.json("zombies").unwrap()["dying"], 241);
        assert_eq!(report.section("zombies").unwrap().exit_code, 1);
        assert!(report.section("doctor").is_err());
        assert!(report.number("after", "memory").is_err());
    }

    #[test]
    fn a_job_that_stopped_early_is_an_error() {
        assert!(Report::parse(TEXT).is_err());
    }
}
