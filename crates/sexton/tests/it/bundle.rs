//! `sexton bundle`, as a user runs it.

use std::fs;
use std::path::Path;

use sexton_store::Bundle;
use sexton_testkit::TempTree;

use crate::command::{sexton, stderr, stdout};

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of tests are text")
}

fn record(folder: &Path) {
    let args = [
        "record",
        "--sensors",
        "pressure",
        "--for",
        "1s",
        "-o",
        text(folder),
    ];
    let output = sexton(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

fn run(args: &[&str], code: i32, says: &str) {
    let output = sexton(args);
    let said = stdout(&output) + &stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(says), "{said}");
}

#[test]
fn a_recording_goes_into_one_file_and_comes_back() {
    let folder = TempTree::new();
    let bundle = folder.path().join("node.bundle");
    record(&bundle);
    let packed = folder.path().join("node.bundle.tar.zst");
    run(&["bundle", "pack", text(&bundle)], 0, "Packed into ");
    // Neither is ever written over.
    run(&["bundle", "pack", text(&bundle)], 2, "File exists");
    run(&["bundle", "unpack", text(&packed)], 2, "File exists");
    let again = folder.path().join("again");
    run(
        &["bundle", "unpack", text(&packed), "-o", text(&again)],
        0,
        "Unpacked into ",
    );
    let load = |path: &Path| Bundle::open(path).expect("a bundle").load(None, None);
    let records = load(&bundle);
    assert!(records.iter().count() > 3);
    assert!(records.iter().eq(load(&packed).iter()));
    assert!(records.iter().eq(load(&again).iter()));
    let raw = "raw/proc/self/mountinfo";
    assert_eq!(
        fs::read(bundle.join(raw)).ok(),
        fs::read(again.join(raw)).ok()
    );
}

#[test]
fn what_is_no_packed_recording_is_refused() {
    let folder = TempTree::new();
    let file = folder.path().join("x.tar.zst");
    fs::write(&file, b"no archive").expect("it can be written");
    run(&["bundle", "unpack", text(&file)], 2, "x.tar.zst");
    assert!(!folder.path().join("x").exists());
    let error = Bundle::open(&file).expect_err("it is none").to_string();
    assert!(
        error.contains("does not begin like a packed bundle"),
        "{error}"
    );
    run(
        &["bundle", "pack", text(folder.path())],
        2,
        "is not a bundle",
    );
}
