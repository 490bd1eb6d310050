//! What a guest's report must say.
//!
//! The numbers are prime and made here only: the job gets them as its environment.

mod blind;
mod fix;
#[cfg(test)]
mod tests;
mod value;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::report::Report;
use super::{Cell, Cgroup};
use value::{expect, find, list, number};

/// Dying cgroups pinned by one file on ext4, which all of them wrote to.
const N_SHARED: u64 = 211;
/// Dying cgroups pinned by a file of their own on ext4.
const N_OWN: u64 = 13;
/// Dying cgroups pinned by one file on tmpfs.
const N_SHMEM: u64 = 17;
/// Dying cgroups pinned by a page of tmpfs that is swapped out.
const N_SWAPPED: u64 = 7;
/// Dying cgroups with a name that no terminal should see.
const N_HOSTILE: u64 = 1;
/// Dying cgroups pinned by a file on ext4 that a process has mapped. Made last, to be freed.
const N_MAPPED: u64 = 5;
/// Cgroups that are well.
const N_LIVE: u64 = 5;

/// Pages that were written and are still in memory.
const N_CACHED: u64 = N_SHARED + N_OWN + N_SHMEM + N_HOSTILE;

/// Where page cache holds no cgroup, a few may still be on their way out.
const MAX_LEFT_OVER: u64 = 8;

const PAGE_KB: u64 = 4;

/// Dying cgroups that were made alike.
struct Leak {
    parent: &'static str,
    /// How the origin of all of them ends.
    child: &'static str,
    unit: Option<&'static str>,
    /// The key of what pins them.
    pin: &'static str,
    n: u64,
}

const LEAKS: &[Leak] = &[
    Leak {
        parent: "/system.slice/shared.service",
        child: "<n>",
        unit: Some("shared.service"),
        pin: "file",
        n: N_SHARED,
    },
    Leak {
        parent: "/system.slice/own.service",
        child: "<n>",
        unit: Some("own.service"),
        pin: "file",
        n: N_OWN,
    },
    Leak {
        parent: "/system.slice/shmem.service",
        child: "<n>",
        unit: Some("shmem.service"),
        pin: "shmem",
        n: N_SHMEM,
    },
    Leak {
        parent: SWAPPED,
        child: "<n>",
        unit: Some("swapped.service"),
        pin: "other",
        n: N_SWAPPED,
    },
    Leak {
        parent: "/machine.slice",
        child: r"red\033[m\377",
        unit: None,
        pin: "shmem",
        n: N_HOSTILE,
    },
];

const SWAPPED: &str = "/system.slice/swapped.service";

/// Those that must still be there in this cell.
fn held(cell: &Cell) -> impl Iterator<Item = &'static Leak> {
    let cache_holds = cell.kernel.cache_holds;
    LEAKS
        .iter()
        .filter(move |leak| cache_holds || leak.parent == SWAPPED)
}

/// The sections that are a census by root: one for each kind of page lists.
fn censuses(cell: &Cell) -> &'static [&'static str] {
    if cell.kernel.has_generations {
        &["zombies", "classic"]
    } else {
        &["zombies"]
    }
}

pub(super) fn environment(cell: &Cell) -> Vec<String> {
    let numbers = [
        ("n_shared", N_SHARED),
        ("n_own", N_OWN),
        ("n_shmem", N_SHMEM),
        ("n_swapped", N_SWAPPED),
        ("n_mapped", N_MAPPED),
        ("n_live", N_LIVE),
    ];
    let numbers = numbers
        .iter()
        .map(|(name, number)| format!("{name}={number}"));
    // Where cache holds no dying cgroup there is nothing to be freed.
    let fix = if cell.kernel.cache_holds { "yes" } else { "no" };
    [
        format!("cgroup={}", cell.cgroup.name()),
        format!("fix={fix}"),
    ]
    .into_iter()
    .chain(numbers)
    .collect()
}

pub(super) type Check = fn(&Cell, &Report) -> Result<()>;

