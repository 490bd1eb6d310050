use sexton_model::fact::memory::{MEMORY_CGROUP, MEMORY_TASK, MemoryCgroup, MemoryTask};
use sexton_model::fact::pressure::PRESSURE_MEMORY_FULL_RATIO;
use sexton_model::record::Sink;

use super::*;
use crate::testing::{Watch, at};

const MIB: f64 = 1024.0 * 1024.0;

/// What a node does in every second of 20.
#[derive(Clone, Copy)]
struct Second {
    some: f64,
    full: f64,
    io: f64,
    /// Read from disks in MiB, again what was reclaimed, from swap.
    read: f64,
    reread: f64,
    swapped_in: f64,
}

const THRASHES: Second = Second {
    some: 0.4,
    full: 0.1,
    io: 0.3,
    read: 120.0,
    reread: 110.0,
    swapped_in: 0.0,
};

/// A page cache that is dropped and read without anybody waiting.
const CACHE: Second = Second {
    some: 0.04,
    full: 0.0,
    io: 0.2,
    ..THRASHES
};

fn watch(second: Second, seconds: u64) -> Watch {
    let mut watch = Watch::new(100, 20);
    let node = Subject::node();
    for i in 0..seconds {
        let mut out = Sink::new("pressure", at(100 + i));
        out.sample(&node, &PRESSURE_MEMORY_SOME_RATIO, second.some);
        out.sample(&node, &PRESSURE_MEMORY_FULL_RATIO, second.full);
        out.sample(&node, &PRESSURE_IO_SOME_RATIO, second.io);
        watch.add(out);
        let mut out = Sink::new("memory", at(100 + i));
        let seconds = i as f64;
        for (fact, mib) in [
            (&fact::MEMORY_READ_IN_BYTES, second.read * seconds),
            (&fact::MEMORY_REFAULT_BYTES, second.reread * seconds),
            (&fact::MEMORY_SWAPPED_IN_BYTES, second.swapped_in * seconds),
            (&fact::MEMORY_SWAPPED_OUT_BYTES, second.swapped_in * seconds),
            (&fact::MEMORY_AVAILABLE_BYTES, 400.0),
            (&fact::MEMORY_TOTAL_BYTES, 4_096.0),
        ] {
            out.sample(&node, fact, mib * MIB);
        }
        out.sample(&node, &fact::MEMORY_ALLOCATION_STALLS, 0.0);
        watch.add(out);
    }
    watch
}

/// A look every 4 s at cgroups: path, limit in MiB, times the limit was reached, seconds of
/// waiting.
fn look(watch: &mut Watch, cgroups: &[(&str, Option<f64>, u64, Option<f64>)]) {
    for i in (4..20).step_by(4) {
        let mut out = Sink::new("memory", at(100 + i));
        for (path, limit, hits, stalled) in cgroups {
            let says = MemoryCgroup {
                used_bytes: (limit.unwrap_or(900.0) * MIB) as u64,
                limit_bytes: limit.map(|limit| (limit * MIB) as u64),
                limit_hits: *hits,
                stalled_ns: stalled.map(|seconds| (seconds * 1e9) as u64),
                within_ns: 4_000_000_000,
                ..MemoryCgroup::default()
            };
            let cgroup = Subject::new(SubjectKind::Cgroup, *path);
            out.event(out.now(), &cgroup, &MEMORY_CGROUP, says);
        }
        let says = MemoryTask {
            comm: Some("postgres".into()),
            cgroup: Some("/system.slice/db.service".into()),
            major_faults: 4_000,
            within_ns: 4_000_000_000,
            ..MemoryTask::default()
        };
        let process = Subject::new(SubjectKind::Process, "812");
        out.event(out.now(), &process, &MEMORY_TASK, says);
        watch.add(out);
    }
}

const DB: (&str, Option<f64>, u64, Option<f64>) =
    ("/system.slice/db.service", Some(64.0), 900, Some(1.5));

fn judged(mut watch: Watch, cgroups: &[(&str, Option<f64>, u64, Option<f64>)]) -> Vec<Finding> {
    look(&mut watch, cgroups);
    watch.judge(&RULE).findings
}

#[track_caller]
fn only(found: &[Finding]) -> &Finding {
    let [found] = found else {
        panic!("one finding, not {found:#?}")
    };
    found
}

#[test]
fn a_cgroup_that_thrashes_at_its_limit_is_named_with_its_process() {
    let found = judged(watch(THRASHES, 20), &[DB]);
    let found = only(&found);
    assert_eq!(
        found.title,
        "db.service needs more memory than its limit of 64 MiB: tasks wait for memory 40 % of the \
         time"
    );
    assert_eq!(found.subject, Subject::new(SubjectKind::Unit, "db.service"));
    assert!(found.touches(&Subject::new(SubjectKind::Process, "812")));
    assert_eq!(found.confidence, Confidence::CERTAIN);
    assert_eq!(found.severity, Severity::Warning);
    let raise = "sudo systemctl set-property --runtime db.service MemoryMax=134217728";
    assert_eq!(found.remedies[0].command.as_deref(), Some(raise));
}

