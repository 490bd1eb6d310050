//! Takes back what a fix did, last change first.

use std::fs;
use std::io;
use std::path::Path;

use crate::consent::Consent;
use crate::error::RemedyError;
use crate::journal::{self, Change};
use crate::source;

/// Takes back what an undo file tells. Goes on after a change that cannot be taken back;
/// gives one line for each change, and marks the file as used when all of them went.
pub fn undo(path: &Path, _consent: &Consent) -> Result<Vec<Undone>, RemedyError> {
    let changes = journal::read(path)?;
    let mut undone: Vec<Undone> = changes.iter().rev().map(take_back).collect();
    undone.extend(start_units(&changes));
    if undone.iter().all(|undone| undone.trouble.is_none()) {
        journal::retire(path)?;
    }
    Ok(undone)
}

/// What became of one change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undone {
    /// What was taken back.
    pub what: String,
    /// Why it was not.
    pub trouble: Option<String>,
}

fn take_back(change: &Change) -> Undone {
    let (what, done) = match change {
        Change::Unit {
            unit,
            enabled,
            masked,
            disabled,
            ..
        } => (
            format!("{unit} as it was"),
            source::restore_unit(unit, enabled, *masked, *disabled),
        ),
        Change::NewFile { path, reload } => {
            (format!("{} removed", path.display()), remove(path, *reload))
        }
        Change::Container {
            runtime,
            id,
            restart,
        } => (
            format!("container {id} as it was"),
            source::restore_container(runtime, id, restart),
        ),
        Change::MemoryLow { path, value } => (
            format!("{} is {value} again", path.display()),
            put_back(path, value),
        ),
    };
    Undone {
        what,
        trouble: done.err().map(|error| error.chain()),
    }
}

/// Starts the units that ran, in the order in which they can be started.
fn start_units(changes: &[Change]) -> Vec<Undone> {
    let mut units: Vec<&str> = Vec::new();
    for change in changes {
        match change {
            Change::Unit {
                unit,
                was_active: true,
                ..
            } if !units.contains(&unit.as_str()) => units.push(unit),
            _ => {}
        }
    }
    units.sort_by_key(|unit| source::start_order(unit));
    let start = |unit: &str| Undone {
        what: format!("{unit} started"),
        trouble: source::start_again(unit).err().map(|error| error.chain()),
    };
    units.into_iter().map(start).collect()
}

fn remove(path: &Path, reload: bool) -> Result<(), RemedyError> {
    match fs::remove_file(path) {
        Ok(()) => {}
        // The crash came before the change did.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(RemedyError::file("remove", path, source)),
    }
    if let Some(folder) = path.parent() {
        // The folder was ours if nothing else is in it.
        fs::remove_dir(folder).ok();
    }
    match reload {
        true => source::reload_units(),
        false => Ok(()),
    }
}

fn put_back(path: &Path, value: &str) -> Result<(), RemedyError> {
    if path.file_name() != Some("memory.low".as_ref()) {
        return Err(RemedyError::Malformed {
            path: path.to_owned(),
            what: "it is no memory.low of a cgroup".into(),
        });
    }
    match fs::write(path, value) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(|source| RemedyError::file("write", path, source)),
    }
}
