//! `cargo xtask fuzz`: runs the targets of sexton-fuzz under libFuzzer, and keeps what they
//! find small enough to be replayed by every plain test run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{command, workspace};

/// One file for each target; its name is the target's.
const TARGETS: &str = "crates/sexton-fuzz/src/targets";

/// The program that is any of the targets.
const PROGRAM: &str = "any";

/// Of the inputs that were found, so many are kept, of at most so many bytes together.
const KEPT_INPUTS: usize = 64;
const KEPT_BYTES: usize = 24 << 10;

/// An input that takes longer or needs more is a fault: sexton reads such bytes on nodes
/// that are in trouble already.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=2048"];

#[derive(clap::Args)]
pub(crate) struct Choice {
    /// The targets to run; all of them if none is named
    targets: Vec<String>,
    /// How long each of them runs: 30s, 10m, 1h
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = duration)]
    time: Duration,
}

pub(crate) fn fuzz(choice: &Choice) -> Result<ExitCode> {
    let known = known()?;
    for name in &choice.targets {
        ensure!(
            known.contains(name),
            "no target is called {name}: there are {}",
            known.join(", ")
        );
    }
    install_cargo_fuzz()?;
    let chosen = if choice.targets.is_empty() {
        known
    } else {
        choice.targets.clone()
    };
    let mut failed = Vec::new();
    for name in chosen {
        println!("\n=== {name}, for {} s", choice.time.as_secs());
        match run(&name, choice.time) {
            Ok(()) => minimise(&name)?,
            Err(error) => {
                eprintln!("error: {error:#}");
                failed.push(name);
            }
        }
    }
    if !failed.is_empty() {
        bail!(
            "{} found a fault: mend it, then keep its input from fuzz/artifacts in fuzz/corpus/<target>",
            failed.join(", ")
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn known() -> Result<Vec<String>> {
    let folder = workspace::root().join(TARGETS);
    let mut names = Vec::new();
    for entry in files(&folder)? {
        names.extend(entry.file_stem().map(|stem| stem.to_string_lossy().into()));
    }
    names.sort();
    Ok(names)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let paths = listed.map(|entry| Ok(entry?.path()));
    paths
        .collect::<std::io::Result<_>>()
        .with_context(|| format!("cannot list {}", folder.display()))
}

fn install_cargo_fuzz() -> Result<()> {
    if command::output(&mut workspace::cargo(&["fuzz", "--version"])).is_ok() {
        return Ok(());
    }
    eprintln!("set-up: this machine lacks cargo-fuzz, which builds and runs fuzz targets");
    command::run(&mut workspace::cargo(&[
        "install",
        "cargo-fuzz",
        "--locked",
    ]))
}

/// Everything that was ever found here, kept or not.
fn found(name: &str) -> PathBuf {
    workspace::target_dir().join("fuzz-found").join(name)
}

fn corpus(name: &str) -> PathBuf {
    workspace::root().join("fuzz/corpus").join(name)
}

fn run(name: &str, time: Duration) -> Result<()> {
    let folders = [found(name), corpus(name)];
    let time = format!("-max_total_time={}", time.as_secs());
    libfuzzer(name, &folders, &[&time, "-print_final_stats=1"])
}

/// Replaces the found inputs of the corpus by some of the few that reach everything that was
/// reached. Those that somebody gave a name stay: real ones, and those that were faults.
fn minimise(name: &str) -> Result<()> {
    let (found, corpus) = (found(name), corpus(name));
    let fewer = workspace::target_dir().join("fuzz-fewer").join(name);
    if fewer.exists() {
        fs::remove_dir_all(&fewer).with_context(|| format!("cannot empty {}", fewer.display()))?;
    }
    libfuzzer(name, &[fewer.clone(), found, corpus.clone()], &["-merge=1"])?;
    for old in files(&corpus)?.iter().filter(|input| is_found(input)) {
        fs::remove_file(old).with_context(|| format!("cannot remove {}", old.display()))?;
    }
    let mut inputs = Vec::new();
    for input in files(&fewer)? {
        let bytes = fs::read(&input).with_context(|| format!("cannot read {}", input.display()))?;
        inputs.push((bytes, input));
    }
    inputs.sort_by_key(|(bytes, _)| bytes.len());
    // Of all sizes: the small ones alone reach little.
    let step = inputs.len().div_ceil(KEPT_INPUTS).max(1);
    let mut room = KEPT_BYTES;
    for (bytes, input) in inputs.into_iter().step_by(step) {
        let Some(left) = room.checked_sub(bytes.len()) else {
            break;
        };
        room = left;
        let kept = corpus.join(input.file_name().unwrap_or_default());
        fs::write(&kept, bytes).with_context(|| format!("cannot write {}", kept.display()))?;
    }
    Ok(())
}

/// libFuzzer names an input by its SHA-1.
fn is_found(input: &Path) -> bool {
    let name = input.file_name().unwrap_or_default().to_string_lossy();
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn libfuzzer(name: &str, folders: &[PathBuf], options: &[&str]) -> Result<()> {
    for folder in folders {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let mut fuzz: Command = workspace::cargo(&["fuzz", "run", "--fuzz-dir", "fuzz", PROGRAM]);
    fuzz.args(folders)
        .arg("--")
        .args(LIMITS)
        .args(options)
        // Sanitizers are unstable options of the compiler, which stable ones have too.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("SEXTON_FUZZ_TARGET", name);
    command::run(&mut fuzz)
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 30s, 10m or 1h");
    let end = text.find(|c: char| !c.is_ascii_digit());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3600),
        _ => None,
    };
    // libFuzzer takes 0 for no limit.
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(
                duration(text).ok(),
                seconds.map(Duration::from_secs),
                "{text}"
            );
        };
        check("30s", Some(30));
        check("10m", Some(600));
        check("1h", Some(3600));
        for wrong in [
            "",
            "10",
            "m",
            "0s",
            "-1s",
            "1d",
            "1µ",
            "99999999999999999999h",
        ] {
            check(wrong, None);
        }
    }

    #[test]
    fn targets_are_found() {
        let known = known().expect("the folder is there");
        assert!(known.contains(&"klog".to_owned()), "{known:?}");
    }
}
