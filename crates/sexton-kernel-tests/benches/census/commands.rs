//! Whole commands, each run by the meter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::figures::Usage;

const METER: &str = env!("CARGO_BIN_EXE_meter");

/// The release build of sexton, which the runner has made.
pub(crate) fn sexton() -> Result<PathBuf> {
    let path =
        std::env::var_os("SEXTON").context("SEXTON is not set: run cargo xtask bench census")?;
    Ok(path.into())
}

/// Runs a command and says what it took. Findings are no failure.
pub(crate) fn usage(program: &Path, args: &[&str]) -> Result<Usage> {
    let said = output(Command::new(METER).arg(program).args(args))?;
    let numbers: Vec<u64> = said.split_whitespace().flat_map(str::parse).collect();
    let [cpu_us, peak_kib, exit] = numbers[..] else {
        anyhow::bail!("the meter said {said:?}");
    };
    ensure!(exit <= 1, "{} ended with {exit}", program.display());
    Ok(Usage {
        cpu: Duration::from_micros(cpu_us),
        peak_bytes: peak_kib * 1024,
    })
}

pub(crate) fn today() -> Result<String> {
    output(Command::new("date").args(["-u", "+%F"]))
}

fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
