//! The command line. Man pages and completions are made from these definitions.

pub mod btf;
pub mod bundle;
pub mod fix;
pub mod profile;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::quantity;
use btf::BtfArgs;
use bundle::BundleCommand;
use fix::FixArgs;

mod image;

pub use image::*;

/// Finds what is slowly killing a Linux node, proves the chain from cause to
/// symptom, and buries it.
#[derive(Debug, Parser)]
#[command(version = env!("SEXTON_VERSION"), max_term_width = 80, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 nothing found, 1 findings, 2 wrong use or internal failure,
3 could not see enough to judge.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch the node, judge it, and say what is wrong, what caused it and what to type
    ///
    /// Runs every sensor for a while, judges what they saw and what the node remembers
    /// (kernel log, times of units, dying cgroups), and prints the verdict, the chain from
    /// cause to symptom, what to do, and the evidence for and against. It changes nothing.
    /// Exits with 0 when the node is healthy, with 1 when something is wrong, and with 3
    /// when too little was seen to judge.
    Diagnose(DiagnoseArgs),
    /// A gate for image pipelines, cron and node-problem-detector: a few counts, at once
    ///
    /// Memory cgroups, failed units, restarts, containers that start again and again,
    /// resets of network devices: each against a limit. Loads no BPF program. Exits with 0
    /// when all pass, with 1 when one does not, and with 3 when none fails but one could
    /// not be seen. With --format nagios the codes are those of monitoring plugins: 0 OK,
    /// 2 critical, 3 unknown.
    Check(CheckArgs),
    /// Judge an image that has not booted: which units would run, and which should not
    ///
    /// SOURCE is a root folder, / for the running system, a disk image (raw or qcow2), an
    /// ext4 or squashfs filesystem, an OCI layout, what docker save writes, or a tar. It is
    /// recognised by content; nothing is mounted and nothing of it is executed.
    Image(ImageArgs),
    /// Census of memory cgroups: live, dying, leaked; who made them, what pins them
    ///
    /// A dying memory cgroup is one whose directory was removed but which the kernel
    /// still holds, because a page, a swap entry or a socket is still charged to it.
    /// Exits with 1 when there is any, with 0 when there is none, and with 3 when
    /// names and pins could not be seen (`sexton doctor` says why).
    Zombies(ZombiesArgs),
    /// Record what every sensor sees into a bundle: Parquet files, bounded, kill-safe
    ///
    /// Runs in the foreground until the time is up or a signal comes; then all of it is
    /// sealed. A kill at any moment costs at most the last seconds, and that is marked as
    /// a gap. Without privileges it records what it can.
    Record(RecordArgs),
    /// Recordings of stacks: read perf's, draw heat maps and flame graphs, convert
    ///
    /// Reads perf.data, the text of perf script and folded stacks, each also packed with
    /// gzip, and bundles. Every sample keeps its core and its moment.
    Profile(Box<profile::ProfileArgs>),
    /// Look at a recording in the browser, or at this node while it is recorded
    ///
    /// Serves one page: the verdict and its chain, a time line, heat maps, flame graphs,
    /// dying cgroups. Without BUNDLE this node is recorded into a temporary folder for as
    /// long as the page is served. Prints the address to open. Ends with Ctrl-C.
    Serve(ServeArgs),
    /// Live view in the terminal, or a look through a recording
    ///
    /// Shows every core, the dying memory cgroups, units that restart, starved network
    /// polling, events of the kernel, and what is not seen. Keys are shown on the screen.
    Watch(WatchArgs),
    /// The manual page of a rule: what it means, by hand, thresholds and their reasons
    Explain(ExplainArgs),
    /// Rehearse the founding incident on this machine, bounded, and clean up after it
    ///
    /// Makes dying memory cgroups, holds one core in the kernel by reading memory
    /// statistics, starves the polling of a network device of its own, and writes a marked
    /// line to the kernel's log: to see whether sexton, and your alerts, catch it. Shows
    /// what it will do and asks first. Needs root. With --diagnose the exit code is that
    /// of the verdict.
    Drill(DrillArgs),
    /// The work of one part of a drill
    #[command(hide = true)]
    DrillPart(DrillPartArgs),
    /// End it now, without a reboot: stop the source, free what it left
    ///
    /// Prints a plan and changes nothing. With --apply it asks once, writes down how to
    /// take each change back, carries the plan out step by step, and counts before and
    /// after each. Files are never deleted or cut. Exits with 0 when nothing is left, with
    /// 1 when something is, with 3 when it cannot see.
    Fix(FixArgs),
    /// Make one file of a recording, or a folder of such a file
    ///
    /// Whatever reads a recording reads the file as well. Segments are compressed already,
    /// so it is not much smaller than the folder; it is easier to send.
    #[command(subcommand)]
    Bundle(BundleCommand),
    /// What sexton can and cannot see here, why, and what to type to change that
    ///
    /// Exits with 0 when every sensor sees all it can, with 3 when one does not.
    Doctor(DoctorArgs),
    /// Write man pages or shell completions
    #[command(hide = true)]
    Generate(GenerateArgs),
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people, in 80 columns
    #[default]
    Text,
    /// For programs: versioned and stable
    Json,
}

