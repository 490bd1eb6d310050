//! A true report passes every check, and each lie fails the one that is there for it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::guest::parts::{LINUX_5_10, LINUX_6_12, LINUX_7};

const OLD: Cell = Cell {
    kernel: &LINUX_5_10,
    cgroup: Cgroup::V1,
};
const OLD_V2: Cell = Cell {
    kernel: &LINUX_5_10,
    cgroup: Cgroup::V2,
};
const ORDINARY: Cell = Cell {
    kernel: &LINUX_6_12,
    cgroup: Cgroup::V2,
};
const CONTROL: Cell = Cell {
    kernel: &LINUX_7,
    cgroup: Cgroup::V2,
};

/// Directories before and after, and those in the part.
const N_DIRECTORIES: u64 = 13;
const N_IN_PART: u64 = 11;

const HOTPLUG: &str = "recorders 1\ncore_offline 1\ncore_online 1";

/// What each section of a report prints, and its exit code.
type Sections = BTreeMap<&'static str, (Value, i32)>;

fn truth(cell: &Cell) -> Sections {
    let n_dying: u64 = held(cell).map(|leak| leak.n).sum();
    let in_part = held(cell).filter(|leak| leak.parent.starts_with("/system.slice"));
    let n_part: u64 = in_part.map(|leak| leak.n).sum();
    let count = if cell.kernel.cache_holds {
        "memory_cgroups"
    } else {
        "memory_states"
    };
    let lines = |n: u64, node_kb: u64| {
        json!(format!(
            "{count} {n}\ndirectories {N_DIRECTORIES}\nlast_possible_node 1\n\
             node0_file_kb {node_kb}\nnode1_file_kb {node_kb}"
        ))
    };
    let part = format!("directories {N_IN_PART}\ndying {n_part}");
    let mut sections = Sections::from([
        ("before", (lines(N_DIRECTORIES, 100), 0)),
        ("after", (lines(N_DIRECTORIES + n_dying, 580), 0)),
        ("part", (json!(part), 0)),
        ("doctor", (checkup(), 0)),
        ("hotplug", (json!(HOTPLUG), 0)),
        ("stacks", (sampled(), 0)),
        ("unprivileged", (unprivileged(cell, n_dying), 3)),
        ("part-root", (census(cell, n_dying), 1)),
        ("part-unprivileged", (part_unprivileged(cell, n_part), 3)),
    ]);
    for name in censuses(cell) {
        sections.insert(name, (census(cell, n_dying), 1));
    }
    if cell.kernel.cache_holds {
        fixed(cell, &mut sections);
    }
    sections
}

/// What the job reports of a fix: without leave, v1 does not touch what has neighbours.
fn fixed(cell: &Cell, sections: &mut Sections) {
    let (outcome, why, n_left) = match (cell.cgroup, cell.kernel.has_reclaim) {
        (Cgroup::V1, _) => ("withheld", json!("--allow-siblings lets it"), N_MAPPED),
        (Cgroup::V2, true) => ("done", Value::Null, 0),
        (Cgroup::V2, false) => ("withheld", json!("has no memory.reclaim"), N_MAPPED),
    };
    let fix = json!({
        "schema": "sexton.fix/1", "before": N_SHARED + N_OWN + N_SHMEM + N_MAPPED,
        "after": N_SHMEM + n_left,
        "steps": [
            {"title": "drop the cached pages of the files that pin them", "outcome": "done",
             "after": N_SHMEM + N_MAPPED},
            {"title": "reclaim below their parents", "outcome": outcome, "why": why},
        ],
        "left": [{"dying": N_SHMEM, "why": "the tmpfs file /run/shared holds them"}],
    });
    let neighbour = json!("bytes 4100000\nlow 8192\ninner_low 0");
    let low = "/sys/fs/cgroup/system.slice/mapped.service/neighbour";
    let undo = format!(
        "{{\"path\":\"{low}/memory.low\",\"value\":\"8192\"}}\n\
         {{\"path\":\"{low}/inner/memory.low\",\"value\":\"0\"}}"
    );
    sections.insert("fix", (fix, 1));
    sections.insert("fix-before", (neighbour.clone(), 0));
    sections.insert("fix-after", (neighbour, 0));
    sections.insert("fix-undo", (json!(undo), 0));
}

