//! A ring has one writer, a bundle for each boot, one bound for all; and a part of it can be
//! kept, whatever it drops.

use std::path::Path;
use std::time::Duration;

use sexton_store::{Boot, Bundle, BundleWriter, Node, Ring, StoreError, keep_window};

use crate::support::*;

const FOREVER: Duration = Duration::from_secs(1 << 30);

fn boot(ring: &Ring, id: &str) -> Boot {
    ring.boot_of(id).unwrap()
}

/// Records some segments of a boot.
fn record(boot: &Boot, n_segments: u64) {
    let node = Node {
        boot_id: boot.id.clone(),
        ..node()
    };
    let mut writer = BundleWriter::create(&boot.records, limits(1 << 30), node, at(0)).unwrap();
    for i in 0..n_segments {
        writer.append(&busy(1 + i * 2000, 2000)).unwrap();
        writer.seal_now(at((i + 1) * 2_000_000)).unwrap();
    }
    writer.finish(at(n_segments * 2_000_000)).unwrap();
}

fn n_segments(bundle: &Path) -> usize {
    std::fs::read_dir(bundle.join("records")).unwrap().count()
}

#[test]
fn a_second_writer_is_refused_by_the_name_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let ring = Ring::at(dir.path());
    let held = ring.hold().unwrap();
    let refused = ring.hold();
    let us = std::process::id();
    assert!(
        matches!(refused, Err(StoreError::Locked { pid: Some(pid), .. }) if pid == us),
        "{refused:?}"
    );
    drop(held);
    ring.hold().unwrap();
}

#[test]
fn each_boot_has_its_own_bundle_and_finds_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let ring = Ring::at(dir.path());
    let _held = ring.hold().unwrap();
    for id in ["aa-1", "bb-2", "aa-1", "../../cc"] {
        record(&boot(&ring, id), 1);
    }
    let boots = ring.boots().unwrap();
    let ids: Vec<&str> = boots.iter().map(|boot| boot.id.as_str()).collect();
    assert_eq!(ids, ["aa-1", "bb-2", "cc"], "no name leads out of the ring");
    assert_eq!(boot(&ring, "bb-2"), boots[1]);
    assert_eq!(boot(&ring, "dd").sequence, 4);
}

#[test]
fn earlier_boots_lose_their_oldest_segments_first() {
    let dir = tempfile::tempdir().unwrap();
    let ring = Ring::at(dir.path());
    let _held = ring.hold().unwrap();
    for id in ["one", "two", "now"] {
        record(&boot(&ring, id), 4);
    }
    let now = boot(&ring, "now");
    let before = ring.bytes_beside(&now).unwrap();
    let bytes = before * 3 / 4;
    ring.trim_beside(&now, bytes, FOREVER).unwrap();
    assert!(ring.bytes_beside(&now).unwrap() <= bytes);
    let one = n_segments(&boot(&ring, "one").records);
    assert!((1..4).contains(&one), "{one} segments of the oldest boot");
    assert_eq!(n_segments(&boot(&ring, "two").records), 4);
    assert_eq!(n_segments(&now.records), 4);
    ring.trim_beside(&now, 0, FOREVER).unwrap();
    assert_eq!(ring.boots().unwrap(), [now]);
}

#[test]
fn what_is_kept_outlives_what_it_was_kept_from() {
    let dir = tempfile::tempdir().unwrap();
    let ring = Ring::at(&dir.path().join("ring"));
    let _held = ring.hold().unwrap();
    let boot = boot(&ring, "aa");
    record(&boot, 5);
    let folder = dir.path().join("kept");
    // Segment i holds from 2 i ms on; this touches the third and the fourth.
    let window = at(4_500_000)..=at(6_500_000);
    let kept = keep_window(&boot.records, &folder, window.clone()).unwrap();
    assert_eq!(kept.segments, 2);
    assert_eq!(keep_window(&boot.records, &folder, window).unwrap(), kept);
    std::fs::remove_dir_all(&boot.records).unwrap();
    let bundle = Bundle::open(&folder).unwrap();
    assert_eq!(bundle.node().boot_id, "aa");
    assert!(bundle.stream(None, None).eq(busy(4001, 4000)));
}

#[test]
fn a_boot_whose_name_was_damaged_is_gone_on_with() {
    let dir = tempfile::tempdir().unwrap();
    let ring = Ring::at(dir.path());
    let _held = ring.hold().unwrap();
    let boot = boot(&ring, "one");
    record(&boot, 2);
    assert!(ring.mend(&boot).unwrap().is_empty(), "nothing is wrong");
    let file = boot.records.join("bundle.json");
    let whole = std::fs::read_to_string(&file).unwrap();
    for damaged in ["", "{", &whole.replace("\"one\"", "\"ona\"")] {
        std::fs::write(&file, damaged).unwrap();
        let aside = boot.records.join("bundle.json.damaged");
        let set_aside = ring.mend(&boot).unwrap();
        assert_eq!(set_aside, std::slice::from_ref(&aside), "{damaged}");
        assert_eq!(std::fs::read_to_string(aside).unwrap(), damaged);
        let node = Node {
            boot_id: boot.id.clone(),
            ..node()
        };
        let writer = BundleWriter::create(&boot.records, limits(1 << 30), node, at(9_000_000));
        writer.unwrap().finish(at(9_000_000)).unwrap();
        let there = Bundle::open(&boot.records).unwrap().load(None, None);
        assert_eq!(there.iter().filter(|it| it.fact().is_some()).count(), 4000);
    }
}
