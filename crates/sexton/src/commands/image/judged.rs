//! An image, opened, surveyed and judged: what every command of `sexton image` begins with.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, bail};
use sexton_analysis::Policy;
use sexton_analysis::evidence::recognized::recognize_all;
use sexton_analysis::evidence::unit_files as verdicts;
use sexton_analysis::rules::OF_IMAGES;
use sexton_host::clock;
use sexton_model::audit::{Audit, AuditOs, AuditUnit, UnitVerdict};
use sexton_model::fact::unit::UNIT_FILE;
use sexton_model::record::Sink;
use sexton_model::timeline::Records;
use sexton_sensors::unit_files;
use sexton_systemd::survey::{Survey, Surveyed};

use crate::cli::{SignatureArgs, SourceArgs};

/// A survey and what it comes to.
pub(super) struct Judged {
    pub(super) survey: Survey,
    pub(super) audit: Audit,
}

/// Opens and judges.
pub(super) fn judge(args: &SourceArgs) -> Result<Judged> {
    judge_as(&args.source, args.shape.as_deref(), &args.signatures)
}

/// The same, from its parts.
pub(super) fn judge_as(source: &Path, shape: Option<&str>, more: &SignatureArgs) -> Result<Judged> {
    let all = more.read()?;
    let signatures = &all.units;
    if let Some(name) = shape.filter(|name| signatures.shape(name).is_none()) {
        let known: Vec<&str> = signatures
            .shapes
            .iter()
            .map(|shape| shape.name.as_str())
            .collect();
        bail!("no shape is called {name}; there are {}", known.join(", "));
    }
    let image = sexton_image::open(source)?;
    let survey = Survey::take(image.root.as_ref(), signatures, shape);
    let mut sink = Sink::new("unit_files", clock::now());
    unit_files::tell(&survey, shape, &mut sink);
    let records = recognize_all(&Records::new(sink.into_records()), &all);
    let findings = sexton_analysis::findings(&records, &Policy::default(), &OF_IMAGES);
    let mut codes: HashMap<&str, Vec<&'static str>> = HashMap::new();
    for finding in &findings {
        codes
            .entry(&finding.subject.name)
            .or_default()
            .push(finding.code);
    }
    let verdicts: HashMap<String, (UnitVerdict, String)> = records
        .iter()
        .filter(|record| record.fact() == Some(&UNIT_FILE.fact))
        .map(|record| (record.subject.name.to_string(), verdicts::verdict(record)))
        .collect();
    let units = survey
        .units
        .iter()
        .map(|unit| row(unit, &verdicts, &codes))
        .collect();
    let os = &survey.set.os;
    let audit = Audit {
        source: source.display().to_string(),
        what: image.what,
        os: AuditOs {
            id: os.id.clone(),
            version: os.version.clone(),
            name: os.name.clone(),
            kernels: os.kernels.clone(),
        },
        shape: survey.shape.clone(),
        shape_doubt: survey.doubt.clone(),
        units,
        findings,
        missing: survey.missing.clone(),
        packages: survey.packages.versions.clone().into_iter().collect(),
        gaps: image
            .gaps
            .into_iter()
            .chain(survey.gaps.iter().cloned())
            .collect(),
    };
    Ok(Judged { survey, audit })
}

/// Of a loop without end, or else of timers.
fn starts_per_day(unit: &Surveyed) -> Option<(u64, String)> {
    let endless = unit.restart.as_ref().filter(|restart| restart.is_endless());
    let looping = endless.map(|restart| (restart.runs_per_day(), restart.arithmetic()));
    let timed = unit.rate.as_ref();
    looping.or_else(|| timed.map(|rate| (rate.per_day.ceil() as u64, rate.by.clone())))
}

fn row(
    unit: &Surveyed,
    verdicts: &HashMap<String, (UnitVerdict, String)>,
    codes: &HashMap<&str, Vec<&'static str>>,
) -> AuditUnit {
    let name = &unit.unit.name;
    let off = || {
        (
            UnitVerdict::Harmless,
            format!("{}: nothing starts it", unit.unit.state.name()),
        )
    };
    let (verdict, why) = verdicts.get(name).cloned().unwrap_or_else(off);
    let (verdict, why) = match unit.unknown() {
        Some(unseen) if unit.is_on() && verdict != UnitVerdict::Unwanted => {
            (UnitVerdict::Unknown, unseen.to_owned())
        }
        _ => (verdict, why),
    };
    let codes = codes.get(name.as_str()).cloned().unwrap_or_default();
    AuditUnit {
        name: name.clone(),
        state: unit.unit.state.name(),
        preset: unit
            .unit
            .preset
            .map(sexton_systemd::unit_file::preset::Preset::name),
        package: unit.package.clone(),
        file: unit.unit.file.display().to_string(),
        reached_by: unit.reached_by.clone(),
        starts_per_day: starts_per_day(unit),
        is_on: unit.is_on(),
        verdict,
        codes,
        why,
    }
}
