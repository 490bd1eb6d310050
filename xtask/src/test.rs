//! `cargo xtask test`: every check and test, in order, with one table at the end.
//!
//! A failing step does not stop the next one. What did not run is shown and fails the
//! whole, unless its need is named with `--allow-missing`: nothing is skipped quietly.
//! Tests of this machine's kernel that fail are run once more, and named when they pass then.

mod again;
mod libtest;
mod table;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;

use self::again::Runs;
use crate::guest::{self, Cells};
use crate::{command, dist, image_roots, lab, page, rootfs, setup, tidy, workspace};

#[derive(clap::Args)]
pub(crate) struct Selection {
    /// Run only this step
    step: Option<Step>,
    /// Do not fail because of tests that lack this; may be repeated
    #[arg(long, value_name = "NEED")]
    allow_missing: Vec<Need>,
    /// Of the image step: how many random changes of each root to compare with its systemctl
    #[arg(long, value_name = "N")]
    cases: Option<u64>,
    /// Of the image step: which random changes
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    cells: Cells,
}

/// The steps, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Step {
    /// Install what this machine lacks
    Setup,
    /// cargo fmt
    Format,
    /// clippy with every warning an error
    Clippy,
    /// The rules the compiler cannot check
    Tidy,
    /// The release build of sexton, static so that guests run it too
    Build,
    /// cargo test: unit, fixture, property and command-line tests
    Plain,
    /// The page: its types, its unit tests, and itself in a browser
    Page,
    /// Image audits on real Debian roots, which are made once
    Image,
    /// Tests on this machine's kernel; most need root
    Kernel,
    /// Tests in booted guests, one per kernel and cgroup version
    Guest,
    /// Scenarios of the lab, in a systemd in namespaces of this machine
    Lab,
}

/// Where the tests are that need roots.
const ON_ROOTS: &[&str] = &[
    "roots::",
    "perturbed::",
    "owners::",
    "rpm::",
    "image::examples::",
];

/// What a test may need beyond a compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Need {
    /// To be root
    Root,
    /// A kernel that loads our BPF programs
    Bpf,
    /// Booting systemd in namespaces
    Systemd,
    /// Guests: their kernels, and an emulator to boot them
    Guest,
    /// Programs that sexton is compared with, or that read what it writes
    Programs,
    /// A Python with DuckDB and pandas
    Python,
    /// Roots of Debian releases with many packages
    Roots,
    /// A browser: Debian's chromium
    Chromium,
}

impl Need {
    fn parse(name: &str) -> Option<Need> {
        Need::from_str(name.trim(), false).ok()
    }

    fn name(self) -> &'static str {
        match self {
            Need::Root => "root",
            Need::Bpf => "bpf",
            Need::Systemd => "systemd",
            Need::Guest => "guest",
            Need::Programs => "programs",
            Need::Python => "python",
            Need::Roots => "roots",
            Need::Chromium => "chromium",
        }
    }
}

/// A test that did not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NotRun {
    pub(crate) test: String,
    /// Nothing excuses a test that does not say what it needs.
    pub(crate) need: Option<Need>,
    pub(crate) why: String,
}

/// A test that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    pub(crate) test: String,
    /// One line, or nothing where nobody said.
    pub(crate) why: String,
}

impl Failure {
    pub(crate) fn new(test: impl Into<String>, why: &str) -> Failure {
        Failure {
            test: test.into(),
            why: why.lines().next().unwrap_or_default().to_owned(),
        }
    }
}

/// What came of one step.
#[derive(Default, PartialEq, Eq, Debug)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    /// Those of the failed ones that have a name: not all of a suite that died.
    pub(crate) failures: Vec<Failure>,
    pub(crate) not_run: Vec<NotRun>,
    /// Those of the passed ones that failed at first.
    pub(crate) unsteady: Vec<Failure>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.not_run.extend(other.not_run);
        self.unsteady.extend(other.unsteady);
    }

    /// Counts one that failed.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failed += 1;
        self.failures.push(failure);
    }

    /// A step that is one check counts as one test.
    fn of_check(done: Result<()>) -> Tally {
        match done {
            Ok(()) => Tally {
                passed: 1,
                ..Tally::default()
            },
            Err(error) => {
                eprintln!("error: {error:#}");
                let mut tally = Tally::default();
                tally.fail(Failure::new("all of it", &format!("{error:#}")));
                tally
            }
        }
    }
}

