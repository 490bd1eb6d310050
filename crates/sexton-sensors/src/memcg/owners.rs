//! Names without BPF: pages that are charged to a live cgroup but are not its own belong to dead
//! children of it (`/proc/kpagecgroup`). So the parents of dying cgroups are known, with what
//! their children left. How many there are is counted elsewhere.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::page_owners::PageOwners;
use sexton_host::{Host, HostError};
use sexton_model::census::{Census, Hierarchy, Method, OriginGroup, Pages};
use sexton_model::gap::{Gap, Why};
use sexton_model::sight::Sight;

use super::stat::gone_below;
use super::{CensusOptions, NAME, host_gap, page_bytes};

/// The processor time that looking at pages may take: what takes longer is a part, and said to
/// be. All of them are looked at for longer where a user asks for it.
const TIME: Duration = Duration::from_secs(2);
const TIME_FOR_ALL: Duration = Duration::from_secs(120);

/// Directories whose numbers are looked up, and those with most pages whose own are asked for.
const MAX_DIRECTORIES: usize = 20_000;
const MAX_ASKED: usize = 256;

/// Pages come and go while they are counted, and processes have many: of a cgroup with
/// processes, dead children must have left this part of its own pages, and this many.
const NOISE: f64 = 0.02;
const LEAST_PAGES: u64 = 64;

/// Names parents on cgroup v1 in a census that has only counts. `Err` says why this way is
/// closed.
pub(super) fn name(
    host: &Host,
    memory: &MemoryHierarchy,
    options: CensusOptions,
    census: &mut Census,
) -> Result<(), Gap> {
    let found = scan(host, memory, options)?;
    census.method = Method::PageOwnership;
    census.sampled = !found.owners.is_whole();
    let parents = found.parents(host, &mut census.gaps);
    let dying = census.counts.dying.unwrap_or(0);
    // Of those that were not looked at there are as many as of those that were.
    let of_all = 1.0 / found.owners.ratio().max(f64::MIN_POSITIVE);
    let pages: Vec<u64> = parents
        .iter()
        .map(|parent| (parent.pages.holding() as f64 * of_all) as u64)
        .collect();
    for (parent, dying) in parents.iter().zip(at_least(dying, &pages)) {
        let mut origin = gone_below(&memory.path_of(&parent.directory), dying);
        origin.pages = Some(parent.pages);
        census.origins.push(origin);
    }
    sort(&mut census.origins);
    note(census, &found.owners, is_flat(host, memory));
    Ok(())
}

/// Whether cgroups of v1 are not charged for those below them. Then a removed one has nobody above
/// it, and its pages no owner. systemd turns that off at boot.
fn is_flat(host: &Host, memory: &MemoryHierarchy) -> bool {
    let mount = memory.mount.as_deref();
    let file = mount.map(|mount| mount.join("memory.use_hierarchy"));
    let text = file.and_then(|file| host.read_text(file).ok());
    text.is_some_and(|text| text.trim() == "0")
}

/// Adds pages to a census by `cgroup.stat`, which names parents by itself.
pub(super) fn add_pages(
    host: &Host,
    memory: &MemoryHierarchy,
    options: CensusOptions,
    census: &mut Census,
) {
    let found = match scan(host, memory, options) {
        Ok(found) => found,
        Err(gap) => return census.gaps.push(gap),
    };
    for (inode, pages) in &found.owners.by_inode {
        let Some(directory) = found.directories.get(inode) else {
            continue;
        };
        let pattern = gone_below(&memory.path_of(directory), 0).pattern;
        let mut origins = census.origins.iter_mut();
        let origin = origins.find(|origin| origin.pattern == pattern);
        // A cgroup with processes has pages of its own, which nothing tells apart.
        if let Some(origin) = origin
            && has_tasks(host, directory) == Some(false)
        {
            origin.pages = Some(*pages);
        }
    }
    census.sampled = !found.owners.is_whole();
}

/// What was found: who owns pages, and which directories those are.
struct Found {
    owners: PageOwners,
    directories: HashMap<u64, PathBuf>,
}

/// A live cgroup with pages of dead children.
struct Parent {
    directory: PathBuf,
    pages: Pages,
}

