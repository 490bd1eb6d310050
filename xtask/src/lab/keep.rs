//! `cargo xtask lab keep`: makes a fixture of a run in a guest, so that every rule is judged
//! on it from now on, in plain unit tests.
//!
//! A guest is made for one run and thrown away, and sexton itself leaves out what tells whose
//! a recording is. A run in namespaces of this machine saw this machine, and is not kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sexton_lab::checks::CAUSES;
use sexton_lab::outcome::Outcome;
use sexton_lab::scenario::Scenario;
use sexton_lab::script::OUT;

use super::place::{On, Place};
use super::play::{self, Stage};
use crate::{command, workspace};

/// Fixtures are read by everybody who clones the tree.
const MAX_BYTES: u64 = 300_000;

pub(super) fn keep(scenario: &Scenario, place: &Place) -> Result<ExitCode> {
    let On::Guest(_) = place.on else {
        bail!("only a run in a guest is kept: name one by --kernel");
    };
    let out = Stage::folder(scenario, place).join(OUT);
    let mut outcome = Outcome::read(&out)
        .with_context(|| format!("{} was not played on {} yet", scenario.name, place.name()))?;
    let node = |key: &str| outcome.verdict["node"][key].as_str().unwrap_or_default();
    let release = node("kernel").to_owned();
    let folder = fixture(&release, &scenario.name, place);
    let redacted = out.join("redacted");
    remove(&redacted)?;
    let mut redact = Command::new(play::sexton()?);
    redact.args(["bundle", "redact"]).arg(out.join("bundle"));
    command::output(redact.arg("--output").arg(&redacted))?;
    // Whoever records holds it; nobody does any more.
    fs::remove_file(redacted.join("lock")).ok();
    outcome.verdict = judged(&redacted)?;
    let bytes = size(&redacted)?;
    ensure!(
        bytes <= MAX_BYTES,
        "{} has {bytes} bytes, and a fixture at most {MAX_BYTES}",
        redacted.display()
    );
    remove(&folder)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    command::output(Command::new("cp").arg("-rT").arg(&redacted).arg(&folder))?;
    let capture = folder.join("capture.toml");
    let seconds = place.pace(scenario).watch_seconds;
    let text = provenance(scenario, place, &release, seconds) + &expected(&outcome);
    fs::write(&capture, text).with_context(|| format!("cannot write {}", capture.display()))?;
    println!("kept: {} ({bytes} bytes)", folder.display());
    Ok(ExitCode::SUCCESS)
}

/// What is said of it by the limits that everybody has: guests are played with lower ones.
fn judged(bundle: &Path) -> Result<Value> {
    let mut diagnose = Command::new(play::sexton()?);
    diagnose.args(["diagnose", "--json", "--from"]).arg(bundle);
    let said = diagnose.output().context("cannot start sexton")?;
    serde_json::from_slice(&said.stdout)
        .with_context(|| format!("no judgement of {}", bundle.display()))
}

/// `fixtures/6.1-debian12/plain-unit`; of a kernel that is played with both versions of
/// cgroups, the version is in the name.
fn fixture(release: &str, scenario: &str, place: &Place) -> PathBuf {
    let kernel: Vec<&str> = release.splitn(3, ['.', '-']).take(2).collect();
    let cgroup = place.name();
    let cgroup = cgroup.rsplit('-').next().unwrap_or_default();
    workspace::root()
        .join("fixtures")
        .join(format!("{}-debian12", kernel.join(".")))
        .join(format!("lab-{scenario}-{cgroup}"))
}

fn provenance(scenario: &Scenario, place: &Place, release: &str, seconds: u32) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let truth: Vec<String> = scenario
        .truth
        .iter()
        .map(|line| format!("    {line:?},\n"))
        .collect();
    format!(
        "kernel = {release:?}\ndistro = \"Debian 12 (bookworm)\"\narch = \"x86_64\"\n\
         tools = {{ sexton = {version:?} }}\n\
         taken = \"sexton diagnose --for {seconds}s -o BUNDLE\"\n\
         done = \"\"\"\n{}.\nPlayed by `cargo xtask lab run {} --kernel {} --cgroup {}`, in an \
         emulated guest with 2 cores.\n\"\"\"\ntruth = [\n{}]\n\
         redacted = \"\"\"\nby `sexton bundle redact`: the node's name and boot, its kernel's build and \
         command line, all stacks and raw\nfiles\n\"\"\"\n",
        scenario.title,
        scenario.name,
        place.kernel(),
        place.name().rsplit('-').next().unwrap_or_default(),
        truth.concat()
    )
}

/// What every later judge must say of it, as is said of it now (what is not so, change by hand, and
/// say in `done` what was wrong with the run): the state, who is
/// accused, and from what to what each chain of theirs leads.
fn expected(outcome: &Outcome) -> String {
    let is_cause = |id: &str| CAUSES.iter().any(|code| id.starts_with(code));
    let mut accused = Vec::new();
    let mut chains = Vec::new();
    for chain in outcome.chains() {
        let first = chain.first().copied().unwrap_or_default();
        if is_cause(first) && !outcome.is_note(first) {
            accused.push(first);
            chains.push(chain);
        }
    }
    accused.sort_unstable();
    accused.dedup();
    format!(
        "\n[expected]\nstate = {:?}\naccused = {accused:?}\nchains = {chains:?}\n",
        outcome.state()
    )
}

fn remove(folder: &Path) -> Result<()> {
    match folder.exists() {
        true => fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display())),
        false => Ok(()),
    }
}

fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("cannot list {}", folder.display()))?;
        let data = entry.metadata().context("cannot look at a file")?;
        bytes += match data.is_dir() {
            true => size(&entry.path())?,
            false => data.len(),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_is_named_after_kernel_scenario_and_cgroup() {
        let place = Place::guest(Some("6.1"), None).expect("a guest");
        let folder = fixture("6.1.0-54-cloud-amd64", "timer", &place);
        assert!(
            folder.ends_with("fixtures/6.1-debian12/lab-timer-v1"),
            "{folder:?}"
        );
    }

    #[test]
    fn nothing_of_this_machine_is_kept() {
        let folder = workspace::root().join("lab/scenarios/timer.toml");
        let scenario = Scenario::read(&folder).expect("a scenario");
        assert!(keep(&scenario, &Place::HERE).is_err());
    }
}