fn census(cell: &Cell, n_dying: u64) -> Value {
    let mut origins = vec![json!({
        "origin": "/system.slice/live.service/<n>", "live": N_LIVE, "dying": 0
    })];
    origins.extend(held(cell).map(|leak| {
        let origin = format!("{}/{}", leak.parent, leak.child);
        json!({
            "origin": origin, "unit": leak.unit, "live": 0, "dying": leak.n,
            "pins": {leak.pin: leak.n}
        })
    }));
    let swapped = (1..=N_SWAPPED).map(
        |i| json!({"path": format!("{SWAPPED}/{i}"), "state": "dying", "pinned_by": "(swap)"}),
    );
    let total = N_DIRECTORIES + n_dying;
    let way = |method: &str, can: bool| json!({"method": method, "dying": can.then_some(n_dying)});
    json!({
        "schema": "sexton.zombies/1", "method": "bpf-walk", "gaps": [],
        "live": N_DIRECTORIES, "dying": n_dying, "total": total, "kernel_total": total,
        "origins": origins,
        "files": if cell.kernel.cache_holds { pin_files() } else { Vec::new() },
        "cgroups": swapped.collect::<Vec<_>>(),
        "methods": [
            way("bpf-walk", true),
            way("cgroup-stat", cell.cgroup == Cgroup::V2),
            way("proc-cgroups", cell.kernel.cache_holds),
        ],
    })
}

fn pin_files() -> Vec<Value> {
    let file = |path: &str, kind: &str, zombies: u64| json!({"path": path, "kind": kind, "zombies": zombies});
    let mut files = vec![
        file("/disk/shared.log", "file", N_SHARED),
        file("/run/shared", "shmem", N_SHMEM),
        file("/run/hostile", "shmem", N_HOSTILE),
    ];
    files.extend((0..N_OWN).map(|i| file(&format!("/disk/own.{i}"), "file", 1)));
    files
}

fn gone<'a>(leaks: impl Iterator<Item = &'a Leak>) -> Vec<Value> {
    leaks
        .map(
            |leak| json!({"origin": format!("{}/<gone>", leak.parent), "live": 0, "dying": leak.n}),
        )
        .collect()
}

fn unprivileged(cell: &Cell, n_dying: u64) -> Value {
    let total = N_DIRECTORIES + n_dying;
    let (method, origins) = match cell.cgroup {
        Cgroup::V1 => ("proc-cgroups", Vec::new()),
        Cgroup::V2 => ("cgroup-stat", gone(held(cell))),
    };
    json!({
        "method": method, "gaps": [{"kind": "denied", "why": "needs root"}], "origins": origins,
        "live": N_DIRECTORIES, "dying": n_dying, "total": total, "kernel_total": total,
        "leaked": null, "memory_bytes": null,
    })
}

fn part_unprivileged(cell: &Cell, n_dying: u64) -> Value {
    let mut census = unprivileged(cell, n_dying);
    census["gaps"] = json!([
        {"kind": "denied", "why": "needs root"},
        {"kind": "unsupported", "why": "/run/part shows only /system.slice of the hierarchy"},
    ]);
    match cell.cgroup {
        Cgroup::V1 => {
            census["kernel_total"] = json!(N_DIRECTORIES + n_dying + N_HOSTILE);
            census["live"] = Value::Null;
            census["dying"] = Value::Null;
        }
        Cgroup::V2 => {
            census["kernel_total"] = Value::Null;
            census["live"] = json!(N_IN_PART);
            census["total"] = json!(N_IN_PART + n_dying);
        }
    }
    census
}

/// The checks that fail on these sections.
fn failing(cell: &Cell, sections: &Sections) -> Vec<&'static str> {
    let mut text = String::new();
    for (name, (body, code)) in sections {
        let body = body
            .as_str()
            .map_or_else(|| body.to_string(), str::to_owned);
        text += &format!("sexton-guest: begin {name}\n{body}\nsexton-guest: end {name} {code}\n");
    }
    let report = Report::parse(&(text + "sexton-guest: done\n")).unwrap();
    let failed = CHECKS
        .iter()
        .filter(|(_, check)| check(cell, &report).is_err());
    failed.map(|(what, _)| *what).collect()
}

