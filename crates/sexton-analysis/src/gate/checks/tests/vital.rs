//! Vital signs of the gate.

use super::*;

#[test]
fn a_crowd_that_lasts_saturates_the_cores() {
    let node = |runnable, pressure| {
        let mut node = quiet();
        let told = ["host", "cores", "pressure"];
        node.records
            .retain(|record| !told.contains(&record.sensor.as_ref()));
        node.records.extend(crowd(runnable, pressure));
        let signs = vital_signs().into_iter();
        node.records
            .extend(signs.filter(|sign| sign.sensor == "pressure"));
        node
    };
    node(80.0, Some(1.0)).check("cpu_saturated", Passed::No, Some(40.0));
    // A build that uses all cores, and a crowd of a moment.
    node(5.0, Some(1.0)).check("cpu_saturated", Passed::Yes, Some(2.5));
    node(80.0, Some(0.1)).check("cpu_saturated", Passed::Yes, Some(40.0));
    node(80.0, None).check("cpu_saturated", Passed::Unknown, Some(40.0));
    let mut blind = quiet();
    blind.gap("cores", Why::Denied);
    blind.check("cpu_saturated", Passed::Unknown, None);
}

#[test]
fn vital_signs_that_are_not_normal_fail() {
    let node = Subject::node;
    let changed = |records: Vec<Record>| {
        let mut node = quiet();
        node.records.extend(records);
        node
    };
    let fact = &PRESSURE_MEMORY_SOME_AVG10_RATIO;
    let strained = changed(sample("pressure", node(), fact, 0.4));
    strained.check("memory_pressure", Passed::No, Some(0.4));
    let stalled = changed(sample(
        "pressure",
        node(),
        &PRESSURE_IO_FULL_AVG10_RATIO,
        1.0,
    ));
    stalled.check("io_pressure", Passed::No, Some(1.0));
    let piled = changed(sample("processes", node(), &PROCESSES_DEFUNCT, 2_000.0));
    piled.check("defunct_processes", Passed::No, Some(2_000.0));
    let hung = changed(sample(
        "processes",
        node(),
        &PROCESSES_UNINTERRUPTIBLE,
        80.0,
    ));
    hung.check("uninterruptible_tasks", Passed::No, Some(80.0));
    let limit = Subject::new(SubjectKind::Limit, "fs.file-max");
    let near = changed(sample("limits", limit, &LIMIT_USED_RATIO, 0.95));
    near.check("limit_used", Passed::No, Some(0.95));
    let tight = |refused: f64| {
        let one = || Subject::new(SubjectKind::Limit, "pids.max /one.service");
        let mut records = sample("limits", one(), &LIMIT_USED_RATIO, 1.0);
        records.extend(sample("limits", one(), &LIMIT_MOST, 1.0));
        records.extend(sample("limits", one(), &LIMIT_HITS, refused));
        changed(records)
    };
    // The limit of pid_max of the quiet node is nearest.
    tight(0.0).check("limit_used", Passed::Yes, Some(0.1));
    tight(2.0).check("limit_used", Passed::No, Some(1.0));
    let root = Subject::new(SubjectKind::Mount, "/");
    let mut full = sample("filesystems", root.clone(), &FS_USED_RATIO, 0.999);
    full.extend(sample("filesystems", root, &FS_AVAILABLE_BYTES, 1e6));
    changed(full).check("bad_filesystems", Passed::No, Some(1.0));
}

#[test]
fn oom_kills_count_for_ten_minutes() {
    let mut node = quiet();
    node.event(100, "oom_kill", "kernel");
    node.event(850, "oom_kill", "userspace");
    node.check("oom_kills", Passed::Yes, Some(0.0));
    node.event(850, "oom_kill", "kernel");
    node.check("oom_kills", Passed::No, Some(1.0));
}

#[test]
fn why_a_filesystem_is_read_only_may_be_in_lines_that_are_gone() {
    let with = |fs_type: &str, read_only: &str, is_cut: bool| {
        let mut out = Sink::new("filesystems", Moment::from_ns(900 * SECOND));
        let (now, root) = (out.now(), Subject::new(SubjectKind::Mount, "/"));
        let fields = [("fs_type", fs_type), ("read_only", read_only)];
        out.event(now, &root, &FS_SEEN, testing::event(&FS_SEEN, &fields));
        if is_cut {
            let text = "the first lines were overwritten";
            out.gap(&Subject::node(), Gap::new("klog", Why::Lost(0), text));
        }
        let mut node = quiet();
        node.records.extend(out.into_records());
        node
    };
    let passes = |node: Node| node.check("bad_filesystems", Passed::Yes, Some(0.0));
    passes(with("ext4", "true", false));
    passes(with("ext4", "false", true));
    passes(with("squashfs", "true", true));
    with("ext4", "true", true).check("bad_filesystems", Passed::Unknown, Some(0.0));
}

/// A check that may not look does not pass.
#[test]
fn vital_signs_that_are_not_seen_are_unknown() {
    for (sensor, check) in [("limits", "limit_used"), ("filesystems", "bad_filesystems")] {
        let mut node = quiet();
        node.gap(sensor, Why::Denied);
        node.check(check, Passed::Unknown, None);
    }
    let mut node = quiet();
    node.gap("klog", Why::Denied);
    node.check("oom_kills", Passed::Unknown, Some(0.0));
    for sensor in ["pressure", "processes"] {
        let mut node = quiet();
        node.gap(sensor, Why::Denied);
        let checks = node.judge(&GatePolicy::default());
        let unknown = checks
            .iter()
            .filter(|check| check.passed == Passed::Unknown);
        assert_eq!(unknown.count(), 2, "{sensor}: {checks:#?}");
    }
}
