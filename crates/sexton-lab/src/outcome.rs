//! What a played scenario has left in its folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

/// The folder that was brought back.
#[derive(Debug)]
pub struct Outcome {
    folder: PathBuf,
    /// What `sexton diagnose --json` said.
    pub verdict: Value,
}

impl Outcome {
    /// Reads the judgement; without one there is no outcome.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut outcome = Self {
            folder: folder.to_owned(),
            verdict: Value::Null,
        };
        outcome.verdict = outcome.json("verdict.json")?;
        Ok(outcome)
    }

    /// A file that the job has written.
    pub fn text(&self, name: &str) -> Result<String> {
        let path = self.folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("the job left no {name}"))
    }

    /// Such a file with JSON in it.
    pub fn json(&self, name: &str) -> Result<Value> {
        let text = self.text(name)?;
        let trouble = self.text("trouble.txt").unwrap_or_default();
        serde_json::from_str(&text)
            .with_context(|| format!("{name} is no JSON: {:?} {:?}", text.trim(), trouble.trim()))
    }

    /// Such a file with a number in it.
    pub fn number(&self, name: &str) -> Result<i64> {
        let text = self.text(name)?;
        let number = text.trim().parse();
        number.with_context(|| format!("{name} holds no number: {:?}", text.trim()))
    }

    /// From the start of `sexton diagnose` to its answer.
    pub fn seconds_to_verdict(&self) -> Result<f64> {
        let text = self.text("seconds")?;
        let moments: Vec<f64> = text
            .split_whitespace()
            .filter_map(|moment| moment.parse().ok())
            .collect();
        match moments[..] {
            [before, after] => Ok(after - before),
            _ => anyhow::bail!("seconds holds no two moments: {text:?}"),
        }
    }

    /// `cause-found` and so on.
    pub fn state(&self) -> &str {
        self.verdict["verdict"]["state"]
            .as_str()
            .unwrap_or_default()
    }

    /// Ids of every chain from cause to symptom, the gravest chain first.
    pub fn chains(&self) -> Vec<Vec<&str>> {
        let chains = self.verdict["verdict"]["chains"].as_array();
        chains.into_iter().flatten().map(strings).collect()
    }

    /// The first id of every chain.
    pub fn roots(&self) -> Vec<&str> {
        let chains = self.chains();
        chains
            .iter()
            .filter_map(|chain| chain.first().copied())
            .collect()
    }

    /// Whether a finding is no more than a note.
    pub fn is_note(&self, id: &str) -> bool {
        let findings = self.verdict["findings"].as_array().into_iter().flatten();
        let mut findings = findings.filter(|finding| finding["id"] == id);
        findings.any(|finding| finding["severity"] == "note")
    }

    /// Ids of all findings.
    pub fn findings(&self) -> Vec<&str> {
        ids(&self.verdict)
    }
}

/// Ids of the findings of a judgement.
pub fn ids(verdict: &Value) -> Vec<&str> {
    let findings = verdict["findings"].as_array();
    let findings = findings.into_iter().flatten();
    findings
        .filter_map(|finding| finding["id"].as_str())
        .collect()
}

fn strings(list: &Value) -> Vec<&str> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}