#[test]
fn waiting_for_what_is_read_again_counts_whatever_the_kernel_calls_it() {
    let second = Second {
        some: 0.05,
        io: 0.9,
        ..THRASHES
    };
    let found = judged(watch(second, 20), &[DB]);
    assert!(
        only(&found)
            .title
            .ends_with("tasks wait 90 % of the time for pages read again"),
        "{}",
        found[0].title
    );
    // The same wait for data that is read for the first time is not for lack of memory.
    let fresh = Second {
        reread: 10.0,
        ..second
    };
    assert!(judged(watch(fresh, 20), &[DB]).is_empty());
}

#[test]
fn page_cache_that_is_dropped_without_a_wait_is_innocent() {
    assert!(judged(watch(CACHE, 20), &[DB]).is_empty());
}

#[test]
fn a_few_seconds_of_reclaim_are_ordinary() {
    assert!(judged(watch(THRASHES, 8), &[DB]).is_empty());
}

#[test]
fn the_one_whose_tasks_wait_is_named_and_not_the_one_that_only_drops_cache() {
    let cache = (
        "/system.slice/backup.service",
        Some(128.0),
        9_000,
        Some(0.1),
    );
    let found = judged(watch(THRASHES, 20), &[cache, DB]);
    assert!(
        only(&found).title.starts_with("db.service needs"),
        "{}",
        found[0].title
    );
    // On v1 the kernel does not say who waits: two that are at their limit alike are both only evidence.
    let v1 = [
        ("/a.slice/a.service", Some(64.0), 500, None),
        ("/b.slice/b.service", Some(64.0), 500, None),
    ];
    let found = judged(watch(THRASHES, 20), &v1);
    assert_eq!(only(&found).subject, Subject::node());
    let found = judged(watch(THRASHES, 20), &v1[..1]);
    assert_eq!(only(&found).confidence, Confidence::LIKELY);
}

/// On a node of many busy cores its own pressure hides what one cgroup suffers.
#[test]
fn the_pressure_of_a_cgroup_is_enough() {
    let judged = |some: f64| {
        let quiet = Second {
            some: 0.02,
            io: 0.02,
            reread: 0.0,
            ..THRASHES
        };
        let mut watch = watch(quiet, 20);
        let cgroup = Subject::new(SubjectKind::Cgroup, "/system.slice/db.service");
        for i in 0..20 {
            let mut out = Sink::new("pressure", at(100 + i));
            out.sample(&cgroup, &PRESSURE_MEMORY_SOME_RATIO, some);
            watch.add(out);
        }
        watch.judge(&RULE).findings
    };
    let found = judged(0.7);
    assert_eq!(
        only(&found).title,
        "db.service needs more memory than its limit: tasks wait for memory 70 % of the time"
    );
    assert!(judged(0.3).is_empty());
}

#[test]
fn a_node_that_swaps_says_who_has_most() {
    let swaps = Second {
        swapped_in: 30.0,
        full: 0.7,
        ..THRASHES
    };
    let found = judged(
        watch(swaps, 20),
        &[("/system.slice/java.service", None, 0, Some(9.0))],
    );
    let found = only(&found);
    assert_eq!(
        found.title,
        "the node swaps 30 MiB/s in and 30 MiB/s out, java.service has most (900 MiB): \
         tasks wait for memory 40 % of the time"
    );
    assert_eq!(found.severity, Severity::Serious);
    assert_eq!(found.subject, Subject::node());
}

/// What is not measured is not called normal.
#[test]
fn without_a_source_it_is_not_judged() {
    let not_judged = |watch: Watch| watch.judge(&RULE).not_judged.len();
    assert_eq!(not_judged(Watch::blind("memory", "no procfs")), 1);
    assert_eq!(not_judged(watch(CACHE, 20)), 0);
    // Without pressure, tasks in uninterruptible sleep must do.
    assert_eq!(not_judged(watch(CACHE, 20).without("pressure")), 0);
    let neither = watch(CACHE, 20).without("pressure").without("processes");
    assert_eq!(not_judged(neither), 1);
}

#[test]
fn without_pressure_tasks_that_wait_for_reads_are_a_possible_sign() {
    let mut watch = watch(THRASHES, 20).without("pressure");
    for i in (0..20).step_by(5) {
        let mut out = Sink::new("processes", at(100 + i));
        out.sample(&Subject::node(), &TASKS_WAITING_FOR_IO, 2.0);
        watch.add(out);
    }
    let found = judged(watch, &[DB]);
    assert_eq!(only(&found).confidence, Confidence::POSSIBLE);
}
