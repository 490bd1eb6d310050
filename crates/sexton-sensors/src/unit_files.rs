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
use sexton_model::fact::unit::{UNIT_FILE, UNIT_SHAPE, UnitFile, UnitShape};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::{Record, Sink};
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_signatures::units::Signatures;
use sexton_systemd::survey::{Offender, Survey, Surveyed};
use sexton_systemd::unit_file::start::Hindrance;

use crate::{Sensor, SensorSpec};

/// The name of the sensor.
pub const NAME: &str = "unit_files";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "files of units: what is enabled, can start, and has a use here",
    emits: &[&UNIT_FILE.fact, &UNIT_SHAPE.fact],
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
    let node_shape = UnitShape {
        shape: said(&shape),
        why: said(&why),
        missing: survey.missing.clone(),
    };
    out.event(now, &Subject::node(), &UNIT_SHAPE, node_shape);
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

/// A text, unless there is none.
fn said(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn describe(unit: &Surveyed, shape: &str) -> UnitFile {
    let role = unit.role.as_ref();
    let mut file = UnitFile {
        state: said(unit.unit.state.name()),
        preset: unit.unit.preset.and_then(|preset| said(preset.name())),
        package: unit.package.as_deref().and_then(said),
        file: said(&unit.unit.file.display().to_string()),
        reached_by: unit.reached_by.clone(),
        shape: said(shape),
        role: role.and_then(|(role, ..)| said(role.name())),
        role_shape: role.and_then(|(_, shape, _)| said(shape)),
        role_why: role.and_then(|(.., why)| said(why)),
        ..UnitFile::default()
    };
    add_start(&mut file, unit);
    if let Some(offender) = &unit.offender {
        add_offender(&mut file, offender);
    }
    file
}

/// How it is restarted, and what keeps it from starting.
fn add_start(file: &mut UnitFile, unit: &Surveyed) {
    let restart = unit.restart.as_ref();
    if let Some(restart) = restart.filter(|restart| restart.is_on_failure()) {
        file.restart = said(&restart.when);
        file.arithmetic = said(&restart.arithmetic());
        file.endless = restart.is_endless().then_some(true);
        file.runs_per_day = Some(restart.runs_per_day());
        file.prevented_by = restart.prevented_by.clone();
    }
    if let Some(rate) = &unit.rate {
        file.starts_per_day = Some(rate.per_day.ceil());
        file.starts_by = said(&rate.by);
    }
    file.fails = unit.unit.bad.as_deref().and_then(said);
    match &unit.hindrance {
        Some(Hindrance::Fails(why)) => file.fails = said(why),
        Some(Hindrance::Skipped(why)) => file.skipped = said(why),
        Some(Hindrance::Unknown(_)) | None => {}
    }
}

fn add_offender(file: &mut UnitFile, offender: &Offender) {
    file.offender = said(&offender.slug);
    file.offender_why = said(&offender.why);
    file.offender_evidence = offender.evidence.clone();
    file.offender_veto = offender.veto.as_deref().and_then(said);
    file.offender_risk = said(offender.risk.name());
    file.offender_action = said(offender.action.name());
    file.offender_unsure = offender.is_unsure.then_some(true);
    file.offender_triggers = offender.triggers.clone();
    file.offender_source = said(&offender.source);
}
