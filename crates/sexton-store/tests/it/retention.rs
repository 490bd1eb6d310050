//! A bundle stays within its limits.

use std::time::Duration;

use sexton_model::timeline::Timeline as _;
use sexton_store::{Bundle, Limits};

use crate::support::*;

#[test]
fn the_bound_is_exact_over_a_long_run() {
    let dir = tempfile::tempdir().unwrap();
    let max_bytes = Limits::MIN_SEGMENT_BYTES * 5 + 4321;
    let mut writer = create(dir.path(), limits(max_bytes), 0).unwrap();
    writer.add_raw("etc/x".as_ref(), &vec![7; 50_000]).unwrap();
    let mut next = 1;
    let mut largest = 0;
    for round in 0_u64..600 {
        let n = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
        writer.append(&busy(next, n)).unwrap();
        next += n;
        if round % 3 == 0 {
            writer.sync(at(next * 1000)).unwrap();
            let is_exact = round % 30 == 0;
            if is_exact {
                until_quiet(dir.path());
            }
            let there = bytes_under(dir.path());
            if is_exact {
                assert_eq!(there, writer.bytes(), "round {round}");
            }
            assert!(there <= max_bytes, "round {round}: {there}");
            largest = largest.max(there);
        }
    }
    writer.sync(at(next * 1000)).unwrap();
    assert!(
        largest > max_bytes / 2,
        "it was never nearly full: {largest}"
    );
    let bundle = Bundle::open(dir.path()).unwrap();
    let dropped = bundle.dropped().unwrap();
    let first = dropped.before.as_ns() / 1000;
    assert!(dropped.segments > 3 && writer.first() == Some(dropped.before));
    // All that is younger than the first that is there, is there.
    assert!(bundle.stream(None, None).eq(busy(first, next - first)));
}

#[test]
fn old_segments_go() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits {
        max_age: Duration::from_micros(100),
        segment_age: Duration::from_micros(20),
        ..limits(1 << 20)
    };
    let mut writer = create(dir.path(), limits, 0).unwrap();
    for i in 1..500 {
        writer.append(&busy(i, 1)).unwrap();
        writer.sync(at(i * 1000)).unwrap();
        writer.seal_if_due(at(i * 1000)).unwrap();
        let oldest = writer.first().unwrap().as_ns();
        // A segment goes with its youngest record.
        assert!(oldest + 121_000 >= i * 1000, "at {i}: {oldest}");
    }
    let records = Bundle::open(dir.path()).unwrap().load(None, None);
    assert!((100..=121).contains(&records.of(POLL).count()));
}
