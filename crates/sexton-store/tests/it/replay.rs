//! What is appended comes back.

use sexton_model::fact::klog::{Capture, KLOG_EVENT, KernelLine};
use sexton_model::fact::sexton::ClockJump;
use sexton_model::fact::show::Show;
use sexton_model::fact::{Fact, FactKind, Measure};
use sexton_model::gap::Why;
use sexton_model::record::Record;
use sexton_model::timeline::Timeline as _;
use sexton_store::{Bundle, BundleWriter, Limits, Node, StoreError};

use crate::support::*;

fn all(bundle: &Bundle) -> Vec<Record> {
    bundle.load(None, None).iter().cloned().collect()
}

#[test]
fn every_kind_of_record_comes_back_from_log_and_segment() {
    let dir = tempfile::tempdir().unwrap();
    let capture = |name: &str, value: &str| Capture {
        name: name.into(),
        value: value.into(),
    };
    let line = KernelLine {
        seq: Some(u64::MAX),
        captures: vec![
            capture("b", "1"),
            capture("a", "\"\n\\\u{1}ü"),
            capture("b", ""),
        ],
        ..KernelLine::default()
    };
    let records = vec![
        sample(1, "/a", POLL, 0.1),
        sample(2, "/a", POLL, -0.0),
        sample(3, "/a", POLL, f64::INFINITY),
        sample(3, "/a", POLL, 9e15),
        happened(4, &KLOG_EVENT, line),
        event(5, ClockJump::default()),
        gap(6, "test", Why::Lost(u64::MAX)),
        gap(7, "other", Why::Bug),
    ];
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer.append(&records).unwrap();
    let mut kept = writer.sync(at(8)).unwrap();
    assert_eq!(kept.records, 8);
    // The disk is waited for by a thread of its own.
    while kept.durable < 8 {
        kept = writer.sync(at(8)).unwrap();
    }
    assert_eq!(all(&Bundle::open(dir.path()).unwrap()), records);
    let summary = writer.finish(at(9)).unwrap();
    assert_eq!(
        (summary.records, summary.segments, summary.first),
        (8, 1, Some(at(1)))
    );
    let bundle = Bundle::open(dir.path()).unwrap();
    assert_eq!(all(&bundle), records);
    assert_eq!(bundle.span(), Some(at(1)..=at(7)));
    assert_eq!(bundle.node(), &node());
    assert_eq!(bundle.dropped(), None);
}

#[test]
fn shuffled_records_come_back_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let sorted = busy(1, 200_000);
    let mut shuffled: Vec<&Record> = sorted.iter().collect();
    shuffled.sort_by_key(|record| record.at.as_ns().wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    for record in shuffled {
        writer.append(std::slice::from_ref(record)).unwrap();
    }
    writer.sync(at(0)).unwrap();
    let bundle = Bundle::open(dir.path()).unwrap();
    assert!(bundle.stream(None, None).eq(sorted));
}

#[test]
fn a_window_and_a_fact_are_all_that_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let mut records = busy(1, 60_000);
    records.push(sample(30_000_500, "/a", WALL, 5.0));
    records.push(gap(30_000_600, "test", Why::Denied));
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    writer.append(&records).unwrap();
    writer.finish(at(0)).unwrap();
    let bundle = Bundle::open(dir.path()).unwrap();
    let window = || Some(at(30_000_000)..=at(30_001_000));
    assert_eq!(bundle.load(window(), None).iter().count(), 4);
    let wall = bundle.load(window(), Some(&[WALL]));
    assert_eq!(wall.of(WALL).count(), 1);
    assert_eq!(wall.of(POLL).count(), 0);
    assert_eq!(wall.gaps().count(), 1);
}

#[test]
fn a_bundle_is_continued_and_the_pause_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer.append(&busy(1, 10)).unwrap();
    writer.finish(at(20_000)).unwrap();
    let mut writer = create(dir.path(), limits(1 << 20), 50_000).unwrap();
    writer.append(&busy(50, 10)).unwrap();
    writer.sync(at(60_000)).unwrap();
    let records = Bundle::open(dir.path()).unwrap().load(None, None);
    assert_eq!(records.of(POLL).count(), 20);
    let (when, _, gap) = records.gaps().next().unwrap();
    assert_eq!(when, at(10_000));
    assert_eq!(
        gap.text,
        "nothing was recorded for 0.0 s, from 10000 to 50000 ns after boot"
    );
}

/// Right after sealing there is no log that could tell of it.
#[test]
fn a_kill_right_after_sealing_is_marked_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer.append(&busy(1, 10)).unwrap();
    writer.seal_now(at(20_000)).unwrap();
    drop(writer);
    assert!(!dir.path().join("records/current.wal").exists());
    let writer = create(dir.path(), limits(1 << 20), 50_000).unwrap();
    writer.finish(at(60_000)).unwrap();
    let records = Bundle::open(dir.path()).unwrap().load(None, None);
    let (_, _, gap) = records.gaps().next().unwrap();
    assert!(gap.text.starts_with("the recorder was killed"), "{gap:?}");
}