pub(super) const CHECKS: &[(&str, Check)] = &[
    ("the kernel counts the dying cgroups we made", kernel_counts),
    ("their pages lie on two nodes", nodes),
    ("zombies sees everything", sees_everything),
    ("zombies counts what the kernel counts", counts),
    ("zombies says what other ways would count", other_ways),
    ("zombies names the origins", origins),
    ("zombies names the files that pin them", files),
    ("zombies tells swap as a pin", swap),
    ("doctor finds the sensors seeing", doctor),
    ("samples of stacks show the kernel's functions", stacks),
    (
        "zombies without root counts, and says what it cannot see",
        blind::unprivileged,
    ),
    (
        "zombies that sees a part of the hierarchy counts all of it",
        blind::part_with_root,
    ),
    (
        "zombies that sees a part, without root, says so",
        blind::part_without_root,
    ),
    ("fix frees what files on a disk hold", fix::files),
    ("fix leaves what tmpfs holds, and names it", fix::tmpfs),
    (
        "fix reclaims what is mapped, or says why it does not",
        fix::mapped,
    ),
    (
        "fix leaves neighbours their cache and their protection",
        fix::neighbour,
    ),
    ("a core that goes and comes back is told", hotplug),
];

fn hotplug(_: &Cell, report: &Report) -> Result<()> {
    for what in ["recorders", "core_offline", "core_online"] {
        ensure!(report.number("hotplug", what)? > 0, "there is no {what}");
    }
    Ok(())
}

/// All memory cgroups the kernel tracks.
fn all(report: &Report, section: &str) -> Result<u64> {
    report
        .number(section, "memory_cgroups")
        .or_else(|_| report.number(section, "memory_states"))
}

/// What the kernel tracks, less what has a directory.
fn dying(report: &Report, section: &str) -> Result<u64> {
    let (all, directories) = (
        all(report, section)?,
        report.number(section, "directories")?,
    );
    all.checked_sub(directories)
        .with_context(|| format!("{section}: {all} cgroups, yet {directories} directories"))
}

fn kernel_counts(cell: &Cell, report: &Report) -> Result<()> {
    let (before, after) = (dying(report, "before")?, dying(report, "after")?);
    let n_held: u64 = held(cell).map(|leak| leak.n).sum();
    let n_left_over = if cell.kernel.cache_holds {
        0
    } else {
        MAX_LEFT_OVER
    };
    ensure!(
        (before + n_held..=before + n_held + n_left_over).contains(&after),
        "{before} dying before, {after} after, and {n_held} that something holds were made"
    );
    Ok(())
}

/// The leaks were made half on each node. The counter of a node lags by a few pages, and
/// the job itself needs some, so a third has to do.
fn nodes(_: &Cell, report: &Report) -> Result<()> {
    let last = report.number("after", "last_possible_node")?;
    ensure!(last == 1, "the last possible node is {last}");
    for node in ["node0_file_kb", "node1_file_kb"] {
        let (before, after) = (
            report.number("before", node)?,
            report.number("after", node)?,
        );
        ensure!(
            after >= before + N_CACHED * PAGE_KB / 3,
            "{node}: {before} before, {after} after, and {N_CACHED} pages were written"
        );
    }
    Ok(())
}

/// Runs a check on each census that root took.
fn each_census(
    cell: &Cell,
    report: &Report,
    check: impl Fn(&Value, &str) -> Result<()>,
) -> Result<()> {
    for name in censuses(cell) {
        check(&report.json(name)?, name).with_context(|| format!("census {name}"))?;
    }
    Ok(())
}

fn sees_everything(cell: &Cell, report: &Report) -> Result<()> {
    each_census(cell, report, |census, name| {
        let exit_code = report.section(name)?.exit_code;
        ensure!(exit_code == 1, "exit code {exit_code}");
        expect(census, "/schema", "sexton.zombies/1")?;
        expect(census, "/method", "bpf-walk")?;
        expect(census, "/gaps", Value::Array(Vec::new()))
    })
}

fn counts(cell: &Cell, report: &Report) -> Result<()> {
    each_census(cell, report, |census, _| {
        expect_counts(census, report)?;
        expect(census, "/kernel_total", all(report, "after")?)
    })
}

/// What is said of the whole node agrees with the kernel.
fn expect_counts(census: &Value, report: &Report) -> Result<()> {
    expect(census, "/dying", dying(report, "after")?)?;
    expect(census, "/live", report.number("after", "directories")?)?;
    expect(census, "/total", all(report, "after")?)
}

/// A file that has no such number gives no count, whatever the walk says.
fn other_ways(cell: &Cell, report: &Report) -> Result<()> {
    let dying = dying(report, "after")?;
    let has_line = report.number("after", "memory_cgroups").is_ok();
    each_census(cell, report, |census, _| {
        for (method, can) in [
            ("bpf-walk", true),
            ("cgroup-stat", cell.cgroup == Cgroup::V2),
            ("proc-cgroups", has_line),
        ] {
            let way = find(census, "methods", "method", method)?;
            expect(way, "/dying", can.then_some(dying)).with_context(|| method.to_owned())?;
        }
        Ok(())
    })
}