/// The choice of a format.
#[derive(Debug, Clone, Copy, Args)]
pub struct FormatArgs {
    /// How to write the result
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl FormatArgs {
    /// The format that was asked for.
    pub fn format(self) -> Format {
        if self.json { Format::Json } else { self.format }
    }
}

/// How a judgement is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DiagnoseFormat {
    /// For people, in 80 columns
    #[default]
    Text,
    /// For programs: versioned and stable
    Json,
    /// One page for a browser that needs nothing else
    Html,
}

/// The choice of a format for a judgement.
#[derive(Debug, Clone, Copy, Args)]
pub struct DiagnoseFormatArgs {
    /// How to write the judgement
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: DiagnoseFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl DiagnoseFormatArgs {
    /// The format that was asked for.
    pub fn format(self) -> DiagnoseFormat {
        if self.json {
            DiagnoseFormat::Json
        } else {
            self.format
        }
    }
}

/// How checks are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum CheckFormat {
    /// For people; the first line has at most 80 bytes
    #[default]
    Text,
    /// For programs: versioned and stable
    Json,
    /// For build servers: one test case for each check
    Junit,
    /// For code scanners: SARIF 2.1.0
    Sarif,
    /// For monitoring plugins: one line with figures, and their exit codes
    Nagios,
    /// For node-problem-detector: one line of at most 80 bytes
    Npd,
    /// For the textfile collector of Prometheus
    Prom,
}

/// The choice of a format for checks.
#[derive(Debug, Clone, Copy, Args)]
pub struct CheckFormatArgs {
    /// How to write the checks
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: CheckFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl CheckFormatArgs {
    /// The format that was asked for.
    pub fn format(self) -> CheckFormat {
        if self.json {
            CheckFormat::Json
        } else {
            self.format
        }
    }
}

/// Arguments of `sexton check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Limits of this fleet, in TOML: `[check]` and the names of checks
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Only these checks, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// What the node is for, such as kubernetes-node; told by its files if not given
    #[arg(long, value_name = "NAME")]
    pub shape: Option<String>,
    /// Write to this file, all at once, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How to write the checks.
    #[command(flatten)]
    pub format: CheckFormatArgs,
}

/// Arguments of `sexton explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code of a rule, such as MCG001; without it all are listed
    pub code: Option<String>,
}

/// Arguments of `sexton diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// How long to watch; Ctrl-C judges what there is
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub time: Duration,
    /// Judge this recording instead of the live node; needs no privileges
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["time", "output"])]
    pub from: Option<PathBuf>,
    /// Keep what was seen in this folder, to be judged again or handed on
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Thresholds of this fleet, in TOML: `[rules.MCG001]` and its names
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Also take the time of one read of memory.numa_stat. Danger: before Linux 5.8 with
    /// cgroup v1 it walks every dying cgroup and holds its core, for a second and more
    #[arg(long, conflicts_with = "from")]
    pub ask_numa_stat: bool,
    /// Where to find types of the kernel.
    #[command(flatten)]
    pub btf: BtfArgs,
    /// How to write the judgement.
    #[command(flatten)]
    pub format: DiagnoseFormatArgs,
}

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum By {
    /// Groups of alike cgroups, by their path
    #[default]
    Origin,
    /// systemd units
    Unit,
    /// The files that pin dying ones
    File,
}