pub(crate) fn test(selection: &Selection) -> Result<ExitCode> {
    let steps = match selection.step {
        // A step alone still needs the tools, but says nothing of them.
        Some(step) => vec![step],
        None => Step::value_variants().to_vec(),
    };
    selection.cells.chosen()?;
    if selection.step.is_some() {
        setup::install_missing(work(&steps))?;
    }
    let mut rows = Vec::new();
    // Names of ignored tests of the plain run, until the kernel step has run them.
    let mut ignored = Vec::new();
    for step in steps {
        println!("\n=== {}", name(step));
        let start = Instant::now();
        let tally = perform(step, selection, &mut ignored);
        rows.push(table::Row {
            step: name(step),
            tally,
            seconds: start.elapsed().as_secs_f64(),
        });
    }
    if let Some(plain) = rows.iter_mut().find(|row| row.step == name(Step::Plain)) {
        plain.tally.not_run.append(&mut ignored);
    }
    println!("\n{}", table::render(&rows, &selection.allow_missing));
    Ok(if table::is_good(&rows, &selection.allow_missing) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn work(steps: &[Step]) -> setup::For {
    if steps.contains(&Step::Guest) || steps.contains(&Step::Lab) {
        setup::For::Guests
    } else if [Step::Plain, Step::Page, Step::Image, Step::Kernel]
        .iter()
        .any(|step| steps.contains(step))
    {
        setup::For::Tests
    } else if steps.contains(&Step::Build) {
        setup::For::Page
    } else {
        setup::For::Build
    }
}

fn name(step: Step) -> String {
    step.to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

fn perform(step: Step, selection: &Selection, ignored: &mut Vec<NotRun>) -> Tally {
    let check = |args: &[&str]| Tally::of_check(command::run(&mut workspace::cargo(args)));
    match step {
        Step::Setup => {
            setup::python::prepare();
            setup::servers::prepare();
            setup::node::prepare();
            setup::prometheus::prepare();
            Tally::of_check(setup::install_missing(setup::For::Guests))
        }
        Step::Format => check(&["fmt", "--all", "--check"]),
        Step::Clippy => check(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
        Step::Tidy => Tally::of_check(tidy::check()),
        Step::Build => Tally::of_check(
            page::build().and_then(|()| command::run(&mut workspace::build_static_sexton())),
        ),
        Step::Page => in_browser(page::test()),
        Step::Plain => {
            setup::python::prepare();
            setup::servers::prepare();
            setup::node::prepare();
            setup::prometheus::prepare();
            let outcome = cargo_test(Runs::Once, &["test", "--workspace", "--no-fail-fast"], &[]);
            *ignored = outcome.ignored;
            outcome.tally
        }
        Step::Image => on_roots(selection, ignored),
        Step::Kernel => on_this_kernel(ignored),
        Step::Guest => guest::test(&selection.cells),
        Step::Lab => lab::test(),
    }
}

fn in_browser(tested: Result<page::Tested>) -> Tally {
    match tested {
        Ok(page::Tested::Passed) => Tally::of_check(Ok(())),
        Ok(page::Tested::NoChromium) => Tally {
            not_run: vec![NotRun {
                test: "the page in a browser".to_owned(),
                need: Some(Need::Chromium),
                why: "there is no chromium here".to_owned(),
            }],
            ..Tally::of_check(Ok(()))
        },
        Err(error) => Tally::of_check(Err(error)),
    }
}

/// The tests that are not run by default, to be chosen by name. Of the whole workspace:
/// one package alone would be other features, and with them another build of most of it.
const IGNORED: &[&str] = &[
    "test",
    "--workspace",
    "--test",
    "it",
    "--no-fail-fast",
    "--",
    "--ignored",
];

fn on_roots(selection: &Selection, ignored: &mut Vec<NotRun>) -> Tally {
    command::run(&mut workspace::build_static_sexton())
        .unwrap_or_else(|error| eprintln!("error: {error:#}"));
    let args = [IGNORED, ON_ROOTS].concat();
    let roots = image_roots::make().inspect_err(|error| eprintln!("error: {error:#}"));
    let roots = roots.ok().map(|roots| ("SEXTON_IMAGE_ROOTS", roots));
    let number = |name, number: Option<u64>| Some((name, number?.to_string().into()));
    let chosen = [
        roots,
        number("SEXTON_IMAGE_CASES", selection.cases),
        number("SEXTON_IMAGE_SEED", selection.seed),
    ];
    let chosen: Vec<(&str, PathBuf)> = chosen.into_iter().flatten().collect();
    let outcome = cargo_test(Runs::Once, &args, &chosen);
    libtest::forget_those_that_ran(ignored, &outcome.seen);
    outcome.tally
}

fn on_this_kernel(ignored: &mut Vec<NotRun>) -> Tally {
    // Without these the tests that need them say so, and the others run.
    setup::install_optional();
    setup::prometheus::prepare();
    command::run(&mut workspace::build_static_sexton())
        .unwrap_or_else(|error| eprintln!("error: {error:#}"));
    let rootfs = rootfs::make().inspect_err(|error| eprintln!("error: {error:#}"));
    let rootfs = rootfs.ok().map(|rootfs| ("SEXTON_TEST_ROOTFS", rootfs));
    let dist = dist::make(&workspace::static_sexton(), None);
    let dist = dist.inspect_err(|error| eprintln!("error: {error:#}"));
    let dist = dist.ok().map(|dist| ("SEXTON_DIST", dist));
    let folders: Vec<_> = rootfs.into_iter().chain(dist).collect();
    let mut tally = Tally::default();
    for args in kernel_tests() {
        let outcome = cargo_test(Runs::TwiceOnFailure, &args, &folders);
        libtest::forget_those_that_ran(ignored, &outcome.seen);
        tally.add(outcome.tally);
    }
    tally
}

/// Kernel tests that measure nothing others could disturb, and mostly wait: several of them
/// run at once. The others count what the whole machine does, and run one by one.
const PATIENT: &[&str] = &[
    "containers::",
    "packages::",
    "pipelines::",
    "store::",
    "survey::",
    "units::",
];

/// The kernel tests, as arguments of two calls of cargo.
fn kernel_tests() -> [Vec<&'static str>; 2] {
    let others = PATIENT.iter().chain(ON_ROOTS);
    let but_others: Vec<_> = others.flat_map(|name| ["--skip", name]).collect();
    [
        [IGNORED, &["--test-threads=3"], PATIENT].concat(),
        [IGNORED, &["--test-threads=1"], &but_others].concat(),
    ]
}

/// A test that takes longer, run by itself, is shown with its time.
const SLOW: Duration = Duration::from_secs(5);

/// Runs a `cargo test`, shows its output as it comes, and counts what it says.
fn cargo_test(runs: Runs, args: &[&str], folders: &[(&str, PathBuf)]) -> libtest::Outcome {
    let run = |args: &[&str]| try_cargo_test(args, folders);
    let mut outcome = match run(args) {
        Ok(outcome) => outcome,
        Err(error) => {
            return libtest::Outcome {
                tally: Tally::of_check(Err(error)),
                ..Default::default()
            };
        }
    };
    again::give_a_second_chance(&mut outcome, runs, args, run);
    outcome
}

fn try_cargo_test(args: &[&str], folders: &[(&str, PathBuf)]) -> Result<libtest::Outcome> {
    let mut cargo = workspace::cargo(args);
    cargo.envs(folders.iter().map(|(name, folder)| (name, folder)));
    cargo.env("SEXTON", workspace::static_sexton());
    eprintln!("$ cargo {}", args.join(" "));
    let mut child = cargo
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let stdout = child
        .stdout
        .take()
        .context("cargo has no standard output")?;
    let mut parser = libtest::Parser::default();
    let is_one_by_one = args.contains(&"--test-threads=1");
    let mut since = Instant::now();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read what cargo test prints")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        parser.line(&line);
        let took = since.elapsed();
        since = Instant::now();
        if is_one_by_one && line.starts_with("test ") && took >= SLOW {
            println!("     took {:.0} s", took.as_secs_f64());
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    let outcome = parser.finish();
    let explained =
        status.success() || outcome.tally.failed > 0 || !outcome.tally.not_run.is_empty();
    ensure!(
        explained,
        "cargo test ended with {status}, though no test failed: did it compile?"
    );
    ensure!(
        !outcome.seen.is_empty(),
        "not one test was started: did someone rename them?"
    );
    Ok(outcome)
}
