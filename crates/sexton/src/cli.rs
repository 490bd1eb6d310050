//! The command line. Man pages and completions are made from these definitions.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::quantity;

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
    /// Live view in the terminal, or a look through a recording
    ///
    /// Shows every core, the dying memory cgroups, units that restart, starved network
    /// polling, events of the kernel, and what is not seen. Keys are shown on the screen.
    Watch(WatchArgs),
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
    /// Poll a sensor on another beat: cores=50ms
    #[arg(long, value_name = "NAME=TIME", value_parser = beat)]
    pub every: Vec<(String, Duration)>,
}

/// Reads `cores=50ms`.
fn beat(text: &str) -> Result<(String, Duration), String> {
    let (name, time) = text
        .split_once('=')
        .ok_or("write NAME=TIME, such as cores=50ms")?;
    Ok((name.to_owned(), quantity::duration(time)?))
}

/// Arguments of `sexton watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Look through this recording instead of the live node
    #[arg(long, value_name = "FOLDER")]
    pub from: Option<PathBuf>,
}

/// Arguments of `sexton doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
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
}

/// Arguments of `sexton generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// What to write
    pub what: Generated,
    /// The folder to write to; it is made if it is not there
    pub folder: PathBuf,
}