/// Arguments of `sexton zombies`.
#[derive(Debug, Args)]
pub struct ZombiesArgs {
    /// What to list in text; JSON always holds all three
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub by: By,
    /// List at most N of each; text shows 10 unless told, JSON all
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Also list every cgroup by itself
    #[arg(long)]
    pub all: bool,
    /// Look at every page of the dying ones, not at a sample
    #[arg(long)]
    pub all_pages: bool,
    /// Where to find types of the kernel.
    #[command(flatten)]
    pub btf: BtfArgs,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Arguments of `sexton record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The folder to record into; one of the same boot is continued
    #[arg(short, long, value_name = "FOLDER", default_value = "sexton.bundle")]
    pub output: PathBuf,
    /// How long to record: 30s, 12h; until a signal comes if not given
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration)]
    pub time: Option<Duration>,
    /// The bundle is never larger; the oldest goes first
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = quantity::bytes)]
    pub max_size: u64,
    /// What is older goes
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = quantity::duration)]
    pub max_age: Duration,
    /// Only these sensors, separated by commas; `sexton doctor` lists them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub sensors: Vec<String>,
    /// Sample the stacks of every core so many times a second
    #[arg(long, value_name = "N", default_value_t = sexton_sensors::stacks::DEFAULT_RATE_HZ, value_parser = hz)]
    pub hz: u32,
    /// Sample no stacks
    #[arg(long, conflicts_with = "hz")]
    pub no_stacks: bool,
    /// Poll a sensor on another beat: cores=50ms
    #[arg(long, value_name = "NAME=TIME", value_parser = beat)]
    pub every: Vec<(String, Duration)>,
    /// Also take the time of one read of memory.numa_stat. Danger: before Linux 5.8 with
    /// cgroup v1 it walks every dying cgroup and holds its core, for a second and more
    #[arg(long)]
    pub ask_numa_stat: bool,
    /// Where to find types of the kernel.
    #[command(flatten)]
    pub btf: BtfArgs,
}

/// Reads a rate of samples.
fn hz(text: &str) -> Result<u32, String> {
    let rates = sexton_sensors::stacks::RATES_HZ;
    let hz = text.parse().ok().filter(|hz| rates.contains(hz));
    hz.ok_or_else(|| format!("a rate is from {} to {}", rates.start(), rates.end()))
}

/// Reads `cores=50ms`.
fn beat(text: &str) -> Result<(String, Duration), String> {
    let (name, time) = text
        .split_once('=')
        .ok_or("write NAME=TIME, such as cores=50ms")?;
    Ok((name.to_owned(), quantity::duration(time)?))
}

/// Arguments of `sexton serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The recording to show, a folder or packed; it may be one that still grows
    pub bundle: Option<PathBuf>,
    /// Where to listen; off loopback a token is needed, and made up if none is given
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8642")]
    pub listen: SocketAddr,
    /// What a client must know; SEXTON_TOKEN does not show up in lists of processes
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Thresholds of this fleet, in TOML, for the recording and for dropped files
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The largest file that may be dropped on the page
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = quantity::bytes)]
    pub max_upload: u64,
    /// Without BUNDLE: the recording is never larger; the oldest goes first
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = quantity::bytes, conflicts_with = "bundle")]
    pub max_size: u64,
}

/// Arguments of `sexton watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Look through this recording, a folder or packed, instead of the live node
    #[arg(long, value_name = "BUNDLE")]
    pub from: Option<PathBuf>,
}

/// Arguments of `sexton drill`.
#[derive(Debug, Args)]
pub struct DrillArgs {
    /// Do not ask; the plan is shown all the same
    #[arg(long)]
    pub yes: bool,
    /// Run `sexton diagnose` at the same time, and print its verdict
    #[arg(long)]
    pub diagnose: bool,
    /// Dying memory cgroups to make
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub dying: u32,
    /// How long it lasts, at most 10 minutes
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = drill_time)]
    pub time: Duration,
    /// Keep what was seen in this folder
    #[arg(short, long, value_name = "FOLDER", requires = "diagnose")]
    pub output: Option<PathBuf>,
    /// How to write the judgement.
    #[command(flatten)]
    pub format: DiagnoseFormatArgs,
}

/// Long enough to see something, short enough to bear.
fn drill_time(text: &str) -> Result<Duration, String> {
    let time = quantity::duration(text)?;
    let bearable = Duration::from_secs(10)..=Duration::from_secs(600);
    match bearable.contains(&time) {
        true => Ok(time),
        false => Err("a drill lasts from 10s to 10m".into()),
    }
}

/// Arguments of a part of a drill.
#[derive(Debug, Args)]
pub struct DrillPartArgs {
    /// What the drill tells it
    pub words: Vec<String>,
}

/// Arguments of `sexton doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Where to find types of the kernel.
    #[command(flatten)]
    pub btf: BtfArgs,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Generated {
    /// Manual pages, section 1
    Man,
    /// Completions for bash, zsh, fish, elvish and PowerShell
    Completions,
    /// Pages of all rules, as Markdown
    Codes,
    /// The page of all facts that a recording may hold, as Markdown
    Facts,
}

/// Arguments of `sexton generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to write
    pub what: Generated,
    /// The folder to write to; it is made if it is not there
    pub folder: PathBuf,
}
