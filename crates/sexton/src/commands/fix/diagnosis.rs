//! What a diagnosis asks to be fixed: one that was just made, or one in a file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use sexton_analysis::rules::by_code;
use sexton_model::fix::{Act, Offer};
use sexton_model::{diagnosis, finding};

/// A diagnosis that is larger was not written by us.
const MOST_BYTES: u64 = 64 << 20;

const SCHEMA: &str = "sexton.diagnosis/1";

/// The part of a diagnosis that a fix needs.
#[derive(Debug, Deserialize)]
pub struct Diagnosis {
    /// What was found.
    pub findings: Vec<Finding>,
}

/// One finding.
#[derive(Debug, Deserialize)]
pub struct Finding {
    /// The rule.
    pub code: String,
    /// What it is about.
    pub subject: Subject,
    /// What it advises.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
}

/// What a finding is about.
#[derive(Debug, Deserialize)]
pub struct Subject {
    /// The sort of thing.
    pub kind: String,
    /// Which one.
    pub name: String,
}

/// What a finding advises.
#[derive(Debug, Deserialize)]
pub struct Remedy {
    /// What it does.
    pub text: String,
    /// What to type.
    pub command: Option<String>,
}

impl Diagnosis {
    /// Reads one.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let size = fs::metadata(path)
            .with_context(|| format!("cannot read {shown}"))?
            .len();
        if size > MOST_BYTES {
            bail!("{shown} is larger than any diagnosis");
        }
        let text = fs::read(path).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&text).with_context(|| {
            format!("{shown} is no diagnosis; `sexton diagnose --json` writes one")
        })
    }

    /// Reads the text of one.
    fn parse(text: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct File {
            schema: String,
            #[serde(flatten)]
            diagnosis: Diagnosis,
        }
        let file: File = serde_json::from_slice(text)?;
        if file.schema != SCHEMA {
            bail!("its schema is {:?}, not {SCHEMA}", file.schema);
        }
        Ok(file.diagnosis)
    }

    /// Units that cause something, by themselves or through what they start; each once.
    pub fn guilty_units(&self) -> impl Iterator<Item = &str> {
        let units = self.findings.iter().filter(|finding| {
            let Subject { kind, name } = &finding.subject;
            finding.offer().stops(kind, name)
        });
        let names: BTreeSet<&str> = units.map(|finding| &*finding.subject.name).collect();
        names.into_iter()
    }

    /// Whether systemd starts this unit again and again, so that a bound ends it.
    pub fn restarts(&self, unit: &str) -> bool {
        let mut findings = self.findings.iter();
        findings.any(|finding| finding.subject.name == unit && finding.offer().has(Act::Bound))
    }

    /// Origins of dying cgroups.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        let piles = self.findings.iter();
        let piles = piles.filter(|finding| finding.offer().frees(&finding.subject.kind));
        piles.map(|finding| finding.subject.name.as_str())
    }

    /// What only a person can do: not what releases dying cgroups, which the plan does.
    pub fn advice(&self) -> impl Iterator<Item = &Remedy> {
        let findings = self.findings.iter();
        let others = findings.filter(|finding| !finding.offer().frees(&finding.subject.kind));
        others.flat_map(|finding| &finding.remedies)
    }
}

impl Finding {
    /// What its rule offers. A file may hold codes that this sexton does not know.
    fn offer(&self) -> Offer {
        by_code(&self.code).map_or(Offer::NOTHING, |rule| rule.offer)
    }
}

impl From<&diagnosis::Diagnosis> for Diagnosis {
    fn from(diagnosis: &diagnosis::Diagnosis) -> Self {
        Self {
            findings: diagnosis.findings.iter().map(Finding::from).collect(),
        }
    }
}

impl From<&finding::Finding> for Finding {
    fn from(finding: &finding::Finding) -> Self {
        let remedies = finding.remedies.iter().map(|remedy| Remedy {
            text: remedy.text.clone(),
            command: remedy.command.clone(),
        });
        Self {
            code: finding.code.to_owned(),
            subject: Subject {
                kind: finding.subject.kind.name().to_owned(),
                name: finding.subject.name.to_string(),
            },
            remedies: remedies.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"schema":"sexton.diagnosis/1","verdict":{"state":"cause-found"},"findings":[
        {"id":"UNIT002:ecs.service","code":"UNIT002","subject":{"kind":"unit","name":"ecs.service"},"remedies":[]},
        {"id":"UNIT001:loop.service","code":"UNIT001","subject":{"kind":"unit","name":"loop.service"}},
        {"id":"UNIT002:loop.service","code":"UNIT002","subject":{"kind":"unit","name":"loop.service"}},
        {"id":"UNIT001:a@.service","code":"UNIT001","subject":{"kind":"unit","name":"a@.service"}},
        {"id":"UNIT001:user@7.service/b.service","code":"UNIT001","subject":{"kind":"unit","name":"user@7.service/b.service"}},
        {"id":"MCG001:/docker/<id>","code":"MCG001","subject":{"kind":"cgroup","name":"/docker/<id>"},"caused_by":["UNIT002:ecs.service"]},
        {"id":"NIC001:eth0","code":"NIC001","subject":{"kind":"device","name":"eth0"},"remedies":[{"text":"look","command":"dmesg"}]}]}"#;

    #[test]
    fn the_guilty_and_what_they_left_are_found() {
        let diagnosis = Diagnosis::parse(TEXT.as_bytes()).expect("a diagnosis");
        assert_eq!(
            diagnosis.guilty_units().collect::<Vec<_>>(),
            ["ecs.service", "loop.service"]
        );
        assert!(!diagnosis.restarts("ecs.service"), "it runs all the time");
        assert!(diagnosis.restarts("loop.service"));
        assert_eq!(diagnosis.origins().collect::<Vec<_>>(), ["/docker/<id>"]);
        assert_eq!(diagnosis.advice().count(), 1);
    }

    #[test]
    fn another_schema_is_refused() {
        let other = TEXT.replace("diagnosis/1", "diagnosis/9");
        let error = Diagnosis::parse(other.as_bytes()).expect_err("refused");
        assert!(error.to_string().contains("diagnosis/9"), "{error}");
        assert!(Diagnosis::parse(b"[]").is_err());
    }
}
