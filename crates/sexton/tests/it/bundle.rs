//! `sexton bundle`, as a user runs it.

use std::fs;
use std::path::Path;

use sexton_model::fact::sexton::SEXTON_SENSORS;
use sexton_model::record::{Body, Record};
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
    let no_bundle = "it has no bundle.json; give what `sexton record` wrote";
    run(&["bundle", "pack", text(folder.path())], 2, no_bundle);
    run(&["diagnose", text(folder.path())], 2, no_bundle);
}

/// All that a record says, without the definition of its fact.
fn said(record: &Record) -> String {
    let body = match &record.body {
        Body::Event { payload, .. } => format!("{payload:?}"),
        Body::Gap(gap) => format!("{gap:?}"),
        Body::Sample { fact, .. } => fact.name.to_owned(),
    };
    format!("{:?} {} {body}\n", record.sensor, record.subject)
}

/// What is handed on says neither whose it is nor what was asked to stay behind.
#[test]
fn a_recording_is_handed_on_without_names() {
    let folder = TempTree::new();
    let bundle = folder.path().join("node.bundle");
    let sensors = "host,pressure,cores";
    let args = ["record", "--sensors", sensors, "--for", "1s", "-o"];
    let output = sexton(&[&args[..], &[text(&bundle)]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let plain = folder.path().join("plain");
    let args = ["--without", "cores", "--replace", "Linux=Penguin"];
    let all = [
        &["bundle", "redact", text(&bundle), "-o", text(&plain)],
        &args[..],
    ]
    .concat();
    run(&all, 0, "Copied ");
    run(&all, 2, "exists already");
    let wrong = ["bundle", "redact", "x", "-o", "y", "--replace", "a"];
    run(&wrong, 2, "OLD=NEW");
    let copy = Bundle::open(&plain).expect("a bundle");
    assert_eq!(copy.node().name, "node");
    assert!(copy.node().boot_id.starts_with("00000000-"));
    let records = copy.load(None, None);
    assert!(records.iter().any(|record| record.sensor == "pressure"));
    // Which sensors there are is the same on every node.
    let own = |record: &&Record| record.fact() != Some(&SEXTON_SENSORS.fact);
    let told: String = records.iter().filter(own).map(said).collect();
    assert!(told.contains("kernel_release"), "{told}");
    for secret in ["command_line", "machine_", "cores\"", "Linux"] {
        assert!(!told.contains(secret), "{secret}");
    }
    let raw = fs::read_dir(plain.join("raw"));
    assert_eq!(raw.map_or(0, Iterator::count), 0, "no file is handed on");
    // The one record that holds the kernel's release stays behind.
    let fewer = folder.path().join("fewer");
    let release = Bundle::open(&bundle)
        .expect("a bundle")
        .node()
        .kernel
        .clone();
    let args = [
        "bundle",
        "redact",
        text(&bundle),
        "-o",
        text(&fewer),
        "--drop",
        &release,
    ];
    run(&args, 0, "Copied ");
    let records = Bundle::open(&fewer).expect("a bundle").load(None, None);
    let told = format!("{:?}", records.iter().collect::<Vec<_>>());
    assert!(!told.contains("kernel_release"), "{told}");
}
