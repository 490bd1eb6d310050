//! Second rung: reclaim below the parents of what is left.
//!
//! cgroup v1 has `memory.force_empty`, which takes all that can be taken below a cgroup;
//! v2 has `memory.reclaim`, which takes so many bytes, and `memory.low`, by which live
//! neighbours are spared meanwhile. Where neighbours cannot be spared the rung waits for
//! leave.

mod spared;

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;
use sexton_model::census::{CgroupIx, Hierarchy, State};
use sexton_model::fix::{PlannedStep, StepOutcome};
use sexton_model::text::escape;

use super::stock::only_files;
use super::{ASKED_TO_STOP, Rung, Scope, Tools, advise};
use crate::consent::Consent;
use crate::error::RemedyError;
use crate::strain::Ease;
use spared::{MOST_SPARED, Spared};

pub(crate) static RUNG: Rung = Rung { plan, climb };

/// So many bytes of neighbours are nothing. v1 takes all below a parent, from the living too:
/// there it is what a program or two leave behind. On v2 the living are spared, and these are pages
/// of the parent itself, which has no processes, and of other dead ones, the unit that was just
/// stopped for one; no disk takes longer than a moment to read them again.
pub(super) const NOTHING_V1: u64 = 1 << 20;
const NOTHING_V2: u64 = 16 << 20;

/// The most that is reclaimed in one go on v2; then we look how the node does.
pub(super) const CHUNK_BYTES: u64 = 32 << 20;

/// Parents that are named in a sentence.
const MOST_NAMED: usize = 3;

/// A parent and what lies below it.
#[derive(Debug, Default)]
struct Parent {
    directory: PathBuf,
    is_root: bool,
    /// The kernel has a file there by which it can be told to reclaim.
    has_lever: bool,
    /// Dying cgroups that we are after and that reclaim can free, and their pages.
    n_dying: u64,
    pages: u64,
    /// Pages of others that cannot be spared.
    neighbours_pages: u64,
}

fn parents(scope: &Scope<'_>) -> BTreeMap<CgroupIx, Parent> {
    let mut parents: BTreeMap<CgroupIx, Parent> = BTreeMap::new();
    let memory = MemoryHierarchy::find(scope.host).ok().flatten();
    let Some(memory) = memory else { return parents };
    let Some(mount) = memory.mount else {
        return parents;
    };
    let tree = &scope.census.tree;
    for ix in scope.stock.iter().filter(|ix| can_go(scope, *ix)) {
        let Some(above) = scope.stock.live_parent(ix) else {
            continue;
        };
        let parent = parents.entry(above).or_insert_with(|| {
            let directory = below(&mount, &memory.part, &tree.path(above));
            Parent {
                is_root: tree.get(above).parent.is_none(),
                has_lever: directory.join(lever(memory.hierarchy)).exists(),
                directory,
                ..Parent::default()
            }
        });
        parent.n_dying += 1;
        parent.pages += tree.get(ix).pages.file;
    }
    count_neighbours(scope, &mut parents);
    parents
}

/// Pages without a disk to go to, or that are locked, are not reclaimed.
fn can_go(scope: &Scope<'_>, ix: CgroupIx) -> bool {
    only_files(scope.stock.pages(ix))
}

/// The file that has the kernel reclaim below a cgroup.
pub(super) fn lever(hierarchy: Hierarchy) -> &'static str {
    match hierarchy {
        Hierarchy::V1 => "memory.force_empty",
        Hierarchy::V2 => "memory.reclaim",
    }
}

fn count_neighbours(scope: &Scope<'_>, parents: &mut BTreeMap<CgroupIx, Parent>) {
    let tree = &scope.census.tree;
    let aimed: HashSet<CgroupIx> = scope.stock.iter().collect();
    let n_live = tree.iter().filter(|(_, c)| c.state != State::Dying).count();
    let can_spare = scope.census.hierarchy == Hierarchy::V2 && n_live <= MOST_SPARED;
    for (ix, cgroup) in tree.iter().filter(|(ix, _)| !aimed.contains(ix)) {
        let is_spared = can_spare && cgroup.state != State::Dying;
        let mut at = Some(ix);
        while let Some(above) = at {
            // Its own pages a parent cannot protect from a reclaim that begins with itself.
            if let Some(parent) = parents.get_mut(&above)
                && (!is_spared || above == ix)
            {
                parent.neighbours_pages += cgroup.pages.holding();
            }
            at = tree.get(above).parent;
        }
    }
}

/// The directory of a cgroup, given what part of the hierarchy the mount shows.
fn below(mount: &Path, part: &Path, path: &[u8]) -> PathBuf {
    let path = Path::new(OsStr::from_bytes(path));
    let inside = path.strip_prefix(part).or_else(|_| path.strip_prefix("/"));
    mount.join(inside.unwrap_or(path))
}

