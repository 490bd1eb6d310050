//! A report of a real recording, and what other engines see of it.

use std::fs;
use std::path::Path;

use crate::support::*;

/// A recording of a node in trouble.
pub(crate) const BUNDLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/5.10-debian12/lab-other-reader-v1"
);

fn files(folder: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        (name, entry.metadata().unwrap().len())
    });
    files.collect()
}

#[test]
fn a_recording_becomes_one_small_report() {
    let lake = tempfile::tempdir().unwrap();
    let url = lake.path().to_str().unwrap();
    let push = |more: &[&str]| {
        let output = fleet(&[&["push", "--from", BUNDLE, "--lake", url, "--json"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        json(&output)
    };
    let first = push(&["--label", "zone=us-east-1a", "--label", "team=ml"]);
    assert_eq!(first["new"], true);
    // The same hour again changes nothing.
    assert_eq!(push(&[])["new"], false);
    let day = lake.path().join("day=2026-11-16");
    let reports = files(&day);
    assert_eq!(reports.len(), 1);
    assert!(reports[0].1 <= 64 << 10, "{reports:?}");
    let output = fleet(&["top", "--lake", url, "--by", "label_team", "--json"]);
    let top = json(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        (top["nodes"].as_u64(), top["bad"].as_u64()),
        (Some(1), Some(1))
    );
    assert_eq!(top["groups"][0]["value"], "ml");
}

#[test]
fn a_redacted_report_names_no_node() {
    let lake = tempfile::tempdir().unwrap();
    let url = lake.path().to_str().unwrap();
    let output = fleet(&[
        "push",
        "--from",
        BUNDLE,
        "--lake",
        url,
        "--redact",
        "node,subjects",
        "--json",
    ]);
    let path = json(&output)["path"].as_str().unwrap().to_owned();
    assert!(path.contains("-node-"), "{path}");
    let (name, _) = files(&lake.path().join("day=2026-11-16")).remove(0);
    assert!(path.ends_with(&name));
    assert!(!name.contains("08-node-7ac1b8d7"), "{name}");
    // It has no zone: that is no reason for a query to fail.
    let query = "SELECT count(*) AS n FROM reports LEFT JOIN units USING (node) WHERE zone IS NULL";
    let output = fleet(&["sql", query, "--lake", url, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
