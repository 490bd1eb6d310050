//! The command line. Man pages and completions are made from these definitions.

pub mod agent;
pub mod btf;
pub mod bundle;
pub mod fix;
pub mod kubernetes;
pub mod profile;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::quantity;
use btf::BtfArgs;
use bundle::BundleCommand;
use fix::FixArgs;

mod check;
mod drill;
mod fleet;
mod image;
mod signatures;

pub use check::*;
pub use drill::*;
pub use fleet::FleetArgs;
pub use image::*;
pub use signatures::SignatureArgs;

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
    /// Find what is wrong with the node, its root cause, and what to type
    ///
    /// Runs every sensor for 30 seconds, reads what the node remembers (kernel log, unit
    /// state, dying cgroups), and prints the verdict in one screen: root cause, causal chain,
    /// what to type. --full adds the evidence. It changes nothing. Exits with 0 when the node
    /// is healthy, with 1 when there are findings, and with 3 when there is too little data.
    Diagnose(DiagnoseArgs),
    /// A gate for image pipelines, cron and node-problem-detector: a few counts, at once
    ///
    /// Memory cgroups, failed units, restarts, containers in a restart loop,
    /// resets of network devices: each against a limit. Loads no BPF program. Exits with 0
    /// when all pass, with 1 when one does not, and with 3 when none fails but one could
    /// not be seen. With --format nagios the codes are those of monitoring plugins: 0 OK,
    /// 2 critical, 3 unknown.
    Check(CheckArgs),
    /// Judge an image that has not booted: which units would run, and which should not
    ///
    /// SOURCE is a root folder, / for the running system, a disk image (raw, qcow2, VMDK, VHD,
    /// VHDX), a filesystem (ext4, XFS, squashfs), an OCI layout, what docker save writes, or a
    /// tar. It is recognised by content; nothing is mounted and nothing of it is executed.
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
    /// Fix it now, without a reboot: stop the source, reclaim what it left
    ///
    /// Prints a plan and changes nothing. With --apply it asks once, writes down how to
    /// take each change back, carries the plan out step by step, and counts before and
    /// after each. Files are never deleted or cut. Exits with 0 when nothing is left, with
    /// 1 when something is, with 3 when it cannot see.
    Fix(FixArgs),
    /// Pack a recording into one file, or unpack it
    ///
    /// Whatever reads a recording reads the file as well. Segments are compressed already,
    /// so it is not much smaller than the folder; it is easier to send.
    #[command(subcommand)]
    Bundle(BundleCommand),
    /// What sexton can and cannot see here, why, and what to type to change that
    ///
    /// Exits with 0 when every sensor sees all it can, with 3 when one does not.
    Doctor(DoctorArgs),
    /// Run on a node all the time: record, judge, keep incidents, serve page and metrics
    ///
    /// Records every sensor into a ring that is bounded in size and age, judges the node every
    /// 30 seconds, logs what opens and what is over, and keeps the minutes around a serious
    /// finding. Serves a page and metrics on loopback. Runs in the foreground until a signal
    /// comes; SIGHUP reloads the configuration. See docs/agent.md.
    Agent(agent::AgentArgs),
    /// Status of the agent: verdict, open findings, sensors, budget, ring
    ///
    /// Exits with 0 when the node is healthy, with 1 when findings are open, with 2 when no
    /// agent answers, and with 3 when it cannot tell.
    Status(agent::StatusArgs),
    /// List the incidents that the agent kept, newest first
    ///
    /// An incident holds what was recorded from ten minutes before a serious finding opened
    /// until five minutes after. diagnose --from NAME and serve NAME open one.
    Incidents(agent::IncidentsArgs),
    /// Whether only a reboot is left, for kured: 0 yes, 1 no, 2 cannot tell
    ///
    /// Yes only when `sexton fix --apply` ran in this boot, could not free enough dying memory
    /// cgroups, and no new ones come: else the next boot is like this one.
    RebootNeeded,
    /// Whether what was open before the last reboot is gone, with the proof
    ///
    /// The agent watches each boot for ten minutes: the rule finds nothing, the unit is off or
    /// does not loop, the count of dying memory cgroups is flat. Exits with 0 when all is
    /// proved, with 1 when it is not (yet), with 2 when no agent answers, and with 3 when it
    /// has not judged yet.
    VerifyBoot(kubernetes::VerifyBootArgs),
    /// Kubernetes: remove what the agent reported; the agent itself reports conditions and events
    #[command(subcommand)]
    Kubernetes(kubernetes::KubernetesCommand),
    /// Compare nodes: what the bad ones of a fleet have in common
    ///
    /// Starts the program sexton-fleet, which is installed beside sexton or in PATH. `sexton
    /// fleet --help` lists its commands. See docs/fleet.md.
    #[command(disable_help_flag = true)]
    Fleet(FleetArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
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
    /// Output format
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

/// Arguments of `sexton explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The code of a rule, such as MCG001; without it all are listed
    pub code: Option<String>,
}