fn scan(host: &Host, memory: &MemoryHierarchy, options: CensusOptions) -> Result<Found, Gap> {
    let Some(mount) = &memory.mount else {
        let text = "the hierarchy is not mounted here, so owners of pages have no names";
        return Err(Gap::new(NAME, Why::Unsupported, text));
    };
    if let Some(narrowed) = &memory.narrowed_by {
        let text = format!("owners of pages cannot be told: {narrowed}");
        return Err(Gap::new(NAME, Why::Unsupported, text)
            .with_remedy("run on the node, outside any container"));
    }
    let directories = directories(host, mount).map_err(|error| host_gap(&error))?;
    let time = if options.all_pages {
        TIME_FOR_ALL
    } else {
        TIME
    };
    let owners = PageOwners::scan(host, time).map_err(|error| {
        let gap = host_gap(&error);
        match error.why() {
            Why::Denied => gap.with_remedy("run as root: sudo sexton zombies"),
            Why::Vanished => Gap::new(NAME, Why::Unsupported, gap.text),
            _ => gap,
        }
    })?;
    Ok(Found {
        owners,
        directories,
    })
}

/// Directories by their inode.
fn directories(host: &Host, top: &Path) -> Result<HashMap<u64, PathBuf>, HostError> {
    let mut known = HashMap::new();
    let mut queue = vec![top.to_owned()];
    host.list(top)?;
    while let Some(directory) = queue.pop() {
        if known.len() >= MAX_DIRECTORIES {
            break;
        }
        // One that went away meanwhile has no pages that matter here.
        let Ok(entries) = host.list(&directory) else {
            continue;
        };
        let below = entries.into_iter().filter(|entry| entry.is_dir);
        queue.extend(below.map(|entry| directory.join(entry.name)));
        if let Ok(inode) = host.root().inode(&directory) {
            known.insert(inode, directory);
        }
    }
    Ok(known)
}

impl Found {
    /// Live cgroups with pages that are not their own, those with most first.
    fn parents(&self, host: &Host, gaps: &mut Vec<Gap>) -> Vec<Parent> {
        let mut charged: Vec<(&PathBuf, Pages)> = self
            .owners
            .by_inode
            .iter()
            .filter_map(|(inode, pages)| Some((self.directories.get(inode)?, *pages)))
            .collect();
        charged.sort_by(|a, b| (b.1.holding(), a.0).cmp(&(a.1.holding(), b.0)));
        if let Some(rest) = charged.len().checked_sub(MAX_ASKED + 1) {
            let text = format!(
                "{} cgroups with few pages were not asked for their own",
                rest + 1
            );
            gaps.push(Gap::new(NAME, Why::Lost(rest as u64 + 1), text));
        }
        let mut parents: Vec<Parent> = charged
            .into_iter()
            .take(MAX_ASKED)
            .filter_map(|(directory, pages)| self.parent(host, directory, pages))
            .collect();
        parents.sort_by_key(|parent| std::cmp::Reverse(parent.pages.holding()));
        parents
    }

    fn parent(&self, host: &Host, directory: &Path, charged: Pages) -> Option<Parent> {
        let is_busy = has_tasks(host, directory)?;
        // Of a part of the pages nothing can be taken off.
        let own = match self.owners.is_whole() {
            true => own_pages(host, directory)?,
            false if is_busy => return None,
            false => Pages::default(),
        };
        let left = less(charged, own);
        let least = if is_busy {
            LEAST_PAGES.max((own.holding() as f64 * NOISE) as u64)
        } else {
            0
        };
        (left.holding() > least).then(|| Parent {
            directory: directory.to_owned(),
            pages: left,
        })
    }
}

/// Whether processes are in a cgroup; `None` when it went away.
fn has_tasks(host: &Host, directory: &Path) -> Option<bool> {
    let tasks = host.read(directory.join("cgroup.procs")).ok()?;
    Some(!tasks.is_empty())
}

/// A v1 cgroup's own pages, without those of its children: lines without `total_`.
fn own_pages(host: &Host, directory: &Path) -> Option<Pages> {
    let text = host.read_text(directory.join("memory.stat")).ok()?;
    let pages = |name: &str| -> u64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let bytes: u64 = line.and_then(|value| value.parse().ok()).unwrap_or(0);
        bytes / page_bytes()
    };
    let shmem = pages("shmem");
    Some(Pages {
        file: pages("inactive_file") + pages("active_file"),
        // Both are on these lists.
        anon: (pages("inactive_anon") + pages("active_anon")).saturating_sub(shmem),
        shmem,
        unevictable: pages("unevictable"),
        swap: 0,
        kernel: 0,
    })
}

