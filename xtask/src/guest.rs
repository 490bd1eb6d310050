//! Tests in guests: each cell boots one Debian kernel with one cgroup version, makes a
//! known number of dying memory cgroups, and lets the static sexton look at them.
//!
//! Nothing here needs root or a working KVM: kernels, busybox and, where the machine has
//! none that is new enough, the emulator are Debian packages, fetched through an apt of
//! our own (`guest/apt.rs`) and kept in `target/guest`. The machine's own apt, packages,
//! mounts and cgroups are not touched.

mod apt;
pub(crate) mod boot;
pub(crate) mod cpio;
mod expect;
pub(crate) mod mirror;
pub(crate) mod parts;
mod report;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum;

use crate::test::{Failure, Need, NotRun, Tally};
use crate::{command, workspace};
use boot::Machine;
use parts::Kernel;

#[derive(clap::Args)]
pub(crate) struct Cells {
    /// Of the guests, only those with this kernel, such as 6.1
    #[arg(long)]
    kernel: Option<String>,
    /// Of the guests, only those with this cgroup version
    #[arg(long)]
    cgroup: Option<Cgroup>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Cgroup {
    V1,
    V2,
}

impl Cgroup {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Cgroup::V1 => "v1",
            Cgroup::V2 => "v2",
        }
    }
}

/// One guest to boot.
pub(crate) struct Cell {
    kernel: &'static Kernel,
    cgroup: Cgroup,
}

impl Cell {
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.kernel.name, self.cgroup.name())
    }

    pub(crate) fn kernel(&self) -> &'static Kernel {
        self.kernel
    }

    pub(crate) fn kernel_name(&self) -> &'static str {
        self.kernel.name
    }

    pub(crate) fn cgroup(&self) -> Cgroup {
        self.cgroup
    }

    /// Whether page cache holds a removed cgroup there.
    pub(crate) fn cache_holds(&self) -> bool {
        self.kernel.cache_holds
    }
}

/// From 6.12 on Debian builds its kernels without the memory controller of cgroup v1.
/// The last one is the control: a kernel in which page cache holds no dying cgroup.
pub(crate) const CELLS: &[Cell] = &[
    Cell {
        kernel: &parts::LINUX_5_10,
        cgroup: Cgroup::V1,
    },
    Cell {
        kernel: &parts::LINUX_5_10,
        cgroup: Cgroup::V2,
    },
    Cell {
        kernel: &parts::LINUX_6_1,
        cgroup: Cgroup::V1,
    },
    Cell {
        kernel: &parts::LINUX_6_1,
        cgroup: Cgroup::V2,
    },
    Cell {
        kernel: &parts::LINUX_6_12,
        cgroup: Cgroup::V2,
    },
    Cell {
        kernel: &parts::LINUX_7,
        cgroup: Cgroup::V2,
    },
];

impl Cells {
    /// The cells that were asked for. None is a wrong question, not an empty answer.
    pub(crate) fn chosen(&self) -> Result<Vec<&'static Cell>> {
        let wanted = |cell: &&Cell| {
            self.kernel
                .as_ref()
                .is_none_or(|kernel| cell.kernel.name == kernel)
                && self.cgroup.is_none_or(|cgroup| cell.cgroup == cgroup)
        };
        let chosen: Vec<&Cell> = CELLS.iter().filter(wanted).collect();
        let known: Vec<String> = CELLS.iter().map(Cell::name).collect();
        ensure!(
            !chosen.is_empty(),
            "no guest has this kernel and cgroup version; there are {}",
            known.join(", ")
        );
        Ok(chosen)
    }
}

/// Boots the chosen cells.
pub(crate) fn test(cells: &Cells) -> Tally {
    let mut tally = Tally::default();
    let dir = workspace::target_dir().join("guest");
    let cells = match cells.chosen() {
        Ok(cells) => cells,
        Err(error) => return failed(tally, "guest", &error),
    };
    if let Err(error) = command::run(&mut workspace::build_static_sexton()) {
        return failed(tally, "guest", &error);
    }
    let sexton = workspace::static_sexton();
    let store = match parts::Store::open(&dir) {
        Ok(store) => store,
        Err(error) => {
            cells
                .iter()
                .for_each(|cell| tally.not_run.push(not_run(cell, &error)));
            return tally;
        }
    };
    let mut machines = VecDeque::new();
    for cell in cells {
        match prepare(cell, &store, &sexton, &dir) {
            Err(error) => tally.not_run.push(not_run(cell, &error)),
            Ok(machine) => machines.push_back((cell, machine)),
        }
    }
    for judged in run_all(machines) {
        tally.add(judged);
    }
    tally
}

