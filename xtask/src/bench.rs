//! `cargo xtask bench NAME`: measure one thing, in release; `all` measures everything.

mod figures;

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{command, image_roots, page, rootfs, setup, workspace};

struct Bench {
    name: &'static str,
    package: &'static str,
    measures: &'static str,
    writes: Writes,
    /// What else `all` has it measure.
    in_all: &'static [&'static str],
}

/// How its figures come into `docs/benchmarks.md`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// With `--write` it puts them there.
    Itself,
    /// It only prints them, as the page wants them.
    AsMarkdown,
    /// It only prints them, as lines of plain text.
    AsText,
}

/// Has the figures written to `docs/benchmarks.md`.
const WRITE: &str = "--write";

const BENCHES: &[Bench] = &[
    Bench {
        name: "agent",
        package: "sexton-kernel-tests",
        measures: "processor time and memory of the agent with everything on, beside others that run on nodes (needs root)",
        writes: Writes::AsMarkdown,
        in_all: &[],
    },
    Bench {
        name: "check",
        package: "sexton-kernel-tests",
        measures: "time of one `sexton check`, from its start to its end",
        writes: Writes::Itself,
        in_all: &[],
    },
    Bench {
        name: "census",
        package: "sexton-kernel-tests",
        measures: "time and memory of one census, next to simpler ways, as dying cgroups grow (needs root)",
        writes: Writes::Itself,
        in_all: &[],
    },
    Bench {
        name: "overhead",
        package: "sexton-kernel-tests",
        measures: "processor time of one poll of a sensor; the whole recorder beside others (needs root)",
        writes: Writes::Itself,
        in_all: &[],
    },
    Bench {
        name: "attached",
        package: "sexton-kernel-tests",
        measures: "cost of the sensors that stay attached to the scheduler and the network (needs root)",
        writes: Writes::AsText,
        in_all: &[],
    },
    Bench {
        name: "events",
        package: "sexton-kernel-tests",
        measures: "time of each event that BPF programs see, and of telling it (needs root)",
        writes: Writes::AsText,
        in_all: &[],
    },
    Bench {
        name: "fleet",
        package: "sexton-fleet",
        measures: "planted causes that are found among invented fleets, and commands on 100,000 nodes beside DuckDB",
        writes: Writes::AsMarkdown,
        in_all: &[],
    },
    Bench {
        name: "image",
        package: "sexton",
        measures: "an audit of a root folder beside systemctl --root, and of a 2 GB ext4 image (needs root once)",
        writes: Writes::AsMarkdown,
        in_all: &[],
    },
    Bench {
        name: "judge",
        package: "sexton-analysis",
        measures: "time of judging a recording, as its events grow from 10,000 to 1,000,000",
        writes: Writes::AsMarkdown,
        in_all: &[],
    },
    Bench {
        name: "page",
        package: "sexton",
        measures: "how soon a recording of 12 hours has its answers and its page, in a browser where there is one",
        writes: Writes::AsText,
        in_all: &[],
    },
    Bench {
        name: "profile",
        package: "sexton-kernel-tests",
        measures: "reading a million samples of perf, next to perf, inferno, samply and FlameScope (needs root)",
        writes: Writes::Itself,
        in_all: &[],
    },
    Bench {
        name: "purge",
        package: "sexton-kernel-tests",
        measures: "freeing 70,000 dying cgroups, and what a neighbour keeps of its cache (needs root)",
        writes: Writes::Itself,
        in_all: &["--own-files", "--drop-caches"],
    },
    Bench {
        name: "stacks",
        package: "sexton-kernel-tests",
        measures: "cost of sampling stacks, next to perf record on the same run (needs root and perf)",
        writes: Writes::AsText,
        in_all: &[],
    },
];

pub(crate) fn bench(name: Option<&str>, args: &[String]) -> Result<ExitCode> {
    let Some(name) = name else {
        for bench in BENCHES {
            println!("{:12} {}", bench.name, bench.measures);
        }
        println!("{:12} all of them, and rewrites docs/benchmarks.md", "all");
        return Ok(ExitCode::SUCCESS);
    };
    if name == "all" {
        return figures::all();
    }
    let bench = BENCHES
        .iter()
        .find(|bench| bench.name == name)
        .with_context(|| format!("no bench is called {name}; `cargo xtask bench` lists them"))?;
    if args.iter().any(|arg| arg == WRITE) {
        figures::measure_and_write(bench, args)?;
    } else {
        run(bench, args)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run(bench: &Bench, args: &[String]) -> Result<()> {
    command::run(prepared(bench)?.arg("--").args(args))
}

/// The command that measures, with all that it needs in place.
fn prepared(bench: &Bench) -> Result<Command> {
    setup::install_missing(setup::For::Build)?;
    if bench.name == "page" {
        page::build()?;
    }
    // Benches measure the whole command too. Of the agent it is the binary that nodes are given.
    let (mut build, sexton) = match bench.name {
        "agent" => (workspace::build_static_sexton(), workspace::static_sexton()),
        _ => (workspace::build_sexton(), workspace::sexton()),
    };
    command::run(&mut build)?;
    let mut cargo = workspace::cargo(&["bench", "--package", bench.package, "--bench", bench.name]);
    cargo.env("SEXTON", sexton);
    if bench.name == "check" {
        setup::install_missing(setup::For::Tests)?;
        cargo.env("SEXTON_TEST_ROOTFS", rootfs::make()?);
    }
    if bench.name == "agent" {
        setup::peers::install_packaged();
    }
    if bench.name == "overhead" {
        let below = setup::peers::install();
        cargo.envs(below.map(|below| ("SEXTON_BENCH_BELOW", below)));
    }
    if bench.name == "fleet" {
        setup::python::prepare();
    }
    if matches!(bench.name, "profile" | "stacks") {
        let samply = setup::profilers::install()?;
        cargo.envs(samply.map(|samply| ("SEXTON_BENCH_SAMPLY", samply)));
    }
    if bench.name == "page"
        && let Some(chromium) = command::find("chromium")
    {
        cargo.env("CHROMIUM", chromium).env("SEXTON_UI", page::ui());
    }
    if bench.name == "image" {
        setup::install_missing(setup::For::Tests)?;
        cargo.env("SEXTON_IMAGE_ROOT", image_roots::make()?.join("bookworm"));
    }
    Ok(cargo)
}
