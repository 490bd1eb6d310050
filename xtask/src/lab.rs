//! `cargo xtask lab`: real trouble with a known truth, on real systems, and sexton held to it.
//!
//! A scenario is one file in `lab/scenarios`. It is played in a real systemd in namespaces of
//! this machine, which takes seconds, or in a Debian guest with another kernel and cgroup
//! version, under emulation. What comes of it lies in `target/lab/SCENARIO-KERNEL-CGROUP`.

mod before;
mod card;
mod console;
mod guest;
mod image;
mod keep;
mod kubernetes;
mod matrix;
mod nights;
mod page;
mod place;
mod play;
mod test;

pub(crate) use test::test;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use sexton_lab::scenario::Scenario;

use crate::{setup, workspace};
use place::Place;

#[derive(Subcommand)]
pub(crate) enum Lab {
    /// List scenarios and the machines that play them
    List,
    /// Play one scenario, and hold what sexton says and does against the truth
    Run {
        /// Its name
        scenario: String,
        #[command(flatten)]
        machine: Machine,
    },
    /// Play all scenarios on all machines, and write docs/matrix.md
    Matrix(matrix::Choice),
    /// Play nights of random trouble, and tell how much of it is found
    Nights(nights::Choice),
    /// Make a fixture of a scenario that was played in a guest
    Keep {
        /// Its name
        scenario: String,
        #[command(flatten)]
        machine: Machine,
    },
    /// Try what Kubernetes is told, and what is deployed there, against a real API server
    Kubernetes,
    /// A shell in a guest, with sexton in /job; leaving it powers the guest off
    Shell {
        #[command(flatten)]
        machine: Machine,
    },
    /// Boot a guest and leave it running; `shell` enters it
    Up {
        #[command(flatten)]
        machine: Machine,
    },
}

/// Which machine.
#[derive(Args)]
pub(crate) struct Machine {
    /// The kernel: `here` for namespaces of this machine, or that of a guest, such as 6.1
    #[arg(long)]
    kernel: Option<String>,
    /// The cgroup version, where a kernel has both
    #[arg(long)]
    cgroup: Option<crate::guest::Cgroup>,
    /// Refuse the bpf() system call to sexton there, as old kernels do
    #[arg(long)]
    no_bpf: bool,
}

impl Machine {
    fn place(&self) -> Result<Place> {
        let place = Place::chosen(self.kernel.as_deref(), self.cgroup)?;
        Ok(place.without_bpf(self.no_bpf))
    }
}

/// All that was ever made or played.
fn folder() -> PathBuf {
    workspace::target_dir().join("lab")
}

fn scenarios() -> Result<Vec<Scenario>> {
    Scenario::all(&workspace::root().join("lab/scenarios"))
}

fn scenario(name: &str) -> Result<Scenario> {
    let mut all = scenarios()?.into_iter();
    all.find(|scenario| scenario.name == name)
        .with_context(|| format!("no scenario is called {name}; `cargo xtask lab list` lists them"))
}

pub(crate) fn lab(command: &Lab) -> Result<ExitCode> {
    match command {
        Lab::List => list(),
        Lab::Run {
            scenario: name,
            machine,
        } => {
            let scenario = scenario(name)?;
            let place = machine.place()?;
            setup::install_missing(setup::For::Guests)?;
            let stage = play::Stage::open()?;
            let card = stage.play(&scenario, &place)?;
            card.show();
            Ok(match card.is_good() {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            })
        }
        Lab::Matrix(choice) => matrix::matrix(choice),
        Lab::Nights(choice) => nights::nights(choice),
        Lab::Keep {
            scenario: name,
            machine,
        } => {
            let place = machine.place()?;
            keep::keep(&scenario(name)?, &place)
        }
        Lab::Kubernetes => kubernetes::test(),
        Lab::Shell { machine } => {
            console::shell(&Place::guest(machine.kernel.as_deref(), machine.cgroup)?)
        }
        Lab::Up { machine } => {
            console::up(&Place::guest(machine.kernel.as_deref(), machine.cgroup)?)
        }
    }
}

fn list() -> Result<ExitCode> {
    for scenario in scenarios()? {
        println!("{:24} {}", scenario.name, scenario.title);
    }
    println!();
    for place in Place::all() {
        println!("{:24} {}", place.name(), place.describe());
    }
    Ok(ExitCode::SUCCESS)
}
