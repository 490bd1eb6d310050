//! Holds what sexton said of a night against its truth, and adds nights up.

use std::collections::BTreeMap;

use serde_json::Value;
use sexton_model::glob::matches;

use super::script::{parts, proof};
use super::trouble::Trouble;
use super::{Night, Part};
use crate::checks::{Machine, SYMPTOMS};
use crate::outcome::Outcome;

/// What came of one night.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Ids that had to be found and were.
    pub found: Vec<String>,
    /// Ids that had to be found and were not.
    pub missed: Vec<String>,
    /// Findings worse than a note without a trouble behind them.
    pub accused: Vec<String>,
    /// Findings, worse than a note, that are part of the truth.
    pub right: Vec<String>,
    /// Parts that did not happen as they should: the lab failed, not sexton.
    pub void: Vec<String>,
    /// The node was called healthy, or no verdict was possible.
    pub state: Option<String>,
}

impl Score {
    /// Holds an outcome against the night that it is of.
    pub fn of(night: &Night, troubles: &[Trouble], machine: Machine, outcome: &Outcome) -> Score {
        let mut score = Score::default();
        let findings: Vec<Seen<'_>> = outcome.verdict["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Seen::of)
            .collect();
        let mut known = Vec::new();
        for (i, (part, trouble)) in parts(night, troubles).enumerate() {
            let fill = |id: &String| part.fill(id);
            let ids = [&trouble.found, &trouble.noted, &trouble.beside];
            known.extend(ids.into_iter().flatten().map(fill));
            if outcome.number(&proof(i)).ok() != Some(0) {
                score.void.push(why_void(part, outcome, i));
                continue;
            }
            let found = trouble.found.iter().map(|id| (id, false));
            let noted = trouble.noted.iter().map(|id| (id, true));
            for (wanted, may_be_note) in found.chain(noted) {
                let wanted = fill(wanted);
                let mut findings = findings.iter().filter(|seen| may_be_note || !seen.is_note);
                match findings.any(|seen| seen.is(&wanted)) {
                    true => score.found.push(wanted),
                    false => score.missed.push(wanted),
                }
            }
        }
        let is_only_noted = parts(night, troubles).all(|(_, trouble)| trouble.found.is_empty());
        for seen in findings.iter().filter(|seen| !seen.is_note) {
            let is_symptom = SYMPTOMS.iter().any(|code| seen.id.starts_with(code));
            if known.iter().any(|pattern| seen.is(pattern)) {
                score.right.push(seen.id.to_owned());
            } else if !is_symptom && !machine.is_of_others(seen.id) {
                score.accused.push(format!("{} ({})", seen.id, seen.title));
            }
        }
        let is_told = match outcome.state() {
            "healthy" => is_only_noted,
            state => ["cause-found", "symptoms-only"].contains(&state),
        };
        if !is_told {
            score.state = Some(outcome.state().to_owned());
        }
        score
    }

    /// Whether all of it is as it should be.
    pub fn is_good(&self) -> bool {
        let Score {
            missed,
            accused,
            void,
            state,
            ..
        } = self;
        missed.is_empty() && accused.is_empty() && void.is_empty() && state.is_none()
    }

    /// What is wrong, a line each.
    pub fn wrong(&self) -> Vec<String> {
        let missed = self.missed.iter().map(|id| format!("missed {id}"));
        let accused = self.accused.iter().map(|id| format!("accused {id}"));
        let void = self
            .void
            .iter()
            .map(|part| format!("did not happen: {part}"));
        let state = self.state.iter().map(|state| format!("said {state:?}"));
        missed.chain(accused).chain(void).chain(state).collect()
    }
}

/// A finding.
struct Seen<'a> {
    id: &'a str,
    is_note: bool,
    title: &'a str,
}

impl<'a> Seen<'a> {
    /// Whether it is what a pattern means: `CODE:subject`, or `CODE:subject ~ title` where the
    /// subject is a number.
    fn is(&self, pattern: &str) -> bool {
        match pattern.split_once(" ~ ") {
            Some((id, title)) => matches(id, self.id) && matches(title, self.title),
            None => matches(pattern, self.id),
        }
    }

    fn of(finding: &'a Value) -> Option<Self> {
        Some(Self {
            id: finding["id"].as_str()?,
            is_note: finding["severity"] == "note",
            title: finding["title"].as_str().unwrap_or_default(),
        })
    }
}

fn why_void(part: &Part, outcome: &Outcome, i: usize) -> String {
    let said = outcome
        .text(&format!("{}.txt", proof(i)))
        .unwrap_or_default();
    format!("{part}: {}", said.trim().replace('\n', " "))
}

/// Nights added up, by code.
#[derive(Debug, Default)]
pub struct Total {
    /// How many nights.
    pub n_nights: usize,
    /// How many of them were good.
    pub n_good: usize,
    /// The rows, by code.
    pub codes: BTreeMap<String, Row>,
}

/// One code over many nights.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How often it had to be found.
    pub n_true: usize,
    /// How often it was.
    pub n_found: usize,
    /// How many findings were made that are part of the truth.
    pub n_right: usize,
    /// How many findings had no trouble behind them.
    pub n_wrong: usize,
}