/// An emulator keeps one core busy, and most machines have more.
const AT_ONCE: usize = 2;

/// Boots all of them, a few at a time.
fn run_all(machines: VecDeque<(&Cell, Machine)>) -> Vec<Tally> {
    let queue = Mutex::new(machines);
    let next = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    };
    let work = || std::iter::from_fn(next).map(|(cell, machine)| run_twice(cell, &machine));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| scope.spawn(|| work().collect::<Vec<Tally>>()))
            .collect();
        let panicked = || {
            let error = anyhow::anyhow!("somebody who judged a guest panicked");
            vec![failed(Tally::default(), "guest", &error)]
        };
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .flat_map(|tallies| tallies.unwrap_or_else(|_| panicked()))
            .collect()
    })
}

/// Boots it, and if not all was well once more.
fn run_twice(cell: &Cell, machine: &Machine) -> Tally {
    let first = run(cell, machine);
    if first.failed == 0 {
        return first;
    }
    println!("{}: once more", cell.name());
    let mut again = run(cell, machine);
    if again.failed == 0 {
        again.unsteady = first.failures;
    }
    again
}

/// Boots it, and judges what comes of it.
fn run(cell: &Cell, machine: &Machine) -> Tally {
    match machine.run() {
        Err(error) => failed(Tally::default(), &cell.name(), &error),
        Ok(report) => judge(cell, machine, &report),
    }
}

fn failed(mut tally: Tally, what: &str, error: &anyhow::Error) -> Tally {
    println!("{what}: FAILED: {error:#}");
    tally.fail(Failure::new(what, &format!("{error:#}")));
    tally
}

fn not_run(cell: &Cell, error: &anyhow::Error) -> NotRun {
    println!("{}: NOT RUN: {error:#}", cell.name());
    NotRun {
        test: cell.name(),
        need: Some(Need::Guest),
        why: format!("{error:#}"),
    }
}

fn prepare(cell: &Cell, store: &parts::Store, sexton: &Path, dir: &Path) -> Result<Machine> {
    if std::env::consts::ARCH != "x86_64" {
        bail!("guests are x86_64 only");
    }
    let logs = dir.join("logs");
    fs::create_dir_all(&logs).with_context(|| format!("cannot create {}", logs.display()))?;
    let initramfs = dir.join("initramfs.cpio");
    boot::write_initramfs(&initramfs, &store.busybox()?, sexton)?;
    Ok(Machine {
        name: cell.name(),
        qemu: store.qemu()?,
        kernel: store.kernel(cell.kernel)?,
        initramfs,
        disk: dir.join(format!("disk-{}.img", cell.name())),
        logs,
        environment: expect::environment(cell),
    })
}

fn judge(cell: &Cell, machine: &Machine, report: &report::Report) -> Tally {
    let mut tally = Tally::default();
    for (what, check) in expect::CHECKS {
        match check(cell, report) {
            Ok(()) => {
                println!("test guest {} {what} ... ok", cell.name());
                tally.passed += 1;
            }
            Err(error) => {
                println!("test guest {} {what} ... FAILED: {error:#}", cell.name());
                let test = format!("{} {what}", cell.name());
                tally.fail(Failure::new(test, &format!("{error:#}")));
            }
        }
    }
    if tally.failed > 0 {
        machine.show_logs();
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kernel: Option<&str>, cgroup: Option<Cgroup>, expected: &[&str]) {
        let cells = Cells {
            kernel: kernel.map(str::to_owned),
            cgroup,
        };
        let names: Vec<String> = cells
            .chosen()
            .unwrap_or_default()
            .into_iter()
            .map(Cell::name)
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn cells_are_chosen_by_kernel_and_cgroup() {
        check(
            None,
            None,
            &["5.10-v1", "5.10-v2", "6.1-v1", "6.1-v2", "6.12-v2", "7-v2"],
        );
        check(Some("6.1"), None, &["6.1-v1", "6.1-v2"]);
        check(None, Some(Cgroup::V1), &["5.10-v1", "6.1-v1"]);
        check(Some("6.12"), Some(Cgroup::V1), &[]);
    }

    #[test]
    fn no_cell_is_an_error_that_names_those_there_are() {
        let cells = Cells {
            kernel: Some("6.13".into()),
            cgroup: None,
        };
        let error = cells.chosen().err().expect("no such cell").to_string();
        assert!(error.contains("6.12-v2"), "{error}");
    }
}
