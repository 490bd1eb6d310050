//! `sexton fleet …`: starts `sexton-fleet`, which is a program of its own because of its weight.

use std::env;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::cli::FleetArgs;
use crate::exit::Exit;

const PROGRAM: &str = "sexton-fleet";

/// The program: the one beside this program, or else the first of the PATH.
pub fn program() -> PathBuf {
    let beside = env::current_exe()
        .ok()
        .map(|own| own.with_file_name(PROGRAM));
    beside
        .filter(|path| path.is_file())
        .unwrap_or_else(|| PathBuf::from(PROGRAM))
}

/// Becomes `sexton-fleet`.
pub fn run(args: &FleetArgs) -> Result<Exit> {
    let program = program();
    let error = Command::new(&program).args(&args.args).exec();
    if error.kind() == ErrorKind::NotFound {
        bail!(
            "no {PROGRAM} beside sexton or in PATH; build it (cargo build --release -p {PROGRAM}) and put it beside sexton"
        );
    }
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}