/// Asserts which checks fail when one value of one section is another. An empty pointer
/// replaces all that the section prints.
#[track_caller]
fn check(cell: &Cell, section: &str, pointer: &str, lie: Value, expected: &[Check]) {
    let mut sections = truth(cell);
    let (body, _) = sections.get_mut(section).unwrap();
    *body.pointer_mut(pointer).unwrap() = lie;
    assert_eq!(failing(cell, &sections), names(expected));
}

#[track_caller]
fn check_exit_code(section: &str, lie: i32, expected: &[Check]) {
    let mut sections = truth(&ORDINARY);
    sections.get_mut(section).unwrap().1 = lie;
    assert_eq!(failing(&ORDINARY, &sections), names(expected));
}

fn names(checks: &[Check]) -> Vec<&'static str> {
    let is_in = |check: &Check| {
        checks
            .iter()
            .any(|wanted| std::ptr::fn_addr_eq(*wanted, *check))
    };
    let listed = CHECKS.iter().filter(|(_, check)| is_in(check));
    listed.map(|(what, _)| *what).collect()
}

#[test]
fn a_true_report_passes() {
    for cell in [&OLD, &OLD_V2, &ORDINARY, &CONTROL] {
        assert!(failing(cell, &truth(cell)).is_empty(), "{}", cell.name());
    }
}

#[test]
fn a_lie_of_the_walk_is_caught() {
    let lie =
        |pointer, lie, expected: Check| check(&ORDINARY, "zombies", pointer, lie, &[expected]);
    lie("/method", json!("proc"), sees_everything);
    lie("/gaps", json!([{}]), sees_everything);
    lie("/dying", json!(240), counts);
    lie("/kernel_total", json!(null), counts);
    lie("/origins/0/live", json!(4), origins);
    lie("/origins/2/dying", json!(12), origins);
    lie("/origins/2/unit", json!(null), origins);
    lie("/origins/3/pins/shmem", json!(16), origins);
    lie("/origins/4/pins/other", json!(6), origins);
    lie(
        "/origins/5/origin",
        json!("/machine.slice/red\u{1b}[m\u{fffd}"),
        origins,
    );
    lie("/files/0/zombies", json!(210), files);
    lie("/files/7/path", json!("/disk/other"), files);
    lie("/cgroups/3/pinned_by", json!(null), swap);
    lie("/methods/1/dying", json!(248), other_ways);
    check_exit_code("zombies", 0, &[sees_everything]);
}

#[test]
fn a_lie_about_classic_lists_is_caught() {
    check(&ORDINARY, "classic", "/files/1/zombies", json!(8), &[files]);
    check(&ORDINARY, "classic", "/dying", json!(240), &[counts]);
    let mut sections = truth(&ORDINARY);
    sections.remove("classic");
    assert!(!failing(&ORDINARY, &sections).is_empty());
}

#[test]
fn pages_on_one_node_are_caught() {
    let text = truth(&ORDINARY)["after"].0.as_str().unwrap().to_owned();
    let lie = |from, to| {
        check(
            &ORDINARY,
            "after",
            "",
            json!(text.replace(from, to)),
            &[nodes],
        )
    };
    lie("node1_file_kb 580", "node1_file_kb 120");
    lie("last_possible_node 1", "last_possible_node 0");
}

#[test]
fn a_lie_without_root_is_caught() {
    for (cell, other) in [(&OLD, "cgroup-stat"), (&ORDINARY, "proc-cgroups")] {
        let lie = |pointer, lie| check(cell, "unprivileged", pointer, lie, &[blind::unprivileged]);
        lie("/method", json!(other));
        lie("/gaps", json!([]));
        lie("/dying", json!(0));
        lie("/live", json!(12));
        lie("/leaked", json!(0));
        lie("/memory_bytes", json!(0));
    }
    let lie = |pointer, lie| {
        check(
            &ORDINARY,
            "unprivileged",
            pointer,
            lie,
            &[blind::unprivileged],
        )
    };
    lie("/origins/0/dying", json!(210));
    lie("/origins/3/origin", json!("/swapped.service/<gone>"));
    check(
        &OLD,
        "unprivileged",
        "/origins",
        json!([{}]),
        &[blind::unprivileged],
    );
    check_exit_code("unprivileged", 1, &[blind::unprivileged]);
}

