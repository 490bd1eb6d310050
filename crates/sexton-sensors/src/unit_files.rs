//! Reads the files of units: what is enabled, what starts it, whether it can start, and what
//! signatures need to tell whether it is of any use in this deployment.
//!
//! Source: the folders of systemd's search path, presets, the package database and the few
//! files that signatures ask for. Works on an image that has not booted.
//! Blind to: what generators and programs make at run time; the `units` sensor sees that.
//! Overhead: `docs/overhead.md#unit_files`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_model::fact::unit::{
    Folder, UNIT_CONTEXT, UNIT_FILE, UNIT_SHAPE, UnitContext, UnitShape,
};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::{Record, Sink};
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_signatures::units::Signatures;
use sexton_systemd::survey::Survey;

use crate::{Opener, Sensor, SensorSpec};

/// The name of the sensor.
pub const NAME: &str = "unit_files";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "files of units: what is enabled, can start, and has a use here",
    emits: &[&UNIT_FILE.fact, &UNIT_SHAPE.fact, &UNIT_CONTEXT.fact],
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
    let signatures = Signatures::built_in();
    open_with(
        host,
        signatures.map_err(|error| Gap::new(NAME, Why::Bug, error.to_string()))?,
    )
}

fn open_with(host: &Host, signatures: Signatures) -> Result<Box<dyn Sensor>, Gap> {
    if !is_there(host) {
        return Err(Gap::new(NAME, Why::Unsupported, NO_SYSTEMD));
    }
    Ok(Box::new(UnitFiles { signatures }))
}

/// Opens the sensor that asks the node's files what these signatures want to know, instead of what
/// those of the program alone do: a file that no question was asked of cannot be judged later.
pub fn opener(signatures: &Signatures) -> Opener {
    let signatures = signatures.clone();
    Arc::new(move |host| open_with(host, signatures.clone()))
}

struct UnitFiles {
    signatures: Signatures,
}

impl Sensor for UnitFiles {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        tell(&Survey::observe(host.root(), &self.signatures), None, out);
    }
}

/// Once and quickly, for who only asks whether units are of use: who owns the files and what
/// keeps units from starting is left out. A shape that is given is not detected.
pub fn of_use(host: &Host, signatures: &Signatures, shape: Option<&str>) -> Vec<Record> {
    let mut out = Sink::new(NAME, clock::now());
    if is_there(host) {
        tell(&Survey::of_use(host.root(), signatures), shape, &mut out);
    } else {
        let gap = Gap::new(NAME, Why::Unsupported, NO_SYSTEMD);
        out.gap(&Subject::node(), gap);
    }
    out.into_records()
}

/// Puts what was seen into records. A shape that is given is one of the things that are known.
pub fn tell(survey: &Survey, shape: Option<&str>, out: &mut Sink) {
    let now = out.now();
    let seen = &survey.seen;
    let node_shape = UnitShape {
        start: Some(seen.start.clone()),
        shape: shape.map(str::to_owned),
        ..UnitShape::default()
    };
    out.event(now, &Subject::node(), &UNIT_SHAPE, node_shape);
    for (n, part) in parts(&seen.context).into_iter().enumerate() {
        let subject = Subject::new(SubjectKind::Node, n.to_string());
        out.event(now, &subject, &UNIT_CONTEXT, part);
    }
    for (name, file) in &seen.units {
        let subject = Subject::new(SubjectKind::Unit, name.as_str());
        out.event(now, &subject, &UNIT_FILE, file.clone());
    }
    for text in &survey.gaps {
        out.gap(
            &Subject::node(),
            Gap::new(NAME, Why::Malformed, text.as_str()),
        );
    }
}

/// As many entries of a list as fit into a record, names of 150 bytes at the most.
const N_IN_PART: usize = 100;

/// Lists that are too long for one record.
fn parts(context: &UnitContext) -> Vec<UnitContext> {
    let mut parts = Vec::new();
    let mut add = |fill: &dyn Fn(&mut UnitContext)| {
        let mut part = UnitContext::default();
        fill(&mut part);
        parts.push(part);
    };
    for units in context.units.chunks(N_IN_PART) {
        add(&|part| part.units = units.to_vec());
    }
    for packages in context.packages.chunks(N_IN_PART) {
        add(&|part| part.packages = packages.to_vec());
    }
    for mounts in context.mounts.chunks(N_IN_PART) {
        add(&|part| part.mounts = mounts.to_vec());
    }
    for answers in context.answers.chunks(N_IN_PART) {
        add(&|part| part.answers = answers.to_vec());
    }
    for folders in packed(&context.folders) {
        add(&|part| part.folders = folders.clone());
    }
    parts
}

/// Folders, cut and put together so that each part stays within the bound of names. An empty one is
/// told, too.
fn packed(folders: &[Folder]) -> Vec<Vec<Folder>> {
    let mut parts: Vec<Vec<Folder>> = Vec::new();
    let mut room = 0;
    for folder in folders {
        let mut names = folder.names.as_slice();
        loop {
            if room == 0 {
                parts.push(Vec::new());
                room = N_IN_PART;
            }
            let (here, rest) = names.split_at(names.len().min(room));
            room = room.saturating_sub(here.len() + 1);
            if let Some(part) = parts.last_mut() {
                part.push(Folder {
                    path: folder.path.clone(),
                    names: here.to_vec(),
                });
            }
            names = rest;
            if names.is_empty() {
                break;
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No name is lost and no part is too long.
    #[test]
    fn folders_are_told_in_parts() {
        let folder = |path: &str, n: usize| Folder {
            path: path.to_owned(),
            names: (0..n).map(|n| n.to_string()).collect(),
        };
        for sizes in [&[][..], &[0], &[1, 0, 250], &[99, 1, 100, 0], &[100, 101]] {
            let folders: Vec<Folder> = sizes.iter().map(|n| folder(&n.to_string(), *n)).collect();
            let parts = packed(&folders);
            let mut whole: Vec<Folder> = Vec::new();
            for part in &parts {
                let n: usize = part.iter().map(|folder| folder.names.len()).sum();
                assert!(n <= N_IN_PART, "{sizes:?}: {n}");
                for piece in part {
                    match whole.last_mut().filter(|folder| folder.path == piece.path) {
                        Some(folder) => folder.names.extend(piece.names.clone()),
                        None => whole.push(piece.clone()),
                    }
                }
            }
            assert_eq!(whole, folders, "{sizes:?}");
        }
    }
}
