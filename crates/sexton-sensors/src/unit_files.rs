//! Reads the files of units: what is enabled, what starts it, whether it can start, and
//! whether it is of any use in this deployment.
//!
//! Source: the folders of systemd's search path, presets, the package database and the few
//! files that signatures ask for. Works on an image that has not booted.
//! Blind to: what generators and programs make at run time; the `units` sensor sees that.
//! Overhead: `docs/overhead.md#unit_files`.

use std::path::Path;
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_model::fact::unit::{UNIT_FILE, UNIT_SHAPE};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::{Detail, Record, Sink};
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_systemd::signatures::Signatures;
use sexton_systemd::survey::{Survey, Surveyed};
use sexton_systemd::unit_file::restart::Restart;
use sexton_systemd::unit_file::start::Hindrance;

use crate::{Sensor, SensorSpec};

/// The name of the sensor.
pub const NAME: &str = "unit_files";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "files of units: what is enabled, can start, and has a use here",
    emits: &[&UNIT_FILE, &UNIT_SHAPE],
    every: Duration::from_secs(3_600),
    deadline: Duration::from_secs(60),
    examine,
    open,
};

/// Any of these is a system with systemd.
const FOLDERS: [&str; 3] = [
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/etc/systemd/system",
];

fn is_there(host: &Host) -> bool {
    let mut folders = FOLDERS.iter();
    folders.any(|folder| host.root().list(Path::new(folder)).is_ok())
}

const NO_SYSTEMD: &str = "there is no folder of units: this is no system with systemd";

fn examine(host: &Host) -> Vec<Sight> {
    let what = "units by their files";
    vec![if is_there(host) {
        Sight::sees(what, "by reading the folders of systemd's search path")
    } else {
        Sight::blind(what, NO_SYSTEMD)
    }]
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    if !is_there(host) {
        return Err(Gap::new(NAME, Why::Unsupported, NO_SYSTEMD));
    }
    let signatures =
        Signatures::built_in().map_err(|error| Gap::new(NAME, Why::Bug, error.to_string()))?;
    Ok(Box::new(UnitFiles { signatures }))
}

struct UnitFiles {
    signatures: Signatures,
}

impl Sensor for UnitFiles {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        tell(&Survey::take(host.root(), &self.signatures, None), out);
    }
}

/// Once and quickly, for who only asks whether units are of use: a shape that is given is not
/// detected; who owns the files and what keeps units from starting is left out.
pub fn of_use(host: &Host, signatures: &Signatures, shape: Option<&str>) -> Vec<Record> {
    let mut out = Sink::new(NAME, clock::now());
    if is_there(host) {
        tell(&Survey::of_use(host.root(), signatures, shape), &mut out);
    } else {
        let gap = Gap::new(NAME, Why::Unsupported, NO_SYSTEMD);
        out.gap(&Subject::node(), gap);
    }
    out.into_records()
}

/// Puts what a survey found into records.
pub fn tell(survey: &Survey, out: &mut Sink) {
    let now = out.now();
    let (shape, why) = survey.shape.clone().unwrap_or_default();
    let missing = survey.missing.join("; ");
    let details = details([
        ("shape", Some(shape.clone())),
        ("why", Some(why)),
        ("missing", Some(missing)),
    ]);
    out.event(now, &Subject::node(), &UNIT_SHAPE, details);
    for unit in survey.units.iter().filter(|unit| unit.is_on()) {
        let subject = Subject::new(SubjectKind::Unit, unit.unit.name.as_str());
        out.event(now, &subject, &UNIT_FILE, describe(unit, &shape));
    }
    for text in &survey.gaps {
        out.gap(
            &Subject::node(),
            Gap::new(NAME, Why::Malformed, text.as_str()),
        );
    }
}

fn details<const N: usize>(all: [(&'static str, Option<String>); N]) -> Vec<Detail> {
    let there = |(key, value): (&'static str, Option<String>)| {
        Some((key.into(), value.filter(|v| !v.is_empty())?))
    };
    all.into_iter().filter_map(there).collect()
}

fn describe(unit: &Surveyed, shape: &str) -> Vec<Detail> {
    let role = unit.role.as_ref();
    let mut all = details([
        ("state", Some(unit.unit.state.name().to_owned())),
        (
            "preset",
            unit.unit.preset.map(|preset| preset.name().to_owned()),
        ),
        ("package", unit.package.clone()),
        ("file", Some(unit.unit.file.display().to_string())),
        ("reached_by", Some(unit.reached_by.join(" > "))),
        ("shape", Some(shape.to_owned())),
        ("role", role.map(|(role, _)| role.name().to_owned())),
        ("role_why", role.map(|(_, why)| why.clone())),
    ]);
    all.extend(describe_start(unit));
    all.extend(describe_offender(unit));
    all
}

/// How it is restarted, and what keeps it from starting.
fn describe_start(unit: &Surveyed) -> Vec<Detail> {
    let restart = unit
        .restart
        .as_ref()
        .filter(|restart| restart.is_on_failure());
    let (fails, skipped) = match &unit.hindrance {
        Some(Hindrance::Fails(why)) => (Some(why.clone()), None),
        Some(Hindrance::Skipped(why)) => (None, Some(why.clone())),
        None => (None, None),
    };
    details([
        ("restart", restart.map(|restart| restart.when.clone())),
        ("arithmetic", restart.map(Restart::arithmetic)),
        (
            "endless",
            restart
                .filter(|restart| restart.is_endless())
                .map(|_| "yes".into()),
        ),
        (
            "runs_per_day",
            restart.map(|restart| restart.runs_per_day().to_string()),
        ),
        (
            "prevented_by",
            restart.map(|restart| restart.prevented_by.join(" ")),
        ),
        (
            "starts_per_day",
            unit.rate
                .as_ref()
                .map(|rate| format!("{:.0}", rate.per_day.ceil())),
        ),
        ("starts_by", unit.rate.as_ref().map(|rate| rate.by.clone())),
        ("fails", fails.or_else(|| unit.unit.bad.clone())),
        ("skipped", skipped),
    ])
}

fn describe_offender(unit: &Surveyed) -> Vec<Detail> {
    let Some(offender) = &unit.offender else {
        return Vec::new();
    };
    details([
        ("offender", Some(offender.slug.clone())),
        ("offender_why", Some(offender.why.clone())),
        ("offender_evidence", Some(offender.evidence.join("; "))),
        ("offender_veto", offender.veto.clone()),
        ("offender_risk", Some(offender.risk.name().to_owned())),
        ("offender_action", Some(offender.action.name().to_owned())),
        (
            "offender_unsure",
            offender.is_unsure.then(|| "yes".to_owned()),
        ),
        ("offender_triggers", Some(offender.triggers.join(" "))),
        ("offender_source", Some(offender.source.clone())),
    ])
}
