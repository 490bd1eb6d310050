//! Arguments of `sexton profile`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use regex::Regex;
use sexton_profile::filter::TimePoint;
use sexton_sensors::stacks::one;

use crate::quantity;

const RECORD_EXAMPLES: &str = "\
Examples:
  sexton profile record -- make -j4          a program, until it exits
  sexton profile record 4242 --for 30s -o web.bundle
  sexton profile record --off-cpu -- ./program
  sexton profile top profile.bundle          functions that took most
  sexton profile top profile.bundle --event off-cpu
                                             what it waited for, and who woke it";

const EXAMPLES: &str = "\
Examples:
  sexton profile record -- ./program         record one program, without root
  perf record -a -g -- sleep 10              record all cores for 10 s
  sexton profile top --from perf.data        functions that took most
  sexton profile top --from perf.data --callers do_syscall_64
  sexton profile heatmap --from perf.data    when cores were busy
  sexton profile flame --from perf.data --from 3s --to 4s -o flame.html
  sexton profile diff old.data new.data      what grew, what shrank
  perf record -g -o - -- ./program | sexton profile top -";

/// Arguments of `sexton profile`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ProfileArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: ProfileCommand,
}

/// What to do with profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileCommand {
    /// Record one process or one program, with its threads and child processes
    ///
    /// Needs no root for your own processes, as far as kernel.perf_event_paranoid allows. The
    /// recording is a bundle, which all other verbs read. It ends with the process, after --for,
    /// or with Ctrl-C; a program that is still running is not stopped.
    Record(RecordArgs),
    /// Read recordings into a bundle
    ///
    /// Several files, such as those of perf record --switch-output, become one recording.
    /// A truncated or damaged file gives what could be read; then stderr says what is
    /// missing, and the exit code is 3.
    Import(ImportArgs),
    /// Write a recording in the format of another viewer
    Export(ExportArgs),
    /// Draw when cores were busy: columns are seconds, rows fractions of a second
    Heatmap(HeatmapArgs),
    /// Draw where the time went: a flame graph of any window, or of two compared
    Flame(FlameArgs),
    /// List the functions, stacks or threads that took most
    Top(TopArgs),
    /// Compare two recordings: functions whose share grew or shrank
    ///
    /// Shares are compared, not sums, so that recordings of different length can be.
    Diff(DiffArgs),
}

/// Where samples come from.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// Recordings: perf.data, perf script text, folded stacks, or a bundle; - is stdin
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A recording, the same as FILE; or where the window begins: 12.5s or 1h30m after the
    /// recording's first whole second, @11078.25 by its own clock. May be given twice
    #[arg(long, value_name = "FILE|TIME", value_parser = origin)]
    pub from: Vec<From>,
    /// Where the window ends, the same way
    #[arg(long, value_name = "TIME", value_parser = time_point)]
    pub to: Option<TimePoint>,
    /// How functions get their names.
    #[command(flatten)]
    pub symbols: SymbolArgs,
}

/// How functions get their names.
#[derive(Debug, Default, Args)]
pub struct SymbolArgs {
    /// Names of the kernel's functions; this machine's if not given
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
    /// Look for programs and libraries below this folder
    #[arg(long, value_name = "FOLDER")]
    pub symfs: Option<PathBuf>,
    /// Look up no names at all
    #[arg(long)]
    pub no_symbols: bool,
}

/// What `--from` may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum From {
    /// Where the window begins.
    Time(TimePoint),
    /// A recording.
    File(PathBuf),
}

/// Which samples.
#[derive(Debug, Args)]
pub struct FilterArgs {
    /// Only on these cores, separated by commas
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub cpu: Vec<u32>,
    /// Only threads of these names
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub comm: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID,...", value_delimiter = ',')]
    pub pid: Vec<u32>,
    /// Only these threads
    #[arg(long, value_name = "TID,...", value_delimiter = ',')]
    pub tid: Vec<u32>,
    /// Only cgroups at or below this path
    #[arg(long, value_name = "PATH")]
    pub cgroup: Option<String>,
    /// Only this systemd unit
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Only the container with this id; its beginning is enough
    #[arg(long, value_name = "ID")]
    pub container: Option<String>,
    /// Only containers of the Kubernetes pod with this uid; its beginning is enough
    #[arg(long, value_name = "UID")]
    pub pod: Option<String>,
    /// Only stacks with a function that this regular expression matches
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    pub function: Option<Regex>,
    /// Only this event, or all; the first of the recording's list if not given
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// Idle cores, too
    #[arg(long)]
    pub idle: bool,
}

