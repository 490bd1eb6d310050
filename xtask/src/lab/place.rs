//! Where a scenario is played.

use std::fs;

use anyhow::{Result, ensure};
use sexton_lab::checks::Machine;
use sexton_lab::scenario::Scenario;
use sexton_lab::script::Pace;

use crate::guest::{CELLS, Cell, Cgroup};

/// A machine.
pub(super) enum Place {
    /// Namespaces of this machine.
    Here,
    /// A guest.
    Guest(&'static Cell),
}

impl Place {
    /// This machine first, then guests from the oldest kernel on.
    pub(super) fn all() -> Vec<Place> {
        let guests = CELLS.iter().map(Place::Guest);
        std::iter::once(Place::Here).chain(guests).collect()
    }

    /// The one that was asked for; this machine if nothing was.
    pub(super) fn chosen(kernel: Option<&str>, cgroup: Option<Cgroup>) -> Result<Place> {
        match (kernel, cgroup) {
            (None | Some("here"), None) => Ok(Place::Here),
            _ => Place::guest(kernel, cgroup),
        }
    }

    /// The guest that was asked for. Of a kernel that has both, the older cgroup version.
    pub(super) fn guest(kernel: Option<&str>, cgroup: Option<Cgroup>) -> Result<Place> {
        let kernel = kernel.unwrap_or("6.1");
        let is_it = |cell: &&Cell| {
            cell.kernel_name() == kernel && cgroup.is_none_or(|cgroup| cell.cgroup() == cgroup)
        };
        let known: Vec<String> = CELLS.iter().map(Cell::name).collect();
        let found = CELLS.iter().find(is_it);
        ensure!(
            found.is_some(),
            "no guest has kernel {kernel} with this cgroup version; there are {}",
            known.join(", ")
        );
        Ok(found.map_or(Place::Here, Place::Guest))
    }

    /// Kernel and cgroup version.
    pub(super) fn name(&self) -> String {
        match self {
            Place::Here => {
                let (kernel, cgroup) = (short(&release()), hierarchy());
                format!("{kernel}-{cgroup}")
            }
            Place::Guest(cell) => cell.name(),
        }
    }

    pub(super) fn describe(&self) -> &'static str {
        match self {
            Place::Here => "systemd in namespaces of this machine: --kernel here, or none",
            Place::Guest(cell) if !cell.cache_holds() => {
                "a Debian guest, the control: page cache holds no dying cgroup there"
            }
            Place::Guest(_) => "a Debian guest under emulation",
        }
    }

    /// What `--kernel` calls it.
    pub(super) fn kernel(&self) -> &str {
        match self {
            Place::Here => "here",
            Place::Guest(cell) => cell.kernel_name(),
        }
    }

    pub(super) fn machine(&self) -> Machine {
        Machine {
            cache_holds: self.cache_holds(),
            is_shared: matches!(self, Place::Here),
            is_emulated: matches!(self, Place::Guest(_)),
        }
    }

    /// An emulator takes seconds to start sexton, and all else is as slow: there it watches
    /// as long as it does unless told.
    pub(super) fn pace(&self, scenario: &Scenario) -> Pace {
        match self {
            Place::Here => Pace {
                watch_seconds: scenario.watch_seconds,
                is_emulated: false,
            },
            Place::Guest(_) => Pace {
                watch_seconds: scenario.watch_seconds.max(30),
                is_emulated: true,
            },
        }
    }

    /// Whether page cache holds a removed cgroup there. Linux hands it to the parent since 7.1.
    fn cache_holds(&self) -> bool {
        match self {
            Place::Here => {
                let mut numbers = release();
                numbers.retain(|c| c.is_ascii_digit() || c == '.');
                let mut numbers = numbers.split('.').filter_map(|n| n.parse::<u32>().ok());
                (numbers.next(), numbers.next()) < (Some(7), Some(1))
            }
            Place::Guest(cell) => cell.cache_holds(),
        }
    }
}

fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// `6.18` of `6.18.44-something`.
fn short(release: &str) -> String {
    let parts: Vec<&str> = release.trim().splitn(3, '.').take(2).collect();
    parts.join(".")
}

/// Where the memory controller is: its row names a hierarchy of v1, or 0.
fn hierarchy() -> &'static str {
    let text = fs::read_to_string("/proc/cgroups").unwrap_or_default();
    let mut rows = text.lines().map(|line| line.split_whitespace());
    let memory = rows.find_map(|mut words| match words.next() {
        Some("memory") => words.next(),
        _ => None,
    });
    match memory {
        Some("0") | None => "v2",
        Some(_) => "v1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_chosen_by_kernel_and_cgroup() {
        let check = |kernel, cgroup, expected: Option<&str>| {
            let place = Place::chosen(kernel, cgroup).ok();
            let name = place.map(|place| match place {
                Place::Here => "here".to_owned(),
                Place::Guest(cell) => cell.name(),
            });
            assert_eq!(name.as_deref(), expected);
        };
        check(None, None, Some("here"));
        check(Some("here"), None, Some("here"));
        check(Some("6.1"), None, Some("6.1-v1"));
        check(Some("6.1"), Some(Cgroup::V2), Some("6.1-v2"));
        check(Some("6.12"), Some(Cgroup::V1), None);
    }

    #[test]
    fn a_release_is_shortened() {
        assert_eq!(short("6.18.44-x1\n"), "6.18");
    }
}
