//! The command `sexton`: arguments, wiring, exit codes. No judgment here.
#![allow(
    clippy::print_stderr,
    reason = "the binary is where errors are printed"
)]

mod cli;
mod commands;
mod consent;
mod exit;
mod judge;
mod policy;
mod quantity;
mod signals;
mod signatures;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use exit::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Diagnose(args) => commands::diagnose::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Image(args) => commands::image::run(&args),
        Command::Zombies(args) => commands::zombies::run(&args),
        Command::Profile(args) => commands::profile::run(&args),
        Command::Record(args) => commands::record::run(&args),
        Command::Serve(args) => commands::serve::run(&args),
        Command::Watch(args) => commands::watch::run(&args),
        Command::Explain(args) => commands::explain::run(&args),
        Command::Fix(args) => commands::fix::run(&args),
        Command::Bundle(command) => commands::bundle::run(&command),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Drill(args) => commands::drill::run(&args),
        Command::DrillPart(args) => commands::drill::run_part(&args),
        Command::Agent(args) => commands::agent::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Incidents(args) => commands::incidents::run(&args),
        Command::Kubernetes(command) => commands::kubernetes::run(&command),
        Command::RebootNeeded => commands::reboot_needed::run(),
        Command::VerifyBoot(args) => commands::verify_boot::run(&args),
        Command::Fleet(args) => commands::fleet::run(&args),
        Command::Completions(args) => commands::generate::completions_of(args.shell),
        Command::Generate(args) => commands::generate::run(&args),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_closed_pipe(&error) => Exit::NothingFound.into(),
        Err(error) => {
            let advice = exit::advice(&error).map_or(String::new(), |advice| format!("; {advice}"));
            eprintln!("sexton: {error:#}{advice}");
            Exit::Failed.into()
        }
    }
}