/// What to add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum WeightChoice {
    /// Each sample is one
    Samples,
    /// Nanoseconds of a clock, or the count of another event
    #[default]
    Time,
}

/// What to add up.
#[derive(Debug, Default, Args)]
pub struct WeightArgs {
    /// Add up samples, or what they stand for
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub weight: WeightChoice,
}

/// Arguments of `sexton profile record`.
#[derive(Debug, Args)]
#[command(after_help = RECORD_EXAMPLES)]
pub struct RecordArgs {
    /// The process to record
    #[arg(value_name = "PID", required_unless_present = "command")]
    pub pid: Option<u32>,
    /// The program to start and record, with its arguments
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "pid")]
    pub command: Vec<OsString>,
    /// The bundle to write, a folder; it must not exist
    #[arg(short, long, value_name = "BUNDLE", default_value = "profile.bundle")]
    pub output: PathBuf,
    /// How long to record: 30s, 5m; until the process exits if not given
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration)]
    pub time: Option<Duration>,
    /// Samples per second of processor time
    #[arg(long, value_name = "N", default_value_t = one::DEFAULT_RATE_HZ, value_parser = hz)]
    pub hz: u32,
    /// Record waits, too: for what, and who ended them; from 1 ms on, or --off-cpu=TIME. Needs
    /// root and BPF
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms", value_parser = quantity::duration)]
    pub off_cpu: Option<Duration>,
}

/// Reads a rate of samples of one process.
fn hz(text: &str) -> Result<u32, String> {
    let hz = text.parse().ok().filter(|hz| one::RATES_HZ.contains(hz));
    let (least, most) = (one::RATES_HZ.start(), one::RATES_HZ.end());
    hz.ok_or_else(|| format!("a rate is from {least} to {most}"))
}

/// Arguments of `sexton profile import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Recordings: perf.data, perf script text, folded stacks; - is stdin
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The bundle to write, a folder; it must not exist
    #[arg(short, long, value_name = "BUNDLE")]
    pub output: PathBuf,
    /// How functions get their names.
    #[command(flatten)]
    pub symbols: SymbolArgs,
}

/// Formats of other viewers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One line for each stack
    Folded,
    /// gzip-packed profile.proto, with times as labels
    Pprof,
    /// Profiles of OpenTelemetry as protobuf, with times
    Otlp,
    /// JSON for speedscope
    Speedscope,
    /// JSON for the Firefox Profiler
    Firefox,
    /// A flame graph as picture
    Svg,
    /// A flame graph as one page to zoom and search in
    Html,
}

/// Arguments of `sexton profile export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Where samples come from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Which samples.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: ExportFormat,
    /// What to add up.
    #[command(flatten)]
    pub weight: WeightArgs,
    /// Turn graphs around: innermost functions first, then who called them
    #[arg(long)]
    pub inverted: bool,
    /// Mark functions of the kernel with _[k], as FlameGraph does
    #[arg(long)]
    pub kernel: bool,
    /// The file to write; stdout if not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What to draw a heat map for each of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum HeatmapBy {
    /// One for the whole machine
    #[default]
    All,
    /// Each core
    Core,
    /// Each process
    Process,
    /// Each thread
    Thread,
    /// Each name of threads
    Comm,
    /// Each cgroup
    Cgroup,
    /// Each systemd unit
    Unit,
}

/// How a heat map is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HeatmapFormat {
    /// For a terminal
    Text,
    /// A picture of pixels
    Png,
    /// A picture that scales, with counts
    Svg,
    /// One page to choose windows in
    Html,
    /// The numbers, named as FlameScope names them
    Json,
}

/// Arguments of `sexton profile heatmap`.
#[derive(Debug, Args)]
pub struct HeatmapArgs {
    /// Where samples come from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Which samples.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// One heat map for each of what
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub by: HeatmapBy,
    /// How many of them, those with most samples first
    #[arg(long, value_name = "N", default_value_t = 16)]
    pub top: usize,
    /// Rows: fractions of a column
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = rows)]
    pub rows: usize,
    /// The time of a column; longer ones show hours
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = quantity::duration)]
    pub column: Duration,
    /// Draw that something happened: 12.5s=eth0 was reset. Those of a bundle are drawn
    /// anyway
    #[arg(long, value_name = "TIME=TEXT", value_parser = mark)]
    pub mark: Vec<(TimePoint, String)>,
    /// List the busiest windows of this width on each core instead
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "300ms", value_parser = quantity::duration)]
    pub busiest: Option<Duration>,
    /// How to draw it; by the ending of the output file if not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<HeatmapFormat>,
    /// The file to write; stdout if not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How a flame graph is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FlameFormat {
    /// The tree, for a terminal
    Text,
    /// A picture
    Svg,
    /// One page to zoom and search in
    Html,
    /// One line for each stack; of two windows, the other one's count first
    Folded,
}