fn can_reclaim(scope: &Scope<'_>, parent: &Parent) -> bool {
    let is_offered = !parent.is_root || scope.census.hierarchy == Hierarchy::V2;
    is_offered && parent.has_lever
}

fn is_allowed(scope: &Scope<'_>, parent: &Parent) -> bool {
    can_reclaim(scope, parent)
        && (scope.allowance.siblings || parent.neighbours_pages <= nothing(scope))
}

/// So many pages of neighbours may go without leave.
fn nothing(scope: &Scope<'_>) -> u64 {
    let bytes = match scope.census.hierarchy {
        Hierarchy::V1 => NOTHING_V1,
        Hierarchy::V2 => NOTHING_V2,
    };
    bytes / scope.census.page_bytes.max(1)
}

/// The bytes to ask for on v2. What is taken is taken from all that is not spared, so that a
/// little which may go is asked for as well: else it would go instead of what should.
fn wanted_bytes(scope: &Scope<'_>, parent: &Parent) -> u64 {
    (parent.pages + parent.neighbours_pages.min(nothing(scope))) * scope.census.page_bytes
}

fn plan(scope: &Scope<'_>) -> Option<PlannedStep> {
    let parents = parents(scope);
    if parents.is_empty() {
        return None;
    }
    let (allowed, refused): (Vec<_>, Vec<_>) = parents
        .values()
        .partition(|parent| is_allowed(scope, parent));
    let goes = |ix| {
        let above = scope.stock.live_parent(ix);
        let parent = above.and_then(|above| parents.get(&above));
        can_go(scope, ix) && parent.is_some_and(|parent| is_allowed(scope, parent))
    };
    Some(PlannedStep {
        title: "reclaim below their parents what the files alone did not free".into(),
        changes: allowed.iter().map(|parent| typed(scope, parent)).collect(),
        undo: match scope.census.hierarchy {
            Hierarchy::V1 => None,
            Hierarchy::V2 => Some("memory.low of the neighbours is put back at once".into()),
        },
        predicted: Some(scope.stock.freed(goes)),
        withheld: allowed.is_empty().then(|| refusal(scope, &refused)),
        except: (!allowed.is_empty() && !refused.is_empty()).then(|| {
            let n: u64 = refused.iter().map(|parent| parent.n_dying).sum();
            let places = refused.iter().take(MOST_NAMED).map(|parent| place(parent));
            let places: Vec<String> = places.collect();
            let more = match refused.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!(
                "{n} below {}{more}: {}",
                places.join(", "),
                refusal(scope, &refused)
            )
        }),
    })
}

fn place(parent: &Parent) -> String {
    escape(parent.directory.as_os_str().as_bytes())
}

fn typed(scope: &Scope<'_>, parent: &Parent) -> String {
    let directory = place(parent);
    match scope.census.hierarchy {
        Hierarchy::V1 => format!("echo 0 > {directory}/memory.force_empty"),
        Hierarchy::V2 => {
            let bytes = wanted_bytes(scope, parent);
            format!("echo {bytes} > {directory}/memory.reclaim, in parts of {CHUNK_BYTES}")
        }
    }
}

/// Why nothing is done below these, each reason once.
fn refusal(scope: &Scope<'_>, refused: &[&Parent]) -> String {
    let (unable, unwilling): (Vec<&Parent>, Vec<&Parent>) = refused
        .iter()
        .partition(|parent| !can_reclaim(scope, parent));
    let mut reasons = Vec::new();
    if !unable.is_empty() {
        let n: u64 = unable.iter().map(|parent| parent.n_dying).sum();
        reasons.push(match scope.census.hierarchy {
            Hierarchy::V1 => format!(
                "{n} of them lie directly below the root, where this kernel offers no reclaim"
            ),
            Hierarchy::V2 => {
                format!("this kernel has no memory.reclaim (Linux 5.19 and later have it), for {n}")
            }
        });
    }
    if !unwilling.is_empty() {
        let pages: u64 = unwilling.iter().map(|parent| parent.neighbours_pages).sum();
        let mib = (pages * scope.census.page_bytes) >> 20;
        reasons.push(format!(
            "neighbours below the same parents would lose {mib} MiB of cache; --allow-siblings \
             lets it"
        ));
    }
    reasons.join("; ")
}

fn climb(scope: &Scope<'_>, _consent: &Consent, tools: &mut Tools<'_>) -> StepOutcome {
    // Reclaim does not write: a dirty page stays.
    if let Some(stopped) = advise::write_back(scope, tools) {
        return stopped;
    }
    let parents = parents(scope);
    let allowed = parents.values().filter(|parent| is_allowed(scope, parent));
    let below = allowed.map(|parent| (&*parent.directory, wanted_bytes(scope, parent)));
    each_below(scope.host, scope.census.hierarchy, below, tools)
}

