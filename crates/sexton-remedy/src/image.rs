//! Turning units off in a root folder, and taking it back.
//!
//! Before anything is changed, what was there goes into a file inside the image. Every path
//! is resolved inside the root by the kernel: a link in the image leads nowhere else.

mod inside;
mod ledger;

use std::io;
use std::path::{Path, PathBuf};

use crate::Consent;
use inside::Inside;
pub use ledger::UNDO_FILE;
use ledger::{Entry, Ledger, Was};

/// Where administrators' units and links are.
const CONFIG: &str = "/etc/systemd/system";

/// Where files wait that something else takes the place of.
const KEPT: &str = "/etc/sexton/kept";

/// Read before all others, so that no vendor's preset turns the units on again.
pub const PRESET_FILE: &str = "/etc/systemd/system-preset/00-sexton.preset";

/// The name of a drop-in that bounds restarts.
const BOUND_NAME: &str = "50-sexton-bound.conf";

/// What bounds restarts: after ten within an hour it is given up. Units that restart more
/// slowly than every six minutes were never a trouble.
pub const BOUND: &str =
    "# Written by sexton image fix.\n[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=10\n";

/// Why an image could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum ImageFixError {
    /// A file of it could not be read or changed.
    #[error("cannot change {}", path.display())]
    Change {
        /// The file, as the image names it.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It could not be changed, and what was changed could not be put back.
    #[error(
        "the image is half changed: mend what failed, then take it back with sexton image undo"
    )]
    HalfDone {
        /// What failed.
        #[source]
        source: Box<ImageFixError>,
    },
    /// It was changed before and not taken back.
    #[error("this image was fixed before: take that back first, with sexton image undo")]
    FixedBefore,
    /// There is nothing to take back.
    #[error("there is no {UNDO_FILE} in this image: sexton image fix did not change it")]
    NotFixed,
    /// The file that says what was there makes no sense.
    #[error("cannot make sense of {UNDO_FILE}: {0}")]
    Malformed(String),
}

/// What to do to an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImagePlan {
    /// Units to mask, and to preset as disabled.
    pub mask: Vec<String>,
    /// Links that enable them.
    pub links: Vec<PathBuf>,
    /// Units whose restarts are to be bounded.
    pub bound: Vec<String>,
}

impl ImagePlan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.mask.is_empty() && self.bound.is_empty()
    }

    /// The preset file that keeps the units off.
    pub fn preset(&self) -> String {
        let mut text =
            String::from("# Written by sexton image fix: these units have no use here.\n");
        for unit in &self.mask {
            text.push_str(&format!("disable {unit}\n"));
        }
        text
    }

    /// Every file that is written or taken away, and what it becomes.
    fn changes(&self) -> Vec<(PathBuf, Becomes)> {
        let mut changes: Vec<(PathBuf, Becomes)> = self
            .links
            .iter()
            .map(|link| (link.clone(), Becomes::Nothing))
            .collect();
        for unit in &self.mask {
            changes.push((Path::new(CONFIG).join(unit), Becomes::Mask));
        }
        if !self.mask.is_empty() {
            changes.push((PRESET_FILE.into(), Becomes::Text(self.preset())));
        }
        for unit in &self.bound {
            let path = Path::new(CONFIG).join(format!("{unit}.d")).join(BOUND_NAME);
            changes.push((path, Becomes::Text(BOUND.to_owned())));
        }
        changes
    }
}

/// What becomes of a path.
enum Becomes {
    Nothing,
    Mask,
    Text(String),
}

/// Does it. What was there is in [`UNDO_FILE`] before the first change. If something cannot be
/// changed, all of it is put back.
pub fn apply(root: &Path, plan: &ImagePlan, _consent: &Consent) -> Result<(), ImageFixError> {
    let inside = Inside::open(root).map_err(at(Path::new("/")))?;
    let undo_file = Path::new(UNDO_FILE);
    if !matches!(inside.was(undo_file).map_err(at(undo_file))?, Was::Nothing) {
        return Err(ImageFixError::FixedBefore);
    }
    inside.clear_leftover(undo_file).map_err(at(undo_file))?;
    let changes = plan.changes();
    let mut ledger = Ledger::default();
    let paths = changes.iter().map(|(path, _)| path.as_path());
    for path in paths.chain([undo_file]) {
        inside.note_folders(path, &mut ledger).map_err(at(path))?;
        if path != undo_file {
            let was = inside.was(path).map_err(at(path))?;
            let kept = match was {
                Was::Nothing => None,
                _ => Some(free_place(&inside, ledger.entries.len())?),
            };
            if let Some(kept) = &kept {
                inside.note_folders(kept, &mut ledger).map_err(at(kept))?;
            }
            ledger.entries.push(Entry::new(path, was, kept.as_deref()));
        }
    }
    let written = inside
        .make_folders(undo_file)
        .and_then(|()| inside.write(undo_file, ledger.to_text().as_bytes()));
    if let Err(error) = written {
        // Folders at most: nothing that was there has been touched.
        let _ = take_back(&inside, &ledger);
        return Err(at(undo_file)(error));
    }
    let Err(failed) = carry_out(&inside, &changes, &ledger) else {
        return Ok(());
    };
    match take_back(&inside, &ledger) {
        Ok(_) => Err(failed),
        Err(_) => Err(ImageFixError::HalfDone {
            source: Box::new(failed),
        }),
    }
}