#[test]
fn a_lie_about_a_part_is_caught() {
    let root: &[Check] = &[blind::part_with_root];
    check(&ORDINARY, "part-root", "/dying", json!(248), root);
    check(
        &ORDINARY,
        "part-root",
        "/method",
        json!("cgroup-stat"),
        root,
    );
    let nobody: &[Check] = &[blind::part_without_root];
    for cell in [&OLD, &ORDINARY] {
        check(cell, "part-unprivileged", "/dying", json!(251), nobody);
        check(cell, "part-unprivileged", "/gaps/1/why", json!("?"), nobody);
    }
    check(&OLD, "part-unprivileged", "/dying", json!(0), nobody);
    let lie = |pointer, lie| check(&ORDINARY, "part-unprivileged", pointer, lie, nobody);
    lie("/kernel_total", json!(259));
    lie("/origins/0/origin", json!("/shared.service/<gone>"));
    check_exit_code("part-unprivileged", 0, nobody);
}

#[test]
fn a_lie_about_the_control_is_caught() {
    check(
        &CONTROL,
        "zombies",
        "/methods/2/dying",
        json!(7),
        &[other_ways],
    );
    check(&CONTROL, "zombies", "/total", json!(19), &[counts]);
    let files_of_old = json!(pin_files());
    check(&CONTROL, "zombies", "/files", files_of_old, &[files]);
    let mut sections = truth(&CONTROL);
    let (after, _) = sections.get_mut("after").unwrap();
    *after = json!(
        after
            .as_str()
            .unwrap()
            .replace("memory_states 20", "memory_states 29")
    );
    assert!(failing(&CONTROL, &sections).contains(&names(&[kernel_counts])[0]));
}

#[test]
fn a_core_that_is_not_missed_is_caught() {
    for (true_line, lie) in [
        ("recorders 1\n", ""),
        ("core_offline 1", "core_offline 0"),
        ("core_online 1", "core_online 0"),
    ] {
        let lie = json!(HOTPLUG.replace(true_line, lie));
        check(&ORDINARY, "hotplug", "", lie, &[hotplug]);
    }
}

#[test]
fn a_doctor_that_fails_is_caught() {
    check_exit_code("doctor", 2, &[doctor]);
    check(
        &ORDINARY,
        "doctor",
        "/sensors/6/state",
        json!("blind"),
        &[doctor],
    );
    check(&ORDINARY, "doctor", "/sensors", json!([]), &[doctor]);
}

#[test]
fn a_fix_that_freed_too_little_or_too_much_is_caught() {
    let lie = |pointer, lie, expected: Check| check(&ORDINARY, "fix", pointer, lie, &[expected]);
    lie("/steps/0/after", json!(200), fix::files);
    lie("/steps/0/outcome", json!("failed"), fix::files);
    lie("/left/0/dying", json!(3), fix::tmpfs);
    lie("/left", json!([]), fix::tmpfs);
    lie("/steps/1/outcome", json!("withheld"), fix::mapped);
    lie("/after", json!(0), fix::mapped);
    let lie = |pointer, lie| check(&OLD_V2, "fix", pointer, lie, &[fix::mapped]);
    lie("/steps/1/why", json!("permission denied"));
    lie("/steps/1/outcome", json!("failed"));
    lie("/after", json!(N_SHMEM));
}

#[test]
fn a_fix_that_harms_neighbours_is_caught() {
    let lie = |section, lie: &str| check(&ORDINARY, section, "", json!(lie), &[fix::neighbour]);
    lie("fix-after", "bytes 3500000\nlow 8192\ninner_low 0");
    lie("fix-after", "bytes 4100000\nlow 4100000\ninner_low 0");
    lie("fix-after", "bytes 4100000\nlow 8192\ninner_low 4096");
    lie("fix-undo", "");
}

#[test]
fn a_sampler_that_sees_nothing_is_caught() {
    check_exit_code("stacks", 2, &[stacks]);
    let lie = |pointer, lie| check(&ORDINARY, "stacks", pointer, lie, &[stacks]);
    lie("/samples", json!(12));
    lie("/functions/0/module", json!("/bin/busybox"));
    lie("/functions/0/function", json!("[unknown]"));
}

fn sampled() -> Value {
    let function = json!({"function": "do_syscall_64", "module": "[kernel]"});
    json!({"samples": 600, "functions": [function]})
}

/// Every sensor that must see does.
fn checkup() -> Value {
    let sees = |sensor: &&str| json!({"sensor": sensor, "state": "sees"});
    json!({"sensors": SEEING.iter().map(sees).collect::<Vec<_>>()})
}
