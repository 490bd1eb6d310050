//! Damage is a gap, and costs no more than what was damaged.

use std::fs;
use std::path::{Path, PathBuf};

use sexton_model::gap::Why;
use sexton_model::record::Record;
use sexton_model::timeline::Timeline as _;
use sexton_store::Bundle;

use crate::support::*;

/// Three segments of 100 records each.
fn three_segments(dir: &Path) -> Vec<PathBuf> {
    for i in 0..3 {
        let mut writer = create(dir, limits(1 << 20), i * 100_000).unwrap();
        writer.append(&busy(1 + i * 100, 100)).unwrap();
        writer.finish(at((i + 1) * 100_000)).unwrap();
    }
    let entries = fs::read_dir(dir.join("records")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert_eq!(paths.len(), 3);
    paths
}

fn values(dir: &Path) -> (Vec<Record>, usize) {
    let records = Bundle::open(dir).unwrap().load(None, None);
    let values = records.of(POLL).cloned().collect();
    let damage = records
        .gaps()
        .filter(|(_, _, gap)| gap.why != Why::Vanished);
    (values, damage.count())
}

#[test]
fn a_damaged_segment_is_a_gap_at_any_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = three_segments(dir.path())[1].clone();
    let whole = fs::read(&path).unwrap();
    let others = [busy(1, 100), busy(201, 100)].concat();
    for byte in (0..whole.len()).step_by(7) {
        let mut broken = whole.clone();
        broken[byte] ^= 0x55;
        fs::write(&path, &broken).unwrap();
        let (found, gaps) = values(dir.path());
        let is_whole = found == busy(1, 300);
        assert!(is_whole || (found == others && gaps == 1), "byte {byte}");
    }
    for cut in [0, 1, 100, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        assert_eq!(values(dir.path()), (others.clone(), 1), "cut at {cut}");
    }
}

#[test]
fn a_segment_that_goes_while_it_is_read_is_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let paths = three_segments(dir.path());
    let bundle = Bundle::open(dir.path()).unwrap();
    fs::remove_file(&paths[0]).unwrap();
    let records = bundle.load(None, None);
    assert_eq!(records.of(POLL).count(), 200);
    let (_, _, gap) = records.gaps().next().unwrap();
    assert!(
        gap.text.ends_with("it was dropped meanwhile"),
        "{}",
        gap.text
    );
}

#[test]
fn a_torn_log_is_a_prefix_and_a_gap_and_can_be_continued() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer.append(&busy(1, 100)).unwrap();
    writer.sync(at(100_000)).unwrap();
    writer.append(&busy(101, 100)).unwrap();
    writer.sync(at(200_000)).unwrap();
    drop(writer);
    let path = dir.path().join("records/current.wal");
    let length = fs::metadata(&path).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(length - 1).unwrap();
    let records = Bundle::open(dir.path()).unwrap().load(None, None);
    assert_eq!(records.of(POLL).count(), 100);
    let (when, _, gap) = records.gaps().next().unwrap();
    assert_eq!((when, &gap.why), (at(100_000), &Why::Lost(100)));
    let mut writer = create(dir.path(), limits(1 << 20), 500_000).unwrap();
    writer.append(&busy(501, 1)).unwrap();
    writer.finish(at(501_000)).unwrap();
    let records = Bundle::open(dir.path()).unwrap().load(None, None);
    assert!(records.of(POLL).eq(&[busy(1, 100), busy(501, 1)].concat()));
    let (when, _, gap) = records.gaps().next().unwrap();
    assert_eq!((when, &gap.why), (at(100_000), &Why::Lost(100)));
    assert!(
        gap.text.contains("from 100000 to 500000 ns"),
        "{}",
        gap.text
    );
}

#[test]
fn a_writer_killed_while_it_seals_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = |name: &str| dir.path().join("records").join(name);
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer.append(&busy(1, 100)).unwrap();
    writer.sync(at(100_000)).unwrap();
    drop(writer);
    // Killed after the log was closed, and before the next one was there.
    fs::rename(log("current.wal"), log("sealing.wal")).unwrap();
    fs::write(log("sealing.tmp"), b"half a segment").unwrap();
    let there = || Bundle::open(dir.path()).unwrap().load(None, None);
    assert!(there().of(POLL).eq(&busy(1, 100)));
    let mut writer = create(dir.path(), limits(1 << 20), 500_000).unwrap();
    writer.append(&busy(501, 100)).unwrap();
    writer.sync(at(600_000)).unwrap();
    let both = [busy(1, 100), busy(501, 100)].concat();
    // Whether the first one is sealed by now or not.
    assert!(there().of(POLL).eq(&both));
    writer.finish(at(600_000)).unwrap();
    assert!(there().of(POLL).eq(&both));
    assert!(!log("sealing.wal").exists() && !log("sealing.tmp").exists());
    let records = there();
    let (when, _, gap) = records.gaps().next().unwrap();
    assert_eq!((when, &gap.why), (at(100_000), &Why::Lost(0)));
    assert_eq!(records.gaps().count(), 1);
}

#[test]
fn a_closed_log_that_is_sealed_already_is_not_told_twice() {
    let dir = tempfile::tempdir().unwrap();
    let log = |name: &str| dir.path().join("records").join(name);
    let mut writer = create(dir.path(), limits(1 << 20), 0).unwrap();
    writer.append(&busy(1, 100)).unwrap();
    writer.sync(at(100_000)).unwrap();
    fs::copy(log("current.wal"), log("kept")).unwrap();
    writer.finish(at(100_000)).unwrap();
    fs::rename(log("kept"), log("sealing.wal")).unwrap();
    let there = || Bundle::open(dir.path()).unwrap().load(None, None);
    assert!(there().of(POLL).eq(&busy(1, 100)));
    let writer = create(dir.path(), limits(1 << 20), 500_000).unwrap();
    writer.finish(at(500_000)).unwrap();
    assert!(there().of(POLL).eq(&busy(1, 100)));
    assert!(!log("sealing.wal").exists());
}

#[test]
fn a_folder_that_is_no_bundle_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let error = Bundle::open(dir.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("is not a bundle: it has no bundle.json")
    );
    fs::write(dir.path().join("bundle.json"), r#"{"format": 99}"#).unwrap();
    let error = Bundle::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("format 99"), "{error}");
}