/// A place for a file to wait in. One that an undo could not put back may hold its place still.
fn free_place(inside: &Inside, n: usize) -> Result<PathBuf, ImageFixError> {
    let mut place = Path::new(KEPT).join(n.to_string());
    for again in 1.. {
        if matches!(inside.was(&place).map_err(at(&place))?, Was::Nothing) {
            break;
        }
        place = Path::new(KEPT).join(format!("{n}-{again}"));
    }
    Ok(place)
}

fn carry_out(
    inside: &Inside,
    changes: &[(PathBuf, Becomes)],
    ledger: &Ledger,
) -> Result<(), ImageFixError> {
    for ((path, becomes), entry) in changes.iter().zip(&ledger.entries) {
        if let Some(kept) = entry.kept() {
            inside.keep(path, &kept).map_err(at(path))?;
        }
        let done = match becomes {
            Becomes::Nothing => inside.remove(path),
            Becomes::Mask => inside
                .make_folders(path)
                .and_then(|()| inside.link(path, Path::new("/dev/null"))),
            Becomes::Text(text) => inside
                .make_folders(path)
                .and_then(|()| inside.write(path, text.as_bytes())),
        };
        done.map_err(at(path))?;
    }
    Ok(())
}

/// What an undo did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// What is as it was.
    pub restored: Vec<PathBuf>,
    /// What could not be put back because its folder is gone, and where it is kept.
    pub lost: Vec<(PathBuf, Option<PathBuf>)>,
}

/// Puts everything back as it was: content, labels, access lists and other names.
pub fn undo(root: &Path, _consent: &Consent) -> Result<Undone, ImageFixError> {
    let inside = Inside::open(root).map_err(at(Path::new("/")))?;
    let undo_file = Path::new(UNDO_FILE);
    let text = match inside.was(undo_file).map_err(at(undo_file))? {
        Was::File { content, .. } => content,
        _ => {
            inside.clear_leftover(undo_file).map_err(at(undo_file))?;
            return Err(ImageFixError::NotFixed);
        }
    };
    let ledger = Ledger::from_text(&text).map_err(ImageFixError::Malformed)?;
    take_back(&inside, &ledger)
}

/// Everything that says what was there goes last: a kill before that, and all can be done
/// again.
fn take_back(inside: &Inside, ledger: &Ledger) -> Result<Undone, ImageFixError> {
    let undo_file = Path::new(UNDO_FILE);
    let mut undone = Undone::default();
    for entry in ledger.entries.iter().rev() {
        let (path, kept) = (entry.path(), entry.kept());
        match inside.restore(&path, &entry.was, kept.as_deref()) {
            Ok(()) => undone.restored.push(path),
            // The rest can still be put back.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                undone.lost.push((path, kept));
            }
            Err(error) => return Err(at(&path)(error)),
        }
    }
    undone.restored.reverse();
    let is_above = |folder: &str| undo_file.starts_with(folder);
    for is_last in [false, true] {
        if is_last {
            inside.remove(undo_file).map_err(at(undo_file))?;
        }
        let made = ledger.made.iter().rev();
        for folder in made.filter(|folder| is_above(folder) == is_last) {
            // One that somebody put something into since then stays.
            let _ = inside.remove_folder(Path::new(folder));
        }
        let times = ledger.times.iter().rev();
        for (folder, time) in times.filter(|(folder, _)| is_above(folder) == is_last) {
            match inside.set_time(Path::new(folder), *time) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at(Path::new(folder))(error));
                }
                _ => {}
            }
        }
    }
    Ok(undone)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ImageFixError + use<> {
    let path = path.to_owned();
    move |source| ImageFixError::Change { path, source }
}