impl Row {
    /// The part of what had to be found that was; nothing where nothing had to be.
    pub fn recall(&self) -> Option<f64> {
        (self.n_true > 0).then(|| self.n_found as f64 / self.n_true as f64)
    }

    /// The part of the findings that are true; nothing where none was made.
    pub fn precision(&self) -> Option<f64> {
        let n = self.n_right + self.n_wrong;
        (n > 0).then(|| self.n_right as f64 / n as f64)
    }
}

impl Total {
    /// Adds a night.
    pub fn add(&mut self, score: &Score) {
        self.n_nights += 1;
        self.n_good += usize::from(score.is_good());
        for id in &score.found {
            let row = self.row(id);
            row.n_true += 1;
            row.n_found += 1;
        }
        for id in &score.missed {
            self.row(id).n_true += 1;
        }
        for id in &score.right {
            self.row(id).n_right += 1;
        }
        for id in &score.accused {
            self.row(id).n_wrong += 1;
        }
    }

    fn row(&mut self, id: &str) -> &mut Row {
        let code = id.split(':').next().unwrap_or(id);
        self.codes.entry(code.to_owned()).or_default()
    }

    /// All codes in one row.
    pub fn all(&self) -> Row {
        let mut all = Row::default();
        for row in self.codes.values() {
            all.n_true += row.n_true;
            all.n_found += row.n_found;
            all.n_right += row.n_right;
            all.n_wrong += row.n_wrong;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    const HERE: Machine = Machine {
        cache_holds: true,
        refuses_bpf: false,
        is_shared: true,
        is_emulated: false,
    };

    fn trouble(name: &str, found: &[&str]) -> Trouble {
        let found = json!(found).to_string();
        let text = format!(
            "title = 'a'\nbegin = ''\nend = ''\nfound = {found}\nbeside = ['UNIT005:@unit@.service']"
        );
        let mut trouble: Trouble = toml::from_str(&text).expect("a trouble");
        trouble.name = name.into();
        trouble
    }

    fn part(trouble: &str, unit: &str) -> Part {
        Part {
            trouble: trouble.into(),
            unit: unit.into(),
            values: BTreeMap::new(),
            begins_ms: 0,
        }
    }

    /// The score of a night with a loop and an innocent, when this was found.
    fn score(test: &str, state: &str, happened: i32, found: &[(&str, &str)]) -> Score {
        let troubles = [
            trouble("loop", &["UNIT001:@unit@.service"]),
            trouble("calm", &[]),
        ];
        let night = Night {
            seed: 1,
            parts: vec![part("loop", "ledger12"), part("calm", "orders34")],
        };
        let findings: Vec<Value> = found
            .iter()
            .map(|(id, severity)| json!({"id": id, "severity": severity, "title": "t"}))
            .collect();
        let verdict = json!({"verdict": {"state": state}, "findings": findings});
        let folder = std::env::temp_dir().join(format!("sexton-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        for (name, text) in [
            ("verdict.json", verdict.to_string()),
            ("happened-0", format!("{happened}\n")),
            ("happened-1", "0\n".to_owned()),
        ] {
            fs::write(folder.join(name), text).expect("written");
        }
        let outcome = Outcome::read(&folder).expect("an outcome");
        let score = Score::of(&night, &troubles, HERE, &outcome);
        fs::remove_dir_all(&folder).expect("removed");
        score
    }

    #[test]
    fn what_is_true_is_good() {
        let found = [
            ("UNIT001:ledger12.service", "warning"),
            ("UNIT005:ledger12.service", "warning"),
            ("CPU003:orders34.service", "note"),
            ("CPU001:0", "serious"),
            ("MCG001:/of/others", "warning"),
        ];
        let score = score("good", "cause-found", 0, &found);
        assert_eq!(score.wrong(), Vec::<String>::new());
        assert_eq!(score.right.len(), 2);
    }

    #[test]
    fn a_miss_and_an_accused_innocent_are_counted_by_code() {
        let found = [("UNIT003:orders34.service", "warning")];
        let score = score("bad", "symptoms-only", 0, &found);
        assert_eq!(
            score.wrong(),
            [
                "missed UNIT001:ledger12.service",
                "accused UNIT003:orders34.service (t)"
            ]
        );
        let mut total = Total::default();
        total.add(&score);
        assert_eq!((total.n_nights, total.n_good), (1, 0));
        assert_eq!(total.codes["UNIT001"].recall(), Some(0.0));
        assert_eq!(total.codes["UNIT003"].precision(), Some(0.0));
        assert_eq!(total.all().n_wrong, 1);
    }

    #[test]
    fn a_sick_node_that_is_called_healthy_and_trouble_that_did_not_happen_are_told() {
        let healthy = score(
            "healthy",
            "healthy",
            0,
            &[("UNIT001:ledger12.service", "note")],
        );
        assert_eq!(
            healthy.wrong(),
            ["missed UNIT001:ledger12.service", "said \"healthy\""]
        );
        let void = score("void", "symptoms-only", 1, &[]);
        assert_eq!(void.missed, Vec::<String>::new());
        assert_eq!(void.void.len(), 1);
    }
}