/// Arguments of `sexton diagnose`.
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// How long to watch; Ctrl-C ends it early and prints the verdict
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub time: Duration,
    /// A bundle to diagnose instead of the live node, a folder or packed; needs no privileges
    #[arg(value_name = "BUNDLE", conflicts_with_all = ["time", "output"])]
    pub bundle: Option<PathBuf>,
    /// The same as BUNDLE
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["bundle", "time", "output"])]
    pub from: Option<PathBuf>,
    /// Answer from the agent's ring: what was found in the last 12h
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with_all = ["time", "bundle", "from", "output", "ask_numa_stat"])]
    pub last: Option<Duration>,
    /// Answer from the agent's ring: what was found around '03:12' or '2026-11-18 03:12' (UTC)
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["time", "bundle", "from", "output", "last", "ask_numa_stat"])]
    pub at: Option<String>,
    /// The agent, for --last and --at.
    #[command(flatten)]
    pub agent: agent::WhichAgent,
    /// Keep the recording as a bundle in this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Show everything: evidence, what was ruled out, forecast, each blind spot
    #[arg(long)]
    pub full: bool,
    /// Do not use a pager
    #[arg(long)]
    pub no_pager: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Policy file (TOML) with thresholds: `[rules.MCG001]`
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Signatures of your own.
    #[command(flatten)]
    pub signatures: SignatureArgs,
    /// Also time one read of memory.numa_stat. Danger: before Linux 5.8 with cgroup v1 it
    /// walks every dying cgroup and occupies a core for a second or more
    #[arg(long, conflicts_with_all = ["bundle", "from"])]
    pub ask_numa_stat: bool,
    /// Where to find types of the kernel.
    #[command(flatten)]
    pub btf: BtfArgs,
    /// Output format.
    #[command(flatten)]
    pub format: DiagnoseFormatArgs,
}

impl DiagnoseArgs {
    /// The bundle to diagnose; without one, the live node.
    pub fn bundle(&self) -> Option<&Path> {
        self.bundle.as_deref().or(self.from.as_deref())
    }
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
    #[arg(short = 'n', long, value_name = "N")]
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
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// How long to record: 30s, 12h; until a signal comes if not given
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration)]
    pub time: Option<Duration>,
    /// Largest size of the bundle; the oldest data is dropped first
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = quantity::bytes)]
    pub max_size: u64,
    /// Drop data older than this
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = quantity::duration)]
    pub max_age: Duration,
    /// Only these sensors, separated by commas; `sexton doctor` lists them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub sensors: Vec<String>,
    /// Stack samples per second and core
    #[arg(long, value_name = "N", default_value_t = sexton_sensors::stacks::DEFAULT_RATE_HZ, value_parser = hz)]
    pub hz: u32,
    /// Sample no stacks
    #[arg(long, conflicts_with = "hz")]
    pub no_stacks: bool,
    /// Record what threads wait for, too, and who wakes them: waits from 1 ms on, or
    /// --off-cpu=TIME. Needs BPF
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms", value_parser = quantity::duration, conflicts_with = "no_stacks")]
    pub off_cpu: Option<Duration>,
    /// Poll a sensor at another interval: cores=50ms
    #[arg(long, value_name = "NAME=TIME", value_parser = beat)]
    pub every: Vec<(String, Duration)>,
    /// Also time one read of memory.numa_stat. Danger: before Linux 5.8 with cgroup v1 it
    /// walks every dying cgroup and occupies a core for a second or more
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
    /// Address to listen on; other than loopback needs a token, generated if not given
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8642")]
    pub listen: SocketAddr,
    /// Access token for clients; SEXTON_TOKEN keeps it out of process lists
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,
    /// Thresholds of this fleet, in TOML, for the recording and for dropped files
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Signatures of your own.
    #[command(flatten)]
    pub signatures: SignatureArgs,
    /// The largest file that may be dropped on the page
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = quantity::bytes)]
    pub max_upload: u64,
    /// Without BUNDLE: largest size of the recording; the oldest data is dropped first
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = quantity::bytes, conflicts_with = "bundle")]
    pub max_size: u64,
}

/// Arguments of `sexton watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// A bundle to step through instead of the live node, a folder or packed
    #[arg(value_name = "BUNDLE")]
    pub bundle: Option<PathBuf>,
    /// The same as BUNDLE
    #[arg(long, value_name = "BUNDLE", conflicts_with = "bundle")]
    pub from: Option<PathBuf>,
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

/// Arguments of `sexton completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell, such as bash
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
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
    /// Recording and alert rules for Prometheus, and their tests for promtool
    Prometheus,
    /// Dashboards for Grafana
    Grafana,
    /// The page of conditions of a node in Kubernetes, as Markdown
    Kubernetes,
}

/// Arguments of `sexton generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to write
    pub what: Generated,
    /// The folder to write to; it is made if it is not there
    pub folder: PathBuf,
}
