//! The static binary runs in any root, and says the same of a recording in each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton::binary;

/// A recording of the source tree.
const RECORDING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/6.18-debian12/founding-inner-loop"
);

/// Puts binary and recording on a filesystem in memory over a folder of the root, in mounts of
/// its own, so that the root stays as it is: in ROOT FOLDER BINARY RECORDING ARGUMENT...
const IN_ROOT: &str = r#"
root=$1 place=$1$2 folder=$2
mount -t tmpfs none "$place"
cp "$3" "$place/sexton"
cp -r "$4" "$place/recording"
shift 4
exec chroot "$root" "$folder/sexton" "$@"
"#;

/// Runs sexton in a root that has this folder.
fn sexton_in(root: &Path, folder: &str, arguments: &[&str]) -> Output {
    require(Need::Root);
    require(Need::Sexton);
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-eu", "-c", IN_ROOT, "in"]);
    unshare.arg(root).arg(folder);
    unshare.arg(binary().expect("it is built")).arg(RECORDING);
    unshare.args(arguments).env("NO_COLOR", "1");
    unshare.output().expect("unshare is there")
}

/// What sexton says of the recording there is what it says of it here.
fn check(root: &Path, folder: &str) {
    let recording = format!("{folder}/recording");
    let there = sexton_in(root, folder, &["diagnose", &recording, "--json"]);
    let here = Command::new(binary().expect("it is built"))
        .args(["diagnose", RECORDING, "--json"])
        .output()
        .expect("it runs here");
    let said = String::from_utf8_lossy(&there.stderr);
    assert_eq!(there.status.code(), Some(1), "{said}");
    assert_eq!(here.status.code(), Some(1));
    assert!(there.stdout == here.stdout, "it says something else there");
}

/// A root that the tests of images have made.
fn debian(suite: &str) -> PathBuf {
    let Some(folder) = std::env::var_os("SEXTON_IMAGE_ROOTS") else {
        panic!("sexton-missing: roots: cargo xtask test image makes them");
    };
    let root = Path::new(&folder).join(suite);
    if !root.is_dir() {
        panic!("sexton-missing: roots: {suite} could not be made from this machine's archive");
    }
    root
}

#[test]
#[ignore = "needs root: run cargo xtask test image"]
fn an_empty_root_is_enough() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir(root.path().join("only")).expect("made");
    check(root.path(), "/only");
    // No /proc, no /sys, no /etc: it says what it cannot see, and does not die of it.
    let doctor = sexton_in(root.path(), "/only", &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stderr);
    assert!(
        said.contains("cannot read /proc/self/mountinfo"),
        "{:?}: {said}",
        doctor.status
    );
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn debian_11_runs_it() {
    check(&debian("bullseye"), "/mnt");
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn debian_12_runs_it() {
    check(&debian("bookworm"), "/mnt");
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn debian_13_runs_it() {
    check(&debian("trixie"), "/mnt");
}