/// Arguments of `sexton profile flame`.
#[derive(Debug, Args)]
pub struct FlameArgs {
    /// Where samples come from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Which samples.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What to add up.
    #[command(flatten)]
    pub weight: WeightArgs,
    /// Turn it around: innermost functions first, then who called them
    #[arg(long)]
    pub inverted: bool,
    /// Compare with this window: 3s..5s
    #[arg(long, value_name = "TIME..TIME", value_parser = window)]
    pub against: Option<(TimePoint, TimePoint)>,
    /// How to draw it; by the ending of the output file if not given, else text
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FlameFormat>,
    /// In text, leave out what has less than this share, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    pub at_least: f64,
    /// The file to write; stdout if not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Arguments of `sexton profile top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Where samples come from.
    #[command(flatten)]
    pub input: InputArgs,
    /// Which samples.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What to add up.
    #[command(flatten)]
    pub weight: WeightArgs,
    /// Whole stacks instead of functions
    #[arg(long, group = "what")]
    pub stacks: bool,
    /// Threads instead of functions
    #[arg(long, group = "what")]
    pub threads: bool,
    /// Functions that called this one: its name, or a regular expression
    #[arg(long, group = "what", value_name = "FUNCTION")]
    pub callers: Option<String>,
    /// Functions that this one called
    #[arg(long, group = "what", value_name = "FUNCTION")]
    pub callees: Option<String>,
    /// How many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// How to write the result.
    #[command(flatten)]
    pub format: super::FormatArgs,
}

/// Arguments of `sexton profile diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The recording to compare with: any that other verbs read
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The recording to look at
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// How functions get their names.
    #[command(flatten)]
    pub symbols: SymbolArgs,
    /// Which samples.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What to add up.
    #[command(flatten)]
    pub weight: WeightArgs,
    /// How many functions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Draw a flame graph of the difference into this file: .svg, .html, .folded
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How to write the result.
    #[command(flatten)]
    pub format: super::FormatArgs,
}

/// A time is a time, and all else is a file: `./12s` for one that is called like a time.
fn origin(text: &str) -> Result<From, String> {
    Ok(match time_point(text) {
        Ok(point) => From::Time(point),
        Err(_) => From::File(PathBuf::from(text)),
    })
}

/// Reads `12.5s`, `1h30m` or `@11078.25`.
fn time_point(text: &str) -> Result<TimePoint, String> {
    let wrong = || format!("{text:?} is no time: write 12.5s, 1h30m, 250ms or @11078.25");
    if let Some(clock) = text.strip_prefix('@') {
        return quantity::seconds_ns(clock.trim_end_matches('s'))
            .map(TimePoint::Clock)
            .ok_or_else(wrong);
    }
    let with_fraction = text.strip_suffix('s').and_then(quantity::seconds_ns);
    let ns = match with_fraction {
        Some(ns) => ns,
        None => {
            let time = quantity::duration(text).map_err(|_| wrong())?;
            u64::try_from(time.as_nanos()).map_err(|_| wrong())?
        }
    };
    Ok(TimePoint::Offset(ns))
}

fn window(text: &str) -> Result<(TimePoint, TimePoint), String> {
    let (from, to) = text
        .split_once("..")
        .ok_or("write TIME..TIME, such as 3s..5s")?;
    Ok((time_point(from)?, time_point(to)?))
}

fn mark(text: &str) -> Result<(TimePoint, String), String> {
    let (time, what) = text
        .split_once('=')
        .ok_or("write TIME=TEXT, such as 12.5s=eth0 was reset")?;
    Ok((time_point(time)?, what.to_owned()))
}

fn rows(text: &str) -> Result<usize, String> {
    let rows = text.parse().ok().filter(|rows| (1..=1000).contains(rows));
    rows.ok_or_else(|| "write a number from 1 to 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_files_are_told_apart() {
        for (text, ns) in [
            ("12.5s", 12_500_000_000),
            ("0s", 0),
            ("1m30s", 90_000_000_000),
            ("250ms", 250_000_000),
        ] {
            assert_eq!(
                origin(text),
                Ok(From::Time(TimePoint::Offset(ns))),
                "{text}"
            );
        }
        assert_eq!(
            origin("@11078.25"),
            Ok(From::Time(TimePoint::Clock(11_078_250_000_000)))
        );
        for file in ["perf.data", "12", "./12s", "-", "@x"] {
            assert_eq!(origin(file), Ok(From::File(file.into())), "{file}");
        }
    }
}
