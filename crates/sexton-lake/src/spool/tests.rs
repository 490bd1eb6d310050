//! Outages, bounds and half-written files.

use super::*;
use crate::set::{Kind, Set};

const HOUR_US: i64 = 3_600_000_000;

fn report(hour: i64) -> Report {
    let mut units = Set::default();
    units.add(Kind::Unit, "ecs.service", "active");
    Report {
        node: "web7".into(),
        boot: "5f2a90c177aa".into(),
        at_us: 1_794_960_000_000_000 + hour * HOUR_US,
        units: Some(units),
        ..Report::default()
    }
}

#[test]
fn what_waits_is_shipped_in_order_once_the_bucket_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::at(folder.path());
    for hour in [30, 2, 1] {
        assert_eq!(spool.keep(&mut report(hour)).unwrap(), 0);
    }
    let (shipped, result) =
        spool.ship(|_, _| Err::<Put, LakeError>(LakeError::Malformed("down".into())));
    assert!(result.is_err());
    assert_eq!((shipped.n_sent, spool.n_waiting()), (0, 3));
    let mut paths = Vec::new();
    // It is lost again after the first report.
    let (shipped, result) = spool.ship(|path, _| {
        if paths.len() == 2 {
            return Err(LakeError::Malformed("down".into()));
        }
        paths.push(path.to_owned());
        Ok(Put::New)
    });
    assert!(result.is_err());
    assert_eq!((shipped.n_sent, spool.n_waiting()), (1, 2));
    assert!(paths[0].starts_with("sets/"), "{paths:?}");
    assert_eq!(paths[1], "day=2026-11-18/01-web7-5f2a90c1.parquet");
    let bucket = tempfile::tempdir().unwrap();
    let put = |path: &str, bytes: Vec<u8>| put_into_folder(bucket.path(), path, &bytes);
    let (shipped, result) = spool.ship(put);
    result.unwrap();
    assert_eq!((shipped.n_sent, spool.n_waiting()), (2, 0));
    // The same again is there already, and changes nothing.
    spool.keep(&mut report(2)).unwrap();
    let (shipped, _) = spool.ship(put);
    assert_eq!((shipped.n_sent, shipped.n_already_there), (1, 1));
}

#[test]
fn a_full_spool_drops_the_oldest_reports() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::at(folder.path());
    let mut n_dropped = 0;
    for hour in 0..MAX_REPORTS as i64 + 3 {
        n_dropped += spool.keep(&mut report(hour)).unwrap();
    }
    assert_eq!((n_dropped, spool.n_waiting()), (3, MAX_REPORTS));
    let oldest = spool.files().unwrap().into_iter().find(Waiting::is_report);
    assert_eq!(
        oldest.unwrap().path,
        "day=2026-11-18/03-web7-5f2a90c1.parquet"
    );
}

#[test]
fn what_a_kill_left_half_written_is_never_shipped() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::at(folder.path());
    spool.keep(&mut report(1)).unwrap();
    let day = folder.path().join("day=2026-11-18");
    fs::write(day.join(".02-web7.parquet.77.part"), "PAR1").unwrap();
    let mut n = 0;
    let (_, result) = spool.ship(|_, _| {
        n += 1;
        Ok::<_, LakeError>(Put::New)
    });
    result.unwrap();
    assert_eq!(n, 2, "a set and a report");
}

#[test]
fn a_second_report_of_a_path_is_counted_as_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::at(folder.path());
    let kept = [1, 1, 2].map(|hour| spool.keep(&mut report(hour)).unwrap());
    assert_eq!(kept, [0, 1, 0]);
    assert_eq!(spool.n_waiting(), 2);
}