#[test]
fn a_second_writer_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let _first = create(dir.path(), limits(1 << 20), 0).unwrap();
    let refused = create(dir.path(), limits(1 << 20), 0).unwrap_err();
    let expected = format!(
        "{} is being written by process {}",
        dir.path().display(),
        std::process::id()
    );
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn another_boot_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    create(dir.path(), limits(1 << 20), 0)
        .unwrap()
        .finish(at(0))
        .unwrap();
    let other = Node {
        boot_id: "f0".into(),
        ..node()
    };
    let refused = BundleWriter::create(dir.path(), limits(1 << 20), other, at(0));
    assert!(matches!(refused, Err(StoreError::OtherBoot { .. })));
}

#[test]
fn limits_that_cannot_be_kept_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = create(dir.path(), limits(Limits::MIN_SEGMENT_BYTES * 4), 0);
    assert!(matches!(refused, Err(StoreError::Limits(_))));
}

#[test]
fn a_record_that_is_too_long_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let long = KernelLine {
        line: Some("x".repeat(20_000)),
        ..KernelLine::default()
    };
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer
        .append(&[
            happened(1, &KLOG_EVENT, long),
            event(2, ClockJump::default()),
        ])
        .unwrap();
    writer.finish(at(3)).unwrap();
    let records = Bundle::open(dir.path()).unwrap().load(None, None);
    assert_eq!((records.of(JUMP).count(), records.gaps().count()), (1, 1));
}

#[test]
fn raw_files_stay_inside_and_are_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer
        .add_raw("etc/os-release".as_ref(), b"ID=debian")
        .unwrap();
    writer.add_raw("etc/os-release".as_ref(), b"other").unwrap();
    for outside in ["../x", "/etc/x", "", "a/../../x"] {
        assert!(writer.add_raw(outside.as_ref(), b"").is_err(), "{outside}");
    }
    assert!(writer.add_raw("big".as_ref(), &vec![0; 1 << 20]).is_err());
    let raw = Bundle::open(dir.path()).unwrap().raw();
    assert_eq!(
        std::fs::read(raw.join("etc/os-release")).unwrap(),
        b"ID=debian"
    );
}

/// A fact that no list has, as one that only a newer sexton knows.
static NEWER: Fact = Fact {
    name: "from_a_newer_sexton",
    measure: Measure::Count,
    kind: FactKind::Gauge,
    help: "",
    payload: None,
    show: Show::Not,
    metric: None,
};

#[test]
fn facts_of_a_newer_sexton_are_counted_in_a_gap_and_stay_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    let newer = |ns| sample(ns, "/a", &NEWER, 1.0);
    writer
        .append(&[newer(1), sample(2, "/a", POLL, 3.0), newer(3)])
        .unwrap();
    writer.sync(at(4)).unwrap();
    let check = || {
        let records = Bundle::open(dir.path()).unwrap().load(None, None);
        assert_eq!(records.of(POLL).count(), 1);
        let gaps: Vec<_> = records.gaps().map(|(_, _, gap)| gap).collect();
        assert_eq!(gaps.len(), 1);
        assert!(gaps[0].text.starts_with("2 records are of a newer sexton"));
        assert!(gaps[0].text.contains("from_a_newer_sexton of cgroup"));
    };
    check();
    writer.finish(at(4)).unwrap();
    check();
}

#[test]
fn a_line_of_the_kernel_is_told_once_however_often_it_was_read() {
    let dir = tempfile::tempdir().unwrap();
    let line = |ns: u64, seq: Option<u64>| {
        let says = KernelLine {
            id: Some("x".into()),
            seq,
            ..KernelLine::default()
        };
        happened(ns, &KLOG_EVENT, says)
    };
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    let first = [line(1000, Some(7)), line(2000, Some(8))];
    writer.append(&first).unwrap();
    writer.finish(at(2000)).unwrap();
    // Begun again: the ring is read again, a little less exactly, and goes on.
    let mut writer = create(dir.path(), limits(1 << 20), 3000).unwrap();
    let again = [
        line(1001, Some(7)),
        line(2001, Some(8)),
        line(4000, Some(9)),
    ];
    writer.append(&again).unwrap();
    // Another event may have the same number, and one without a number is its own.
    let jump = ClockJump {
        wall_ns: Some(7),
        ..ClockJump::default()
    };
    let others = [event(4500, jump), line(5000, None), line(5000, None)];
    writer.append(&others).unwrap();
    writer.finish(at(5000)).unwrap();
    let records = Bundle::open(dir.path()).unwrap().load(None, None);
    let lines = records.iter().filter_map(|record| record.says(&KLOG_EVENT));
    let seqs: Vec<Option<u64>> = lines.map(|line| line.seq).collect();
    assert_eq!(seqs, [Some(7), Some(8), Some(9), None, None]);
    assert_eq!(records.of(JUMP).count(), 1);
}
