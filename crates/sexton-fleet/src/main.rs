//! The command `sexton-fleet`, which `sexton fleet …` starts.
#![allow(
    clippy::print_stderr,
    reason = "the binary is where errors are printed"
)]

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use sexton_fleet::commands::Cli;

/// Wrong use, or an internal failure.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(exit) => ExitCode::from(exit),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sexton fleet: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// The reader closed the pipe: that is not an error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
