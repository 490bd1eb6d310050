//! Where a scenario is played.

use std::fs;

use anyhow::{Result, ensure};
use sexton_lab::checks::Machine;
use sexton_lab::scenario::Scenario;
use sexton_lab::script::Pace;

use crate::guest::{CELLS, Cell, Cgroup};

/// What a machine is called where sexton may not load BPF programs: appended to its name.
const WITHOUT: &str = "-without-BPF";

/// Guests that are also shown as machines without BPF: the oldest kernel of each cgroup version.
const SHOWN_WITHOUT: [&str; 3] = ["5.10-v1", "6.1-v2", "6.12-v2"];

/// Where a scenario is played, and whether sexton may use BPF there.
pub(super) struct Place {
    pub(super) on: On,
    /// The kernel refuses `bpf()` to sexton, as old kernels and strict set-ups do.
    pub(super) refuses_bpf: bool,
}

/// A machine.
pub(super) enum On {
    /// Namespaces of this machine.
    Here,
    /// A guest.
    Guest(&'static Cell),
}

impl Place {
    /// Namespaces of this machine, with BPF.
    pub(super) const HERE: Place = Place {
        on: On::Here,
        refuses_bpf: false,
    };

    /// This machine first, then guests from the oldest kernel on; then those without BPF.
    pub(super) fn all() -> Vec<Place> {
        let with = |on| Place {
            on,
            refuses_bpf: false,
        };
        let guests = CELLS.iter().map(On::Guest);
        let allowed = std::iter::once(On::Here).chain(guests).map(with);
        let shown = CELLS
            .iter()
            .filter(|cell| SHOWN_WITHOUT.contains(&cell.name().as_str()))
            .map(On::Guest);
        let refused = std::iter::once(On::Here).chain(shown).map(with);
        allowed
            .chain(refused.map(|place| place.without_bpf(true)))
            .collect()
    }

    /// The same machine, where BPF is refused or not.
    pub(super) fn without_bpf(self, refuses_bpf: bool) -> Place {
        Place {
            refuses_bpf,
            ..self
        }
    }

    /// The one that was asked for; this machine if nothing was.
    pub(super) fn chosen(kernel: Option<&str>, cgroup: Option<Cgroup>) -> Result<Place> {
        match (kernel, cgroup) {
            (None | Some("here"), None) => Ok(Place::HERE),
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
        Ok(Place {
            on: found.map_or(On::Here, On::Guest),
            refuses_bpf: false,
        })
    }

    /// Kernel and cgroup version.
    pub(super) fn name(&self) -> String {
        let machine = match self.on {
            On::Here => {
                let (kernel, cgroup) = (short(&release()), hierarchy());
                format!("{kernel}-{cgroup}")
            }
            On::Guest(cell) => cell.name(),
        };
        match self.refuses_bpf {
            true => format!("{machine}{WITHOUT}"),
            false => machine,
        }
    }

    /// Whether it is in namespaces of this machine.
    pub(super) fn is_here(&self) -> bool {
        matches!(self.on, On::Here)
    }

    pub(super) fn describe(&self) -> String {
        let machine = match self.on {
            On::Here => "systemd in namespaces of this machine: --kernel here, or none",
            On::Guest(cell) if !cell.cache_holds() => {
                "a Debian guest, the control: page cache holds no dying cgroup there"
            }
            On::Guest(_) => "a Debian guest under emulation",
        };
        match self.refuses_bpf {
            true => format!("{machine}; bpf() is refused to sexton: --no-bpf"),
            false => machine.to_owned(),
        }
    }

    /// What `--kernel` calls it.
    pub(super) fn kernel(&self) -> &str {
        match self.on {
            On::Here => "here",
            On::Guest(cell) => cell.kernel_name(),
        }
    }

    pub(super) fn machine(&self) -> Machine {
        Machine {
            cache_holds: self.cache_holds(),
            refuses_bpf: self.refuses_bpf,
            is_shared: self.is_here(),
            is_emulated: !self.is_here(),
        }
    }

    /// An emulator takes seconds to start sexton, and all else is as slow: there it watches
    /// as long as it does unless told.
    pub(super) fn pace(&self, scenario: &Scenario) -> Pace {
        let is_emulated = !self.is_here();
        let least = if is_emulated { 30 } else { 0 };
        Pace {
            watch_seconds: scenario.watch_seconds.max(least),
            is_emulated,
            refuses_bpf: self.refuses_bpf,
        }
    }

    /// Whether page cache holds a removed cgroup there. Linux hands it to the parent since 7.1.
    fn cache_holds(&self) -> bool {
        match self.on {
            On::Here => {
                let mut numbers = release();
                numbers.retain(|c| c.is_ascii_digit() || c == '.');
                let mut numbers = numbers.split('.').filter_map(|n| n.parse::<u32>().ok());
                (numbers.next(), numbers.next()) < (Some(7), Some(1))
            }
            On::Guest(cell) => cell.cache_holds(),
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
            let name = place.map(|place| match place.on {
                On::Here => "here".to_owned(),
                On::Guest(cell) => cell.name(),
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
    fn a_machine_without_bpf_has_a_name_of_its_own() {
        let place = Place::guest(Some("6.1"), Some(Cgroup::V2)).expect("a guest");
        assert_eq!(place.without_bpf(true).name(), "6.1-v2-without-BPF");
        let names: Vec<String> = Place::all().iter().map(Place::name).collect();
        let without = names.iter().filter(|name| name.ends_with(WITHOUT));
        assert_eq!(without.count(), 1 + SHOWN_WITHOUT.len());
    }

    #[test]
    fn a_release_is_shortened() {
        assert_eq!(short("6.18.44-x1\n"), "6.18");
    }
}