fn less(from: Pages, own: Pages) -> Pages {
    let swap_backed = (from.anon + from.shmem).saturating_sub(own.anon + own.shmem);
    let shmem = from.shmem.saturating_sub(own.shmem).min(swap_backed);
    Pages {
        file: from.file.saturating_sub(own.file),
        anon: swap_backed - shmem,
        shmem,
        unevictable: from.unevictable.saturating_sub(own.unevictable),
        swap: 0,
        kernel: 0,
    }
}

/// How many of `n` dying cgroups each parent has at least, by the pages they left. One cgroup may
/// leave thousands of pages, or a single one, so a parent may have as many as pages, or one. What
/// the others cannot have is its own.
fn at_least(n: u64, pages: &[u64]) -> Vec<u64> {
    let most: Vec<u64> = pages.iter().map(|own| (*own).min(n)).collect();
    let all: u64 = most.iter().fold(0, |sum, own| sum.saturating_add(*own));
    let least = |own: &u64| n.saturating_sub(all - own).max(1);
    match pages {
        // Those that left no page are somewhere too.
        [_] => vec![n],
        _ => most.iter().map(least).collect(),
    }
}

fn sort(origins: &mut [OriginGroup]) {
    origins.sort_by(|a, b| (b.dying, &a.pattern).cmp(&(a.dying, &b.pattern)));
}

fn note(census: &mut Census, owners: &PageOwners, is_flat: bool) {
    let n = census.origins.len();
    let split = match n {
        0 if is_flat => "pages of dead children have no owner: memory.use_hierarchy is 0".into(),
        0 => "no cgroup has pages of dead children: swap or sockets may pin the dying ones".into(),
        1 => "no names of removed cgroups, no files, no ages; dying ones without a page may have \
              another parent"
            .to_owned(),
        _ => format!(
            "no names of removed cgroups, no files, no ages; each of {n} parents has at least as \
             many dying cgroups as shown: pages do not show how many left them"
        ),
    };
    census.gaps.push(Gap::new(NAME, Why::Unsupported, split));
    if !owners.is_whole() {
        let text = format!(
            "looked at {:.0} % of memory before the time was up: there may be more pages, and more \
             parents",
            owners.ratio() * 100.0
        );
        census.gaps.push(Gap::new(NAME, Why::Overrun, text));
    }
}

/// Whether this way is open here.
pub(super) fn examine(host: &Host, memory: &MemoryHierarchy) -> Sight {
    let what = Method::PageOwnership.name();
    let opened = host.proc("kpagecgroup").and_then(|path| {
        let read = host.root().read_at(&path, 0, 8);
        read.map_err(|source| HostError::Read { path, source })
    });
    match (opened, &memory.narrowed_by, memory.hierarchy) {
        (Err(error), ..) => Sight::blind(what, error.chain()),
        (_, Some(narrowed), _) => Sight::blind(what, narrowed.clone()),
        (_, _, Hierarchy::V1) => Sight::sees(what, Method::PageOwnership.shows()),
        (_, _, Hierarchy::V2) => Sight::sees(what, "pages of the dying ones per live directory"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parent_is_said_to_have_more_than_it_must() {
        let check = |n, pages: &[u64], expected: &[u64]| {
            assert_eq!(at_least(n, pages), expected, "{n} by {pages:?}");
        };
        check(20_000, &[20_000], &[20_000]);
        check(20_000, &[20_000, 3], &[19_997, 1]);
        // One that left a library, and ninety-seven that left a page each.
        check(98, &[9_000, 97], &[1, 1]);
        check(1_000, &[700, 500, 1], &[499, 299, 1]);
        check(7, &[1], &[7]);
        check(7, &[], &[]);
    }

    #[test]
    fn what_is_left_is_never_less_than_nothing() {
        let of = |file, anon, shmem| Pages {
            file,
            anon,
            shmem,
            ..Pages::default()
        };
        assert_eq!(less(of(10, 5, 5), of(4, 5, 1)), of(6, 0, 4));
        assert_eq!(less(of(1, 1, 1), of(4, 5, 1)), of(0, 0, 0));
        // Kinds of pages are told apart less well than their sum.
        assert_eq!(less(of(0, 2, 5), of(0, 4, 1)), of(0, 0, 2));
    }
}
