//! Runs `sexton diagnose` in a systemd of our own while trouble of a known maker goes on,
//! as an operator would on a sick node, and reads what it said.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::sexton;
use crate::systemd::Systemd;

/// A judgement must be there this long after the start; the rest is for booting, and for
/// trouble to build up.
const LIMIT: Duration = Duration::from_secs(150);

/// Names a folder into which recordings are copied, to become fixtures.
pub const KEEP: &str = "SEXTON_KEEP_RECORDINGS";

/// `judge` watches and judges, and tells how it ended and how long it took; the recording
/// stays for a replay. Traces of the kernel are mounted where no unit has done so.
const BEGIN: &str = r#"
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
await() { for i in $(seq 600); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; exit 9; }
judge() {
    began=$(date +%s)
    code=0
    ./sexton diagnose --for 20s --json -o /job/bundle > verdict 2> trouble || code=$?
    echo $code > code
    echo $(($(date +%s) - began)) > seconds
}
"#;

/// What came of a run.
#[derive(Debug)]
pub struct Judged {
    /// The files that the job left.
    pub systemd: Systemd,
    /// The judgement.
    pub verdict: Value,
}

impl Judged {
    /// Boots a systemd with these units and runs the job, which calls `judge` once.
    pub fn of(units: &[(&str, &str)], job: &str) -> Result<Self> {
        let systemd = Self::job(units, job)?;
        let text = systemd.read("verdict")?;
        let trouble = systemd.read("trouble")?;
        let verdict = serde_json::from_str(&text)
            .with_context(|| format!("no judgement: {text:?} {trouble:?}"))?;
        if let Some(folder) = std::env::var_os(KEEP) {
            systemd.keep("bundle", Path::new(&folder))?;
        }
        Ok(Self { systemd, verdict })
    }

    /// The same with a job that judges nothing, or in its own way.
    pub fn job(units: &[(&str, &str)], job: &str) -> Result<Systemd> {
        let binary = sexton::binary().context("SEXTON names no binary")?;
        let binary = binary.to_str().context("a plain path")?;
        Systemd::run(units, &[binary], &format!("{BEGIN}\n{job}"), LIMIT)
    }

    /// What a finding says for and against itself, one line each.
    pub fn evidence(&self, id: &str) -> String {
        let findings = self.verdict["findings"].as_array();
        let mut findings = findings.into_iter().flatten();
        let found = findings.find(|finding| finding["id"] == id);
        let evidence = found.and_then(|found| found["evidence"].as_array());
        let texts = evidence.into_iter().flatten();
        let texts: Vec<&str> = texts.filter_map(|one| one["text"].as_str()).collect();
        texts.join("\n")
    }

    /// `cause-found` and so on.
    pub fn state(&self) -> &str {
        self.verdict["verdict"]["state"]
            .as_str()
            .unwrap_or_default()
    }

    /// Ids of the gravest chain, from cause to symptom.
    pub fn chain(&self) -> Vec<&str> {
        let chain = self.verdict["verdict"]["chain"].as_array();
        chain
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// Ids of the findings whose code begins so.
    pub fn found(&self, code: &str) -> Vec<&str> {
        let findings = self.verdict["findings"].as_array();
        let ids = findings.into_iter().flatten();
        ids.filter_map(|finding| finding["id"].as_str())
            .filter(|id| id.starts_with(code))
            .collect()
    }

    /// A number that the job left.
    pub fn number(&self, file: &str) -> u64 {
        let text = self.systemd.read(file).unwrap_or_default();
        let number = text.trim().parse();
        number.unwrap_or_else(|_| panic!("{file} holds no number: {text:?}"))
    }
}
