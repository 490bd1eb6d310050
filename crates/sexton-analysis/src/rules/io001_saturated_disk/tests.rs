use sexton_model::fact::disk::{self as fact, DiskSeen, DiskUse};
use sexton_model::record::Sink;

use super::*;
use crate::testing::{Watch, at};

/// What a disk does each second of a story of 20 s.
#[derive(Clone, Copy)]
struct Second {
    busy: f64,
    latency_ms: f64,
    completed: f64,
    some: f64,
}

const SATURATED: Second = Second {
    busy: 1.0,
    latency_ms: 80.0,
    completed: 400.0,
    some: 0.6,
};

fn disk(watch: &mut Watch, name: &str, second: Second, seconds: std::ops::Range<u64>) {
    let disk = Subject::new(SubjectKind::Device, name);
    for i in seconds {
        let mut out = Sink::new("disks", at(100 + i));
        for (fact, value) in [
            (&fact::DISK_BUSY_RATIO, second.busy),
            (&fact::DISK_QUEUE, 32.0),
            (&fact::DISK_COMPLETED, second.completed),
            (&fact::DISK_IN_FLIGHT, 30.0),
            (&fact::DISK_WRITTEN_BYTES, i as f64 * 2e8),
        ] {
            out.sample(&disk, fact, value);
        }
        if second.completed > 0.0 {
            out.sample(&disk, &fact::DISK_LATENCY_NS, second.latency_ms * 1e6);
        }
        watch.add(out);
        let mut out = Sink::new("pressure", at(100 + i));
        out.sample(&Subject::node(), &PRESSURE_IO_SOME_RATIO, second.some);
        out.sample(&Subject::node(), &PRESSURE_IO_FULL_RATIO, 0.0);
        watch.add(out);
    }
}

/// A look at all processes every two seconds: (name, unit, bytes, whether it waits).
fn looks(watch: &mut Watch, users: &[(&str, Option<&str>, u64, bool)]) {
    for i in (2..20).step_by(2) {
        let mut out = Sink::new("disks", at(100 + i));
        let waiting = users.iter().filter(|user| user.3).count();
        out.sample(&Subject::node(), &fact::DISK_WAITERS, waiting as f64);
        for (n, (comm, unit, written_bytes, waits)) in users.iter().enumerate() {
            let pid = 800 + n as u32;
            let says = DiskUse {
                pid,
                comm: Some((*comm).into()),
                written_bytes: *written_bytes,
                within_ns: 2_000_000_000,
                waits: *waits,
                unit: unit.map(Into::into),
                ..DiskUse::default()
            };
            let process = Subject::new(SubjectKind::Process, pid.to_string());
            out.event(out.now(), &process, &fact::DISK_USER, says);
        }
        watch.add(out);
    }
}

fn judged(second: Second, users: &[(&str, Option<&str>, u64, bool)]) -> Vec<Finding> {
    let mut watch = Watch::new(100, 20);
    disk(&mut watch, "vda", second, 0..20);
    looks(&mut watch, users);
    watch.judge(&RULE).findings
}

const BACKUP: (&str, Option<&str>, u64, bool) = ("tar", Some("backup.service"), 400_000_000, true);

#[test]
fn who_saturates_it_and_who_waits_are_named() {
    let found = judged(
        SATURATED,
        &[BACKUP, ("postgres", Some("db.service"), 8_192, true)],
    );
    let [found] = &found[..] else {
        panic!("one finding, not {found:#?}")
    };
    assert_eq!(
        found.title,
        "disk vda is saturated by backup.service (tar): requests take 80 ms; db.service \
         (postgres) waits for it"
    );
    assert_eq!(found.severity, Severity::Warning);
    let command = found.remedies[0].command.as_deref();
    assert_eq!(command, Some("sudo systemctl stop backup.service"));
    assert!(found.touches(&Subject::new(SubjectKind::Unit, "backup.service")));
}

#[test]
fn a_backup_that_alone_waits_is_a_note() {
    let found = judged(SATURATED, &[BACKUP]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].severity, Severity::Note);
    assert!(
        found[0].title.ends_with("nothing else waits for it"),
        "{}",
        found[0].title
    );
}

#[test]
fn who_waits_is_not_known_without_a_look() {
    let found = judged(SATURATED, &[]);
    assert_eq!(found[0].severity, Severity::Warning);
    let mut watch = Watch::new(100, 20);
    disk(&mut watch, "vda", SATURATED, 0..20);
    let found = watch.judge(&RULE).findings;
    assert_eq!(found[0].confidence, Confidence::POSSIBLE);
}

