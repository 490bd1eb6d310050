//! All automation of the sexton workspace: `cargo xtask COMMAND`.
//!
//! This file only reads the arguments. Each command is one file, and what a command
//! knows (packages, benches, guest cells, forbidden words) is a table at its top.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "talking to the developer is what this program is for"
)]

mod bench;
mod command;
mod dist;
mod docs;
mod fuzz;
mod guest;
mod image_roots;
mod lab;
mod page;
mod rootfs;
mod run;
mod setup;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Build, run and test sexton")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build sexton and run it on this machine
    Run {
        /// Arguments for sexton, after `--`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Run every check and test, or one step of them
    Test(test::Selection),
    /// Check the rules of this tree that the compiler cannot
    Tidy,
    /// Build the page that the next build of sexton takes in
    Page,
    /// Measure one thing
    Bench {
        /// What to measure; without it, the benches are listed
        name: Option<String>,
        /// Arguments for the bench, after `--`
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Write the man pages, shell completions and pages of rules
    Docs,
    /// Make what a node is given: static binary, packages, container image, checksums
    Dist {
        /// Also make the packages of sexton-fleet, which takes minutes to build
        #[arg(long)]
        fleet: bool,
    },
    /// Real trouble with a known truth, on real systems, and sexton held to it
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Feed hostile bytes to every parser of outside bytes
    Fuzz(fuzz::Choice),
}

fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Run { args } => run::run(args),
        Command::Test(selection) => test::test(&selection),
        Command::Tidy => tidy::tidy(),
        Command::Page => page::build().map(|()| ExitCode::SUCCESS),
        Command::Bench { name, args } => bench::bench(name.as_deref(), &args),
        Command::Docs => docs::docs(),
        Command::Dist { fleet } => dist::dist(fleet),
        Command::Lab(command) => lab::lab(&command),
        Command::Fuzz(choice) => fuzz::fuzz(&choice),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
