//! What is wrong in a bucket is said, and costs no wrong count.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sexton_lake::{Cell, Table, column, parquet_of};
use sexton_model::wall::unix_ns;

use crate::support::*;

fn files(lake: &Path) -> Vec<std::path::PathBuf> {
    let days = fs::read_dir(lake)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let days = days.filter(|path| path.to_str().unwrap().contains("day="));
    let files = days.flat_map(|day| fs::read_dir(day).unwrap());
    files.map(|entry| entry.unwrap().path()).collect()
}

fn counts(lake: &Path) -> (u64, u64, String) {
    let (_, answer) = compare(lake, &[]);
    let number = |name: &str| answer[name].as_u64().unwrap();
    let problems = answer["problems"].to_string();
    (number("bad") + number("good"), number("reports"), problems)
}

fn us(time: &str) -> i64 {
    (unix_ns(time).unwrap() / 1000) as i64
}

/// Writes a file with one report of a node.
fn write_report(lake: &Path, path: &str, node: &str, at_us: i64) {
    let mut table = Table::default();
    let text = |text: &str| Cell::Text(Arc::from(text));
    table.push([
        (column::SCHEMA, Cell::Number(1.0)),
        (column::KIND, text("report")),
        (column::NODE, text(node)),
        (column::BOOT, text("b00t")),
        (column::AT, Cell::Time(at_us)),
    ]);
    let path = lake.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, parquet_of(table).unwrap()).unwrap();
}

#[test]
fn a_wrong_time_does_not_hide_the_fleet() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 60, 3, 5, "founding");
    let clean = counts(lake.path());
    let later = us("2099-01-01T00:00:00Z");
    write_report(lake.path(), "day=2026-11-17/zz-a.parquet", "web7", later);
    write_report(lake.path(), "day=2026-11-17/zz-b.parquet", "web8", i64::MAX);
    let found = counts(lake.path());
    assert_eq!((found.0, found.1), (clean.0, clean.1));
    assert!(
        found.2.contains("2 rows that are in the folder of another"),
        "{}",
        found.2
    );
    // A node whose clock is wrong writes to the folder of that day.
    write_report(lake.path(), "day=2099-01-01/00-web9.parquet", "web9", later);
    let found = counts(lake.path());
    assert_eq!((found.0, found.1), (clean.0, clean.1));
    assert!(
        found
            .2
            .contains("1 days that have not begun (day=2099-01-01/00-web9.parquet)"),
        "{}",
        found.2
    );
}

#[test]
fn a_clock_that_is_hours_ahead_does_not_hide_the_fleet() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 60, 3, 5, "founding");
    let top = |now: &str| {
        let url = lake.path().to_str().unwrap();
        let args = [
            "top", "--json", "--since", "6h", "--lake", url, "--now", now,
        ];
        json(&fleet(&args))
    };
    let clean = top("2026-11-17T03:10:00Z")["nodes"].clone();
    let path = "day=2026-11-17/14-web7.parquet";
    write_report(lake.path(), path, "web7", us("2026-11-17T14:00:00Z"));
    let answer = top("2026-11-17T03:10:00Z");
    assert_eq!(answer["nodes"], clean, "{answer}");
    let problems = answer["problems"].to_string();
    assert!(
        problems.contains("left out 1 rows that begin after now: set the clock of web7"),
        "{problems}"
    );
    // Later it is a report as any other.
    let later = top("2026-11-17T20:00:00Z");
    assert_eq!(later["nodes"], 1, "{later}");
}

#[test]
fn a_clock_of_the_reader_that_is_behind_is_said() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 60, 3, 5, "founding");
    let clean = counts(lake.path());
    let url = lake.path().to_str().unwrap();
    let now = "1970-01-01T00:01:00Z";
    let answer = json(&fleet(&["top", "--json", "--lake", url, "--now", now]));
    assert_eq!(answer["nodes"].as_u64(), Some(clean.0), "{answer}");
    assert!(
        answer["problems"]
            .to_string()
            .contains("all reports begin after now (1970-01-01)"),
        "{answer}"
    );
}

