//! `sexton image verify`: the gate of an image pipeline.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use sexton_analysis::rules::{CANNOT_START, ENDLESS, OF_IMAGES, UNWANTED};
use sexton_model::audit::{Audit, AuditUnit, UnitVerdict};
use sexton_model::glob;
use sexton_report::audit::{self as report, GateUnit};

use super::img001_policy::{CODE, TITLE};
use super::judged::judge_as;
use crate::cli::{VerifyArgs, VerifyFormat};
use crate::exit::Exit;

/// What an image must hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct ImagePolicy {
    /// What the machine is for; detected if not given.
    shape: Option<String>,
    /// Verdicts that do not pass.
    deny: Vec<String>,
    /// Whether an endless loop alone does not pass, or a timer as fast as one.
    deny_endless: bool,
    /// Patterns of units that pass whatever is said of them.
    allow: Vec<String>,
    /// Patterns of units that must not be on.
    forbid: Vec<String>,
    /// Patterns of units of which one must be on.
    require: Vec<String>,
    /// Whether parts that could not be read are let pass.
    allow_gaps: bool,
}

impl Default for ImagePolicy {
    fn default() -> Self {
        Self {
            shape: None,
            deny: vec!["unwanted".into(), "broken".into()],
            deny_endless: false,
            allow: Vec::new(),
            forbid: Vec::new(),
            require: Vec::new(),
            allow_gaps: false,
        }
    }
}

/// Judges, compares with the policy, and writes.
pub(super) fn run(args: &VerifyArgs) -> Result<Exit> {
    let policy = args
        .policy
        .as_deref()
        .map_or_else(|| Ok(ImagePolicy::default()), read)?;
    let shape = args.source.shape.as_deref().or(policy.shape.as_deref());
    let audit = judge_as(&args.source.source, shape, &args.source.signatures)?.audit;
    let units = compare(&audit, &policy);
    let mut out = BufWriter::new(io::stdout().lock());
    let allow_gaps = policy.allow_gaps;
    match args.format {
        _ if args.json => report::gate_json(&mut out, &audit, &units, allow_gaps)?,
        VerifyFormat::Text => report::gate_text(&mut out, &audit, &units)?,
        VerifyFormat::Json => report::gate_json(&mut out, &audit, &units, allow_gaps)?,
        VerifyFormat::Junit => report::gate_junit(&mut out, &audit, &units, allow_gaps)?,
        VerifyFormat::Sarif => {
            let rules = OF_IMAGES.iter().map(|rule| (rule.code, rule.title));
            let rules: Vec<(&str, &str)> = rules.chain([(CODE, TITLE)]).collect();
            report::gate_sarif(&mut out, env!("SEXTON_VERSION"), &rules, &units)?;
        }
    }
    out.flush()?;
    Ok(exit(&units, &audit, allow_gaps))
}

/// What the exit code says of the gate.
pub(super) fn exit(units: &[GateUnit], audit: &Audit, allow_gaps: bool) -> Exit {
    if units.iter().any(|unit| unit.fails.is_some()) {
        Exit::Found
    } else if audit.gaps.is_empty() || allow_gaps {
        Exit::NothingFound
    } else {
        Exit::Blind
    }
}

fn read(path: &Path) -> Result<ImagePolicy> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let policy: ImagePolicy = toml::from_str(&text)
        .with_context(|| format!("cannot make sense of {}", path.display()))?;
    let known = ["unwanted", "broken", "unknown", "needed", "harmless"];
    if let Some(word) = policy
        .deny
        .iter()
        .find(|word| !known.contains(&word.as_str()))
    {
        anyhow::bail!(
            "{}: deny knows no verdict {word}; there are {}",
            path.display(),
            known.join(", ")
        );
    }
    Ok(policy)
}

pub(super) fn compare(audit: &Audit, policy: &ImagePolicy) -> Vec<GateUnit> {
    let on = audit.units.iter().filter(|unit| unit.is_on);
    let mut units: Vec<GateUnit> = on.clone().map(|unit| gate(unit, policy)).collect();
    for pattern in &policy.require {
        let is_on = on.clone().any(|unit| glob::matches(pattern, &unit.name));
        units.push(GateUnit {
            name: pattern.clone(),
            file: "etc/systemd/system".into(),
            fails: (!is_on).then(|| format!("{pattern} must be on and is not")),
            code: CODE,
        });
    }
    units
}

/// Every ten seconds, as often as the loop that sexton was made for.
const STARTS_PER_DAY_MAX: u64 = 8_640;

fn starts_too_often(unit: &AuditUnit) -> bool {
    let rate = unit.starts_per_day.as_ref();
    rate.is_some_and(|(n, _)| *n >= STARTS_PER_DAY_MAX)
}

fn gate(unit: &AuditUnit, policy: &ImagePolicy) -> GateUnit {
    let any = |patterns: &[String]| {
        patterns
            .iter()
            .any(|pattern| glob::matches(pattern, &unit.name))
    };
    let is_denied = policy
        .deny
        .iter()
        .any(|verdict| verdict == unit.verdict.name());
    let (fails, code) = if any(&policy.allow) {
        (None, UNWANTED.code)
    } else if any(&policy.forbid) {
        (Some("the policy forbids it to be on".to_owned()), CODE)
    } else if is_denied {
        let code = match unit.verdict {
            UnitVerdict::Unwanted => UNWANTED.code,
            UnitVerdict::Broken => CANNOT_START.code,
            _ => CODE,
        };
        (Some(format!("{}: {}", unit.verdict.name(), unit.why)), code)
    } else if policy.deny_endless && unit.codes.contains(&ENDLESS.code) {
        (
            Some("it restarts without end when it fails".to_owned()),
            ENDLESS.code,
        )
    } else if policy.deny_endless && starts_too_often(unit) {
        let (n, by) = unit.starts_per_day.clone().unwrap_or_default();
        (
            Some(format!("it starts {n} times a day ({by})")),
            ENDLESS.code,
        )
    } else {
        (None, UNWANTED.code)
    };
    GateUnit {
        name: unit.name.clone(),
        file: unit.file.clone(),
        fails,
        code,
    }
}