#[test]
fn a_busy_disk_that_answers_at_once_is_not_saturated() {
    let nvme = Second {
        latency_ms: 0.3,
        some: 0.9,
        ..SATURATED
    };
    assert!(judged(nvme, &[BACKUP]).is_empty());
}

#[test]
fn writing_back_that_holds_up_no_process_and_short_bursts_are_ordinary() {
    let quiet = Second {
        some: 0.02,
        ..SATURATED
    };
    assert!(judged(quiet, &[BACKUP]).is_empty());
    let mut watch = Watch::new(100, 20);
    disk(&mut watch, "vda", SATURATED, 0..8);
    disk(
        &mut watch,
        "vda",
        Second {
            busy: 0.1,
            ..SATURATED
        },
        8..20,
    );
    assert!(watch.judge(&RULE).findings.is_empty());
}

const DEAD: Second = Second {
    completed: 0.0,
    some: 0.9,
    ..SATURATED
};

#[test]
fn requests_that_are_never_completed_are_a_stall() {
    let writer = ("postgres", Some("db.service"), 0, true);
    let mut watch = Watch::new(100, 20);
    disk(&mut watch, "vda", DEAD, 0..20);
    let by_pressure = watch.judge(&RULE).findings;
    for found in [judged(DEAD, &[writer]), by_pressure] {
        let [found] = &found[..] else {
            panic!("one finding, not {found:#?}")
        };
        assert_eq!(
            (found.severity, found.confidence),
            (Severity::Serious, Confidence::CERTAIN)
        );
        assert!(
            found.title.starts_with("disk vda stalls"),
            "{}",
            found.title
        );
    }
}

/// A kernel that lost count of the requests in flight shows one for ever.
#[test]
fn a_request_that_no_task_waits_for_is_no_stall() {
    let idle = Second { some: 0.0, ..DEAD };
    let mut watch = Watch::new(100, 20);
    disk(&mut watch, "vda", idle, 0..20);
    let by_pressure = watch.judge(&RULE).findings;
    // What waits for another disk does not wait for this one.
    let mut watch = Watch::new(100, 20);
    disk(&mut watch, "vda", DEAD, 0..20);
    looks(&mut watch, &[]);
    for found in [judged(idle, &[]), by_pressure, watch.judge(&RULE).findings] {
        assert_eq!(found[0].severity, Severity::Note, "{}", found[0].title);
        assert_eq!(
            found[0].title,
            "disk vda has requests that it does not complete, and no task waits for them"
        );
    }
}

#[test]
fn of_a_disk_and_what_is_made_of_it_the_disk_is_meant() {
    let mut watch = Watch::new(100, 20);
    for name in ["dm-0", "nvme0n1"] {
        disk(&mut watch, name, SATURATED, 0..20);
    }
    looks(&mut watch, &[BACKUP]);
    let mut out = Sink::new("disks", at(100));
    let says = DiskSeen {
        rotational: Some(false),
        made_of: vec!["nvme0n1p3".into()],
    };
    let mapped = Subject::new(SubjectKind::Device, "dm-0");
    out.event(at(100), &mapped, &DISK_SEEN, says);
    watch.add(out);
    let found = watch.judge(&RULE).findings;
    let names: Vec<&str> = found.iter().map(|found| &*found.subject.name).collect();
    assert_eq!(names, ["nvme0n1"]);
}

#[test]
fn who_uses_another_disk_is_not_accused() {
    let mut watch = Watch::new(100, 20);
    disk(&mut watch, "sdb", SATURATED, 0..20);
    let other = Second {
        busy: 0.2,
        latency_ms: 1.0,
        ..SATURATED
    };
    disk(&mut watch, "vda", other, 0..20);
    looks(&mut watch, &[("cargo", None, 900_000_000, true)]);
    for i in (2..20).step_by(2) {
        let mut out = Sink::new("disks", at(100 + i));
        let says = DiskUse {
            pid: 900,
            comm: Some("dd".into()),
            written_bytes: 2_000_000,
            waits: true,
            disks: vec!["sdb".into()],
            ..DiskUse::default()
        };
        let process = Subject::new(SubjectKind::Process, "900");
        out.event(out.now(), &process, &fact::DISK_USER, says);
        watch.add(out);
    }
    let found = watch.judge(&RULE).findings;
    let [found] = &found[..] else {
        panic!("one finding, not {found:#?}")
    };
    assert!(
        found
            .title
            .starts_with("disk sdb is saturated by dd (pid 900)"),
        "{}",
        found.title
    );
    assert_eq!(found.severity, Severity::Note);
}