#[test]
fn nodes_without_an_image_are_shown() {
    let lake = tempfile::tempdir().unwrap();
    let at = us("2026-11-17T14:00:00Z");
    write_report(lake.path(), "day=2026-11-17/14-web7.parquet", "web7", at);
    let url = lake.path().to_str().unwrap();
    let output = fleet(&["top", "--lake", url]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("0 of 1 nodes"), "{text}");
    assert!(text.contains("No node reports image."), "{text}");
    let output = fleet(&["top", "--by", "nonsense", "--lake", url]);
    assert!(
        stderr(&output).contains("no column is called nonsense"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn folders_without_a_date_do_not_hide_days() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 60, 3, 5, "founding");
    let clean = counts(lake.path());
    for name in ["old", "test", "tmp", "2026-11-31"] {
        let day = lake.path().join(format!("day={name}"));
        fs::create_dir(&day).unwrap();
        fs::write(day.join("x.parquet"), "").unwrap();
    }
    let found = counts(lake.path());
    assert_eq!((found.0, found.1), (clean.0, clean.1));
    for name in ["old", "test", "tmp", "2026-11-31"] {
        let line = format!("left out day={name}: its name is no date");
        assert!(found.2.contains(&line), "{}", found.2);
    }
}

#[test]
fn damaged_files_are_left_out_and_named() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 200, 3, 5, "founding");
    let clean = counts(lake.path());
    let file = files(lake.path()).pop().unwrap();
    let bytes = fs::read(&file).unwrap();
    let day = file.parent().unwrap();
    // A half-written upload, one cut in its footer, one of zeros, one that is no Parquet.
    fs::write(day.join("half.parquet"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(day.join("cut.parquet"), &bytes[..bytes.len() - 9]).unwrap();
    fs::write(day.join("zeros.parquet"), vec![0; 4096]).unwrap();
    fs::write(day.join("text.parquet"), "node,at\n").unwrap();
    fs::write(day.join("empty.parquet"), "").unwrap();
    let (nodes, reports, problems) = counts(lake.path());
    assert_eq!((nodes, reports), (clean.0, clean.1));
    for name in ["half", "cut", "zeros", "text", "empty"] {
        assert!(problems.contains(&format!("{name}.parquet")), "{problems}");
    }
}

#[test]
fn flipped_bytes_never_change_a_count_unsaid() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 60, 2, 6, "founding");
    let clean = counts(lake.path());
    let file = files(lake.path()).pop().unwrap();
    let bytes = fs::read(&file).unwrap();
    let copy = file.with_file_name("zz-copy.parquet");
    for at in (0..bytes.len()).step_by(bytes.len() / 12) {
        let mut broken = bytes.clone();
        broken[at] ^= 0x55;
        fs::write(&copy, &broken).unwrap();
        let (nodes, reports, problems) = counts(lake.path());
        let is_said = problems.contains("zz-copy") || problems.contains("stored twice");
        assert!(
            is_said || (nodes, reports) == (clean.0, clean.1),
            "{at}: {problems}"
        );
    }
}

#[test]
fn a_report_that_is_stored_twice_counts_once() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 150, 3, 7, "founding");
    let clean = counts(lake.path());
    let file = files(lake.path()).pop().unwrap();
    fs::copy(&file, file.with_file_name("zz-again.parquet")).unwrap();
    let (nodes, reports, problems) = counts(lake.path());
    assert_eq!((nodes, reports), (clean.0, clean.1));
    assert!(
        problems.contains("stored twice: counted once"),
        "{problems}"
    );
}

#[test]
fn two_machines_of_one_name_are_two_nodes() {
    // Two fleets in one bucket: names are the same, boots are not.
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 50, 6, 8, "founding");
    let one = counts(lake.path());
    simulate(lake.path(), 50, 6, 9, "founding");
    let (nodes, reports, problems) = counts(lake.path());
    assert_eq!(nodes, 2 * one.0);
    assert!(reports > one.1);
    assert!(
        problems.contains("2 machines report as node-0000"),
        "{problems}"
    );
}

#[test]
fn a_lost_set_is_unknown_and_said() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 200, 2, 10, "founding");
    fs::remove_dir_all(lake.path().join("sets")).unwrap();
    let (_, answer) = compare(lake.path(), &[]);
    assert!(
        answer["problems"]
            .to_string()
            .contains("it is not in the bucket"),
        "{answer}"
    );
    let units = answer["differences"].as_array().unwrap().iter();
    assert_eq!(
        units
            .filter(|difference| difference["fact"] == "unit")
            .count(),
        0
    );
}

#[test]
fn a_missing_bucket_is_named_with_what_to_do() {
    let lake = tempfile::tempdir().unwrap();
    let gone = lake.path().join("gone");
    let output = fleet(&["compare", "--lake", gone.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("push a report"),
        "{}",
        stderr(&output)
    );
    let output = fleet(&["compare"]);
    assert!(
        stderr(&output).contains("set SEXTON_LAKE"),
        "{}",
        stderr(&output)
    );
    let output = fleet(&["compare", "--lake", "ftp://x/y"]);
    assert!(
        stderr(&output).contains("use file://, s3://"),
        "{}",
        stderr(&output)
    );
}
