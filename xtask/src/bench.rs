//! `cargo xtask bench NAME`: measure one thing, in release.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::{command, setup, workspace};

struct Bench {
    name: &'static str,
    package: &'static str,
    measures: &'static str,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "census",
        package: "sexton-kernel-tests",
        measures: "time and memory of one census, next to simpler ways, as dying cgroups grow (needs root)",
    },
    Bench {
        name: "overhead",
        package: "sexton-kernel-tests",
        measures: "processor time of one poll of a sensor, for docs/overhead.md",
    },
    Bench {
        name: "attached",
        package: "sexton-kernel-tests",
        measures: "cost of the sensors that stay attached to the scheduler and the network (needs root)",
    },
    Bench {
        name: "events",
        package: "sexton-kernel-tests",
        measures: "time of each event that BPF programs see, and of telling it (needs root)",
    },
];

pub(crate) fn bench(name: Option<&str>, args: &[String]) -> Result<ExitCode> {
    let Some(name) = name else {
        for bench in BENCHES {
            println!("{:12} {}", bench.name, bench.measures);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let bench = BENCHES
        .iter()
        .find(|bench| bench.name == name)
        .with_context(|| format!("no bench is called {name}; `cargo xtask bench` lists them"))?;
    setup::install_missing(setup::For::Build)?;
    command::run(&mut workspace::build_sexton())?;
    let mut cargo = workspace::cargo(&["bench", "--package", bench.package, "--bench", bench.name]);
    // Benches measure the whole command too.
    cargo.env("SEXTON", workspace::sexton());
    command::run(cargo.arg("--").args(args))?;
    Ok(ExitCode::SUCCESS)
}