fn origins(cell: &Cell, report: &Report) -> Result<()> {
    each_census(cell, report, |census, _| {
        let name = "/system.slice/live.service/<n>";
        expect_origin(census, name, N_LIVE, 0)?;
        for Leak {
            parent,
            child,
            unit,
            pin,
            n,
        } in held(cell)
        {
            let name = format!("{parent}/{child}");
            let origin = expect_origin(census, &name, 0, *n)?;
            expect(origin, "/unit", *unit).with_context(|| name.clone())?;
            let pages = number(origin, &format!("/pins/{pin}")).with_context(|| name.clone())?;
            ensure!(
                pages >= *n,
                "{name}: {n} cgroups wrote a page each, but pins.{pin} is {pages}"
            );
        }
        Ok(())
    })
}

fn expect_origin<'a>(
    census: &'a Value,
    name: &str,
    n_live: u64,
    n_dying: u64,
) -> Result<&'a Value> {
    let origin = find(census, "origins", "origin", name)?;
    expect(origin, "/live", n_live).with_context(|| name.to_owned())?;
    expect(origin, "/dying", n_dying).with_context(|| name.to_owned())?;
    Ok(origin)
}

fn files(cell: &Cell, report: &Report) -> Result<()> {
    each_census(cell, report, |census, _| {
        if !cell.kernel.cache_holds {
            let n_files = list(census, "files")?.len() as u64;
            ensure!(n_files <= MAX_LEFT_OVER, "{n_files} files pin something");
            return Ok(());
        }
        let mut expected = vec![
            ("/disk/shared.log".to_owned(), "file", N_SHARED),
            ("/run/shared".to_owned(), "shmem", N_SHMEM),
            ("/run/hostile".to_owned(), "shmem", N_HOSTILE),
        ];
        expected.extend((0..N_OWN).map(|i| (format!("/disk/own.{i}"), "file", 1)));
        for (path, kind, n_zombies) in expected {
            let file = find(census, "files", "path", &path)?;
            expect(file, "/kind", kind).with_context(|| path.clone())?;
            expect(file, "/zombies", n_zombies).with_context(|| path.clone())?;
        }
        Ok(())
    })
}

fn swap(cell: &Cell, report: &Report) -> Result<()> {
    each_census(cell, report, |census, _| {
        for i in 1..=N_SWAPPED {
            let path = format!("{SWAPPED}/{i}");
            let cgroup = find(census, "cgroups", "path", &path)?;
            expect(cgroup, "/state", "dying").with_context(|| path.clone())?;
            expect(cgroup, "/pinned_by", "(swap)").with_context(|| path.clone())?;
        }
        Ok(())
    })
}

/// Sensors that must see all there is in a guest. The others miss something that is not
/// in every guest: pressure accounting, systemd, a container runtime.
const SEEING: &[&str] = &[
    "memcg", "cgroups", "cores", "exits", "host", "klog", "napi", "nics", "runq",
];

fn doctor(_: &Cell, report: &Report) -> Result<()> {
    let exit_code = report.section("doctor")?.exit_code;
    ensure!(matches!(exit_code, 0 | 3), "exit code {exit_code}");
    let checkup = report.json("doctor")?;
    for sensor in SEEING {
        let sight = find(&checkup, "sensors", "sensor", sensor)?;
        expect(sight, "/state", "sees").with_context(|| format!("{sight:#}"))?;
    }
    Ok(())
}

/// Samples that there are at least: those of two CPUs at 99 a second for a second and a half of
/// the fifteen, because an emulated machine is slow.
const N_SAMPLES: u64 = 297;

/// The program that samples was loaded, ran on its timer, and its addresses have names.
fn stacks(_: &Cell, report: &Report) -> Result<()> {
    let exit_code = report.section("stacks")?.exit_code;
    ensure!(exit_code == 0, "exit code {exit_code}");
    let top = report.json("stacks")?;
    let n = number(&top, "/samples")?;
    ensure!(n >= N_SAMPLES, "only {n} samples");
    let functions = list(&top, "functions")?;
    let is_named = |function: &&Value| {
        function["module"] == "[kernel]" && function["function"].as_str() != Some("[unknown]")
    };
    let n_kernel = functions.iter().filter(is_named).count();
    ensure!(
        n_kernel > 0,
        "no function of the kernel has a name: {top:#}"
    );
    Ok(())
}
