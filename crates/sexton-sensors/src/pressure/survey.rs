//! Which cgroups are worth watching: those that have waited most.
//!
//! Looks at the first two levels below the root and no deeper, and at a bounded number of
//! directories, so that a node with a hundred thousand cgroups costs no more than one with
//! three hundred.

use std::path::Path;

use sexton_host::{Host, HostError};

use crate::directories::{list, subject};

use super::watched::{RESOURCES, Watched, is_gone, read};

/// Cgroups that are watched.
///
/// Chosen: the slices of a node and a dozen services; twelve samples each every second.
const MAX_WATCHED: usize = 16;

/// Cgroups that are looked at to find them.
///
/// Chosen: more than the services of a large node. Three small reads each.
const MAX_LOOKED_AT: usize = 256;

/// What a survey found.
pub(super) struct Survey {
    /// The cgroups that have waited most, those first.
    pub(super) watched: Vec<Watched>,
    /// Directories that were not looked at.
    pub(super) n_left_out: u64,
    /// The first that could not be looked at, and how many there were.
    pub(super) unread: Option<(HostError, u64)>,
}

/// Looks at the cgroups below `mount`. `Err` when not even its own list can be had.
pub(super) fn survey(host: &Host, mount: &Path) -> Result<Survey, HostError> {
    let mut unread = Unread::default();
    let mut directories = list(host, mount)?;
    let n_top = directories.len();
    for i in 0..n_top.min(MAX_LOOKED_AT) {
        match list(host, &directories[i]) {
            Ok(below) => directories.extend(below),
            Err(error) => unread.note(error),
        }
    }
    let n_left_out = directories.len().saturating_sub(MAX_LOOKED_AT) as u64;
    directories.truncate(MAX_LOOKED_AT);
    let mut waited = Vec::new();
    let mut buffer = Vec::new();
    for directory in directories {
        match total_us(host, &directory, &mut buffer) {
            Ok(us) => waited.push((us, directory)),
            Err(error) => unread.note(error),
        }
    }
    waited.sort_by_key(|(us, _)| std::cmp::Reverse(*us));
    let watched = waited.into_iter().take(MAX_WATCHED);
    Ok(Survey {
        watched: watched
            .map(|(_, directory)| Watched::cgroup(subject(mount, &directory), &directory))
            .collect(),
        n_left_out,
        unread: unread.0,
    })
}

/// Notes what could not be read, unless it is only gone.
#[derive(Default)]
struct Unread(Option<(HostError, u64)>);

impl Unread {
    fn note(&mut self, error: HostError) {
        match &mut self.0 {
            _ if is_gone(&error) => {}
            Some((_, n)) => *n += 1,
            none => *none = Some((error, 1)),
        }
    }
}

/// How long anything in a cgroup has waited for anything.
fn total_us(host: &Host, directory: &Path, buffer: &mut Vec<u8>) -> Result<u64, HostError> {
    let mut sum = 0_u64;
    for resource in &RESOURCES {
        let path = directory.join(format!("{}.pressure", resource.name));
        sum = sum.saturating_add(read(host, &path, buffer)?.some.total_us);
    }
    Ok(sum)
}
