//! `sexton record`, as a user runs it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sexton_model::fact;
use sexton_model::timeline::Timeline;
use sexton_store::Bundle;
use sexton_testkit::TempTree;

use crate::command::{SEXTON, sexton, stderr};

/// Sensors that need no privileges.
const SENSORS: &str = "cores,host,pressure";

fn record(folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(SEXTON);
    command
        .args(["record", "--sensors", SENSORS, "-o"])
        .arg(folder)
        .args(more);
    command.stderr(Stdio::piped());
    command
}

/// Waits until the recorder has begun.
fn wait_for(file: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !file.exists() {
        assert!(Instant::now() < deadline, "{} never came", file.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(status.expect("kill is there").success());
}

#[test]
fn a_bundle_holds_what_was_seen() {
    let folder = TempTree::new();
    let bundle = folder.path().join("node.bundle");
    let output = record(&bundle, &["--for", "1s", "--every", "cores=50ms"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = stderr(&output);
    let mut lines = told.lines();
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("Recording into ")),
        "{told}"
    );
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("Recorded ")),
        "{told}"
    );
    let records = Bundle::open(&bundle).expect("a bundle").load(None, None);
    let worst = fact::by_name("core_worst_busy_ratio").expect("it is defined");
    let n = records.of(worst).count();
    assert!(
        (5..=25).contains(&n),
        "{n} of them in a second at one each 50 ms"
    );
    let wall = records.of(&fact::sexton::SEXTON_WALL_CLOCK_NS).count();
    assert_eq!(wall, 1, "the wall clock is noted once");
}

#[test]
fn a_signal_ends_it_cleanly() {
    for name in ["-INT", "-TERM"] {
        let folder = TempTree::new();
        let bundle = folder.path().join("node.bundle");
        let child = record(&bundle, &[]).spawn().expect("it runs");
        wait_for(&bundle.join("records/current.wal"));
        signal(&child, name);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        assert!(
            Bundle::open(&bundle).expect("a bundle").span().is_some(),
            "{name}"
        );
        assert!(
            !bundle.join("records/current.wal").exists(),
            "{name}: it is sealed"
        );
    }
}

#[test]
fn a_killed_recording_is_read_and_continued() {
    let folder = TempTree::new();
    let bundle = folder.path().join("node.bundle");
    let child = record(&bundle, &[]).spawn().expect("it runs");
    wait_for(&bundle.join("records/current.wal"));
    std::thread::sleep(Duration::from_millis(2500));
    signal(&child, "-KILL");
    child.wait_with_output().expect("it ends");
    let before = Bundle::open(&bundle)
        .expect("a bundle")
        .load(None, None)
        .iter()
        .count();
    assert!(before > 0, "a second and more was acknowledged");
    let output = record(&bundle, &["--for", "500ms"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let after = Bundle::open(&bundle).expect("a bundle").load(None, None);
    assert!(after.iter().count() > before);
    assert!(after.gaps().next().is_some(), "the time between is a gap");
}

#[test]
fn a_second_recorder_is_refused() {
    let folder = TempTree::new();
    let bundle = folder.path().join("node.bundle");
    let first = record(&bundle, &[]).spawn().expect("it runs");
    wait_for(&bundle.join("records/current.wal"));
    let second = record(&bundle, &["--for", "1s"]).output().expect("it runs");
    assert_eq!(second.status.code(), Some(2));
    let complaint = stderr(&second);
    assert!(complaint.contains(&first.id().to_string()), "{complaint}");
    signal(&first, "-INT");
    first.wait_with_output().expect("it ends");
}

#[test]
fn wrong_use_is_named() {
    for (args, named) in [
        (
            &["record", "--sensors", "nose"][..],
            "no sensor is called nose; there are ",
        ),
        (&["record", "--for", "soon"][..], "soon"),
        (&["record", "--max-size", "huge"][..], "huge"),
        (&["record", "--every", "cores=1ms"][..], "shorter than"),
        (
            &["record", "--sensors", "cores", "--every", "klog=1s"][..],
            "not recorded",
        ),
    ] {
        let output = sexton(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(named),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}
