//! What an audit costs: `cargo xtask bench image`.
//!
//! A root folder against `systemctl --root list-unit-files`, taking turns, and an ext4 image
//! of 2 GB with its peak of memory. The root is the folder in `SEXTON_IMAGE_ROOT`.
#![allow(clippy::print_stdout, reason = "a bench says what it measured")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Each is run so often, and the fastest counts: the machine is not ours alone.
const N_ROUNDS: usize = 7;

/// Of `systemctl`'s time.
const RATIO_MAX: f64 = 0.5;
const IMAGE_SECONDS_MAX: f64 = 2.0;
const IMAGE_KIB_MAX: u64 = 64 << 10;

fn main() {
    let root = std::env::var_os("SEXTON_IMAGE_ROOT").map(PathBuf::from);
    let root = root.expect("SEXTON_IMAGE_ROOT names a root: cargo xtask bench image sets it");
    let sexton = std::env::var_os("SEXTON")
        .map_or_else(|| env!("CARGO_BIN_EXE_sexton").into(), PathBuf::from);
    let audit = |source: &Path| {
        let mut command = Command::new(&sexton);
        command.args(["image", "audit", "--json"]).arg(source);
        command
    };
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..N_ROUNDS {
        ours = ours.min(time(&mut audit(&root)).0);
        let mut systemctl = Command::new("systemctl");
        systemctl.arg("--root").arg(&root).arg("list-unit-files");
        theirs = theirs.min(time(&mut systemctl).0);
    }
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("root folder: audit {ours:?}, systemctl list-unit-files {theirs:?}, ratio {ratio:.2}");

    let place = tempfile::tempdir().expect("a folder");
    let image = place.path().join("image");
    let made = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-d"])
        .arg(&root)
        .arg(&image)
        .arg("2G")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .status();
    assert!(
        made.expect("mke2fs runs").success(),
        "the image could not be made"
    );
    let rounds = (0..N_ROUNDS).map(|_| time(&mut audit(&image)));
    let (fastest, peak_kib) = rounds.min().expect("at least one round");
    println!(
        "ext4 image of {} MB: audit {fastest:?}, peak {peak_kib} KiB",
        fs::metadata(&image).map_or(0, |meta| meta.len() >> 20)
    );
    let seconds = fastest.as_secs_f64();
    assert!(
        ratio <= RATIO_MAX,
        "the root folder takes {ratio:.2} of systemctl's time, over {RATIO_MAX}"
    );
    assert!(
        seconds <= IMAGE_SECONDS_MAX,
        "the image takes {seconds:.2} s, over {IMAGE_SECONDS_MAX}"
    );
    assert!(
        peak_kib <= IMAGE_KIB_MAX,
        "the image takes {peak_kib} KiB, over {IMAGE_KIB_MAX}"
    );
}

/// Runs it and says how long it took and the most memory it had, as GNU time reports it.
fn time(command: &mut Command) -> (Duration, u64) {
    let program = command.get_program().to_owned();
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut timed = Command::new("/usr/bin/time");
    timed.args(["-q", "-f", "%M"]).arg(program).args(arguments);
    let start = Instant::now();
    let output = timed.stdout(Stdio::null()).output().expect("GNU time runs");
    let elapsed = start.elapsed();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let peak = said
        .lines()
        .last()
        .and_then(|line| line.trim().parse().ok());
    (
        elapsed,
        peak.unwrap_or_else(|| panic!("no peak of memory in {said:?}")),
    )
}
