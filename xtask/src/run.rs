//! `cargo xtask run`: set up, build, and run sexton on this machine.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{command, page, setup, workspace};

/// What sexton does when it is not told.
const DEFAULT_ARGS: &[&str] = &["diagnose"];

pub(crate) fn run(args: Vec<String>) -> Result<ExitCode> {
    setup::install_missing(setup::For::Build)?;
    page::build_if_possible();
    command::run(&mut workspace::build_sexton())?;
    let args = if args.is_empty() {
        DEFAULT_ARGS.iter().map(ToString::to_string).collect()
    } else {
        args
    };
    let sexton = workspace::sexton();
    if !command::is_root() && command::find("sudo").is_some() {
        eprintln!("note: without root sexton sees little; to let it see all, type");
        eprintln!("    sudo {} {}", sexton.display(), args.join(" "));
    }
    let status = Command::new(&sexton)
        .args(&args)
        .status()
        .with_context(|| format!("cannot start {}", sexton.display()))?;
    // A signal leaves no code; 2 is what sexton itself uses for an internal failure.
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(2);
    Ok(ExitCode::from(code))
}
