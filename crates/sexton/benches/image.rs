//! What an audit costs: `cargo xtask bench image`.
//!
//! A root folder against `systemctl --root list-unit-files`, taking turns, and an ext4 image
//! of 2 GB with its peak of memory; then roots of up to 200,000 units. The root is the folder in
//! `SEXTON_IMAGE_ROOT`. Prints the table of `docs/benchmarks.md`.
#![allow(clippy::print_stdout, reason = "a bench says what it measured")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Each is run so often: the machine is not ours alone.
const N_ROUNDS: usize = 11;

/// Of `systemctl`'s time.
const RATIO_MAX: f64 = 0.5;
const IMAGE_SECONDS_MAX: f64 = 2.0;
const IMAGE_KIB_MAX: u64 = 64 << 10;

/// Roots with far more units than any machine has. The audit judges 10,000 of them, and the rest is
/// a gap; what it costs must not grow faster than their number.
const N_UNITS: [usize; 4] = [2_000, 8_000, 50_000, 200_000];
const MANY_SECONDS_MAX: f64 = 10.0;
const MANY_KIB_MAX: u64 = 128 << 10;

/// What the units of such a root are.
#[derive(Clone, Copy)]
enum Many {
    /// Each cannot start.
    Broken,
    /// Nothing is said against any of them.
    Working,
    /// They share the file of a template that cannot start.
    Instances,
}

impl Many {
    const ALL: [Self; 3] = [Self::Broken, Self::Working, Self::Instances];

    fn name(self) -> &'static str {
        match self {
            Self::Broken => "units that cannot start",
            Self::Working => "units that can",
            Self::Instances => "instances that cannot",
        }
    }
}

/// One run.
struct Run {
    seconds: f64,
    /// On a processor; a busy machine does not lengthen it much.
    cpu_seconds: f64,
    peak_kib: u64,
}