/// Frees below directories, of each so many bytes where the kernel takes a number.
pub(super) fn each_below<'a>(
    host: &Host,
    hierarchy: Hierarchy,
    below: impl Iterator<Item = (&'a Path, u64)>,
    tools: &mut Tools<'_>,
) -> StepOutcome {
    let mut trouble = None;
    for (directory, wanted_bytes) in below {
        if tools.stop.load(Ordering::Relaxed) {
            return StepOutcome::Stopped(ASKED_TO_STOP.into());
        }
        (tools.tell)(&format!("below {}", directory.display()));
        let done = match hierarchy {
            Hierarchy::V1 => empty(directory),
            Hierarchy::V2 => reclaim(host, directory, wanted_bytes, tools),
        };
        match done {
            Ok(None) => {}
            Ok(Some(stopped)) => return stopped,
            Err(error) => trouble = Some(error.chain()),
        }
    }
    trouble.map_or(StepOutcome::Done, StepOutcome::Failed)
}

/// Has the kernel take all that can be taken below a cgroup of v1.
fn empty(directory: &Path) -> Result<Option<StepOutcome>, RemedyError> {
    let path = directory.join(lever(Hierarchy::V1));
    match write(&path, "0") {
        Ok(()) => Ok(None),
        // It did what it could; the count afterwards tells what that came to.
        Err(error) if error.kind() == ErrorKind::ResourceBusy => Ok(None),
        Err(error) if is_gone(&error) => Ok(None),
        Err(source) => Err(RemedyError::file("write", path, source)),
    }
}

/// Asks for as many bytes as there are to be had and not for more: what is asked for beyond
/// that the kernel takes from those whom `memory.low` protects.
fn reclaim(
    host: &Host,
    directory: &Path,
    mut wanted: u64,
    tools: &mut Tools<'_>,
) -> Result<Option<StepOutcome>, RemedyError> {
    let path = directory.join(lever(Hierarchy::V2));
    let _spared = Spared::spare(host, directory, tools.journal)?;
    while wanted > 0 {
        if tools.stop.load(Ordering::Relaxed) {
            return Ok(Some(StepOutcome::Stopped(ASKED_TO_STOP.into())));
        }
        if tools.strain.ease(host) == Ease::TooMuch {
            let why = "the node lacks memory; it was left alone";
            return Ok(Some(StepOutcome::Stopped(why.into())));
        }
        let asked = wanted.min(CHUNK_BYTES);
        wanted -= asked;
        match write(&path, &asked.to_string()) {
            Ok(()) => {}
            // No more is to be had.
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if is_gone(&error) => break,
            Err(source) => return Err(RemedyError::file("write", &path, source)),
        }
    }
    Ok(None)
}

/// Writes to a file that is there. One that is not cannot be made in a cgroup, and the
/// attempt would say that permission is denied.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())
}

/// The parent was removed, and with it the reason to work below it.
fn is_gone(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::NODEV))
}

#[cfg(test)]
mod tests {
    use sexton_model::census::{Census, Method};

    use super::super::{Aim, Allowance};
    use super::*;

    #[test]
    fn what_is_nothing_to_neighbours_goes_without_leave() {
        let host = Host::live().expect("a mount table");
        let check = |hierarchy, neighbours_kib: u64, siblings, expected| {
            let census = Census::new(Method::BpfWalk, hierarchy, 4096);
            let allowance = Allowance {
                siblings,
                ..Allowance::default()
            };
            let scope = Scope::new(&host, &census, &Aim::default(), allowance);
            let parent = Parent {
                has_lever: true,
                pages: 10,
                neighbours_pages: neighbours_kib / 4,
                ..Parent::default()
            };
            let asked = is_allowed(&scope, &parent).then(|| wanted_bytes(&scope, &parent) >> 10);
            assert_eq!(asked, expected, "{hierarchy:?} {neighbours_kib} KiB");
        };
        check(Hierarchy::V1, 128, false, Some(168));
        check(Hierarchy::V1, 2048, false, None);
        check(Hierarchy::V2, 0, false, Some(40));
        check(Hierarchy::V2, 2048, false, Some(2088));
        check(Hierarchy::V2, 65536, false, None);
        check(Hierarchy::V2, 65536, true, Some(16424));
    }

    #[test]
    fn directories_are_found_below_the_mount() {
        let check = |part: &str, path: &str, expected: &str| {
            let found = below(Path::new("/cg"), Path::new(part), path.as_bytes());
            assert_eq!(found, Path::new(expected));
        };
        check("/", "/a/b", "/cg/a/b");
        check("/a", "/a/b", "/cg/b");
        check("/", "/", "/cg");
    }
}
