//! Without privileges sexton shows less, says what is missing, and exits with 3.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::command::{SEXTON, stdout};

/// A user who owns nothing.
const NOBODY: u32 = 65534;

/// A copy of the binary where anybody may run it; gone when the test ends.
pub struct Copy(PathBuf);

impl Copy {
    pub fn new(name: &str) -> Self {
        let copy =
            std::env::temp_dir().join(format!("sexton-nobody-{}-{name}", std::process::id()));
        // By a process of its own: while this one had it open for writing, any other test that
        // starts a program would hand it down, and what is open for writing cannot be run.
        let copied = Command::new("cp").arg(SEXTON).arg(&copy).status();
        assert!(copied.expect("cp runs").success(), "the binary is copied");
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Self(copy)
    }

    /// Runs it as nobody; when the tests do not run as root, as whoever runs them.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(&self.0);
        command.args(args);
        if fs::metadata("/proc/self")
            .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
        {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.output().expect("it runs")
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        fs::remove_file(&self.0).ok();
    }
}

#[test]
fn zombies_counts_what_it_can() {
    let copy = Copy::new("zombies");
    let output = copy.run(&["zombies"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("dying memory cgroup"), "{text}");
    assert!(
        text.contains("to see it: run as root: sudo sexton zombies"),
        "{text}"
    );
}

#[test]
fn unknown_is_not_zero_in_json() {
    let copy = Copy::new("json");
    let output = copy.run(&["zombies", "--json"]);
    let census: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("it is JSON");
    assert_ne!(census["method"], "bpf-walk");
    for unknown in ["leaked", "memory_bytes"] {
        assert!(census[unknown].is_null(), "{unknown} in {census:#}");
    }
    assert!(!census["gaps"].as_array().expect("a list").is_empty());
}

#[test]
fn doctor_says_what_to_type() {
    let copy = Copy::new("doctor");
    let output = copy.run(&["doctor"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("BLIND bpf-walk"), "{text}");
    assert!(text.contains("run as root: sudo sexton doctor"), "{text}");
}

#[test]
fn record_keeps_what_it_can() {
    let copy = Copy::new("record");
    let bundle = std::env::temp_dir().join(format!("sexton-nobody-{}.bundle", std::process::id()));
    let folder = bundle.display().to_string();
    let output = copy.run(&["record", "--for", "2s", "-o", &folder]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let sealed = fs::read_dir(bundle.join("records")).map_or(0, Iterator::count);
    fs::remove_dir_all(&bundle).ok();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(sealed, 1, "{told}");
    assert!(told.contains("Blind at the end"), "{told}");
}

#[test]
fn diagnose_is_blind_and_says_what_to_type() {
    let copy = Copy::new("diagnose");
    let output = copy.run(&["diagnose", "--for", "2s"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.starts_with("CANNOT TELL\n"), "{text}");
    let (_, more) = text.split_once("Type now").expect("what to type");
    assert!(more.contains("sudo sexton diagnose"), "{text}");
}

/// Whether nobody may read the kernel's log here.
fn log_is_hidden() -> bool {
    fs::read_to_string("/proc/sys/kernel/dmesg_restrict").is_ok_and(|set| set.trim() == "1")
}

/// What could not be read is no pass, in any format.
#[test]
fn check_passes_nothing_that_it_could_not_read() {
    if !log_is_hidden() {
        return;
    }
    let copy = Copy::new("check");
    for (format, said) in [
        ("text", "unknown  nic_resets"),
        ("json", "\"pass\": null"),
        ("junit", "<error type=\"unknown\""),
        ("sarif", "\"kind\": \"open\""),
        ("nagios", "SEXTON UNKNOWN - nic_resets"),
        ("npd", "UNKNOWN: nic_resets"),
        (
            "prom",
            "sexton_check_state{check=\"nic_resets\",state=\"unknown\"} 1",
        ),
    ] {
        let output = copy.run(&["check", "--only", "nic_resets", "--format", format]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(3), "{format}: {text}");
        assert!(text.contains(said), "{format}: {text}");
    }
}

#[test]
fn diagnose_says_at_once_what_it_will_not_see() {
    let copy = Copy::new("at-once");
    let output = copy.run(&["diagnose", "--for", "2s"]);
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    assert!(first.starts_with("Not running as root: "), "{said}");
    assert!(first.contains("stacks"), "{said}");
    assert!(said.contains("sudo sexton diagnose"), "{said}");
}
