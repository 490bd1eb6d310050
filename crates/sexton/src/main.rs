//! The command `sexton`: arguments, wiring, exit codes. No judgment here.
#![allow(
    clippy::print_stderr,
    reason = "the binary is where errors are printed"
)]

mod cli;
mod commands;
mod exit;
mod quantity;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Zombies(args) => commands::zombies::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Watch(args) => commands::watch::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Generate(args) => commands::generate::run(&args),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_closed_pipe(&error) => Exit::NothingFound.into(),
        Err(error) => {
            eprintln!("sexton: {error:#}");
            Exit::Failed.into()
        }
    }
}