fn main() {
    let root = std::env::var_os("SEXTON_IMAGE_ROOT").map(PathBuf::from);
    let root = root.expect("SEXTON_IMAGE_ROOT names a root: cargo xtask bench image sets it");
    let sexton = std::env::var_os("SEXTON")
        .map_or_else(|| env!("CARGO_BIN_EXE_sexton").into(), PathBuf::from);
    let audit = |source: &Path| {
        let mut command = Command::new(&sexton);
        command.args(["image", "audit", "--json"]).arg(source);
        time(&mut command)
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..N_ROUNDS {
        ours.push(audit(&root));
        let mut systemctl = Command::new("systemctl");
        systemctl.arg("--root").arg(&root).arg("list-unit-files");
        theirs.push(time(&mut systemctl));
    }
    let place = tempfile::tempdir().expect("a folder");
    let image = place.path().join("image");
    make_image(&root, &image);
    let of_image: Vec<Run> = (0..N_ROUNDS).map(|_| audit(&image)).collect();
    show(&ours, &theirs, &of_image);
    show_many(place.path(), audit);
    let ratio = best(&ours) / best(&theirs);
    assert!(
        ratio <= RATIO_MAX,
        "the root folder takes {ratio:.2} of systemctl's time"
    );
    assert!(
        best(&of_image) <= IMAGE_SECONDS_MAX,
        "the image takes {:.2} s",
        best(&of_image)
    );
    assert!(
        peak(&of_image) <= IMAGE_KIB_MAX,
        "the image takes {} KiB",
        peak(&of_image)
    );
}

/// The tables of `docs/benchmarks.md`.
fn show(ours: &[Run], theirs: &[Run], of_image: &[Run]) {
    let ratio = best(ours) / best(theirs);
    println!("| what | measured | limit |\n| --- | ---: | ---: |");
    println!(
        "| audit of a root folder / `systemctl --root list-unit-files`, best | {ratio:.2} | {RATIO_MAX} |"
    );
    println!(
        "| the same, median processor time | {:.2} | |",
        cpu(ours) / cpu(theirs)
    );
    println!(
        "| audit of an ext4 image of 2 GB, best | {:.2} s | {IMAGE_SECONDS_MAX} s |",
        best(of_image)
    );
    println!(
        "| its peak of memory | {:.1} MiB | {} MiB |\n",
        peak(of_image) as f64 / 1024.0,
        IMAGE_KIB_MAX >> 10
    );
    println!(
        "| command, {N_ROUNDS} runs each | best | median | processor time, median | peak |\n| --- | ---: | ---: | ---: | ---: |"
    );
    for (what, runs) in [
        ("`sexton image audit --json ROOT`", ours),
        ("`systemctl --root ROOT list-unit-files`", theirs),
        ("`sexton image audit --json IMAGE`", of_image),
    ] {
        let median = median(runs.iter().map(|run| run.seconds));
        let peak = peak(runs) as f64 / 1024.0;
        println!(
            "| {what} | {:.3} s | {median:.3} s | {:.3} s | {peak:.1} MiB |",
            best(runs),
            cpu(runs)
        );
    }
}

/// Measures roots of many units, and fails where one takes too much.
fn show_many(place: &Path, audit: impl Fn(&Path) -> Run) {
    println!(
        "\n| units, of which at most 10,000 are judged (limits: {MANY_SECONDS_MAX} s, {} MiB) | number | time | peak |\n| --- | ---: | ---: | ---: |",
        MANY_KIB_MAX >> 10
    );
    for many in Many::ALL {
        for n in N_UNITS {
            let root = place.join("many");
            make_many(&root, many, n);
            let runs = [audit(&root), audit(&root), audit(&root)];
            let (seconds, peak) = (best(&runs), peak(&runs));
            println!(
                "| {} | {n} | {seconds:.2} s | {:.1} MiB |",
                many.name(),
                peak as f64 / 1024.0
            );
            assert!(
                seconds <= MANY_SECONDS_MAX && peak <= MANY_KIB_MAX,
                "a root with {n} {} takes too much",
                many.name()
            );
            std::fs::remove_dir_all(&root).expect("removed");
        }
    }
}

fn make_many(root: &Path, many: Many, n_units: usize) {
    let units = root.join("usr/lib/systemd/system");
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    std::fs::create_dir_all(&units).expect("made");
    std::fs::create_dir_all(&wants).expect("made");
    std::fs::write(units.join("multi-user.target"), "[Unit]\n").expect("written");
    std::os::unix::fs::symlink("multi-user.target", units.join("default.target")).expect("linked");
    std::fs::write(units.join("u@.service"), "[Service]\nExecStart=/gone\n").expect("written");
    for n in 0..n_units {
        let (name, file, text) = match many {
            Many::Broken => (
                format!("u{n}.service"),
                format!("u{n}.service"),
                format!("[Unit]\nRequires=gone{n}.service\n[Service]\nExecStart=/gone{n}\n"),
            ),
            // What is in /run is there after a boot.
            Many::Working => (
                format!("u{n}.service"),
                format!("u{n}.service"),
                format!("[Unit]\nDescription={n}\n[Service]\nExecStart=/run/u{n}\n"),
            ),
            Many::Instances => (
                format!("u@{n}.service"),
                "u@.service".to_owned(),
                String::new(),
            ),
        };
        if !text.is_empty() {
            std::fs::write(units.join(&name), text).expect("written");
        }
        let target = Path::new("/usr/lib/systemd/system").join(file);
        std::os::unix::fs::symlink(target, wants.join(&name)).expect("linked");
    }
}

fn make_image(root: &Path, image: &Path) {
    let made = Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-d"])
        .args([root, image])
        .arg("2G")
        .stdout(Stdio::null())
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .status();
    assert!(
        made.expect("mke2fs runs").success(),
        "the image could not be made"
    );
}

fn best(runs: &[Run]) -> f64 {
    runs.iter().map(|run| run.seconds).fold(f64::MAX, f64::min)
}

fn cpu(runs: &[Run]) -> f64 {
    median(runs.iter().map(|run| run.cpu_seconds))
}

fn peak(runs: &[Run]) -> u64 {
    runs.iter()
        .map(|run| run.peak_kib)
        .max()
        .unwrap_or(u64::MAX)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs it and says what GNU time reports of it.
fn time(command: &mut Command) -> Run {
    let program = command.get_program().to_owned();
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let mut timed = Command::new("/usr/bin/time");
    timed
        .args(["-q", "-f", "%U %S %M"])
        .arg(program)
        .args(arguments);
    let start = Instant::now();
    let output = timed.stdout(Stdio::null()).output().expect("GNU time runs");
    let seconds = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().last().unwrap_or_default();
    let numbers: Vec<f64> = last
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let &[user, system, peak_kib] = numbers.as_slice() else {
        panic!("no figures in {said:?}");
    };
    Run {
        seconds,
        cpu_seconds: user + system,
        peak_kib: peak_kib as u64,
    }
}
