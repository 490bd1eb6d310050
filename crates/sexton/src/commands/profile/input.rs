//! Opens recordings and hands their samples to a question.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, StackSample, StackTables};
use sexton_model::text::escape;
use sexton_profile::filter::{EventChoice, Filter, TimePoint};
use sexton_profile::import::{Importer, Report, Sink};
use sexton_profile::merge::Merger;
use sexton_profile::symbols::{NoSymbols, Symbols};
use sexton_profile::weight::Weight;
use sexton_store::{Bundle, CELL_NS, StackPiece};

use super::progress::Counted;
use super::symbols::FileSymbols;
use crate::cli::profile::{FilterArgs, From, InputArgs, SymbolArgs, WeightArgs, WeightChoice};
use crate::exit::Exit;

/// The recordings and the beginning of the window that `--from` and `FILE` name.
pub struct Inputs {
    /// Files and folders, in order.
    pub files: Vec<PathBuf>,
    /// Where the window begins.
    pub from: Option<TimePoint>,
}

impl Inputs {
    /// Tells files from times.
    pub fn of(args: &InputArgs) -> Result<Self> {
        let mut files = args.files.clone();
        let mut from = None;
        for origin in &args.from {
            match origin {
                From::File(file) => files.push(file.clone()),
                From::Time(time) if from.is_none() => from = Some(*time),
                From::Time(_) => bail!("--from: the window can begin only once"),
            }
        }
        if files.is_empty() {
            bail!("no recording is named: write --from FILE, such as perf.data or a bundle");
        }
        sort_series(&mut files);
        Ok(Self { files, from })
    }

    /// The filter that the arguments describe.
    pub fn filter(&self, args: &InputArgs, filter: &FilterArgs) -> Filter {
        Filter {
            from: self.from,
            to: args.to,
            ..filter_of(&self.files, filter)
        }
    }

    /// Whether samples are chosen by their times.
    pub fn has_window(&self, args: &InputArgs) -> bool {
        self.from.is_some() || args.to.is_some()
    }
}

/// The filter of these recordings, at any time.
pub fn filter_of(files: &[PathBuf], args: &FilterArgs) -> Filter {
    Filter {
        from: None,
        to: None,
        cpus: args.cpu.clone(),
        comms: args.comm.clone(),
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        cgroup: args.cgroup.clone(),
        unit: args.unit.clone(),
        container: args.container.clone(),
        pod: args.pod.clone(),
        function: args.function.clone(),
        event: match args.event.as_deref() {
            None => first_event(files),
            Some("all") => EventChoice::All,
            Some(name) => EventChoice::Named(name.to_owned()),
        },
        idle: args.idle,
    }
}

/// Which event is the first: files say it as they are read, bundles have it written down.
fn first_event(files: &[PathBuf]) -> EventChoice {
    if let [bundle] = files
        && is_bundle(bundle)
        && let Ok(bundle) = Bundle::open(bundle)
        && let Some(first) = bundle.events().first()
    {
        return EventChoice::FirstNamed(first.clone());
    }
    EventChoice::First
}

/// What `--weight` says.
pub fn weight(args: &WeightArgs) -> Weight {
    match args.weight {
        WeightChoice::Samples => Weight::Samples,
        WeightChoice::Time => Weight::Time,
    }
}

/// Files of `perf record --switch-output` end in their time, and are read in that order,
/// however they were given.
fn sort_series(files: &mut [PathBuf]) {
    let is_series = files.iter().all(|file| {
        let name = file.extension().and_then(|end| end.to_str()).unwrap_or("");
        name.len() >= 14 && name.bytes().all(|b| b.is_ascii_digit())
    });
    if is_series {
        files.sort();
    }
}

/// What came of reading.
pub struct Answer {
    /// What the samples refer to.
    pub tables: StackTables,
    /// Whether samples had times.
    pub has_times: bool,
    /// Samples that were read, whatever was asked.
    pub n_samples: u64,
    /// Whether all could be read; what could not was told.
    pub is_complete: bool,
}

impl Answer {
    /// How the command ends.
    pub fn exit(&self) -> Exit {
        if self.is_complete {
            Exit::NothingFound
        } else {
            Exit::Blind
        }
    }
}

impl Answer {
    /// Refuses when nothing is left of what was read, or when times were asked for and there
    /// are none.
    pub fn check(&self, n_left: u64, has_window: bool) -> Result<()> {
        if !self.has_times && has_window {
            bail!("the samples of this recording have no times: --from and --to cannot choose");
        }
        if n_left == 0 {
            bail!("no sample is left, of {} that were read", self.n_samples);
        }
        Ok(())
    }
}

/// Whether a path is a bundle, a folder or one file, and not a recording of perf.
pub fn is_bundle(path: &Path) -> bool {
    (path.is_dir() && !is_perf_folder(path)) || sexton_store::is_packed(path)
}

/// Whether a path is a folder that `perf record --threads` wrote.
fn is_perf_folder(path: &Path) -> bool {
    let is_perf = |mut file: File| {
        let mut start = [0; 8];
        file.read_exact(&mut start).is_ok() && start == *b"PERFILE2"
    };
    path.is_dir() && File::open(path.join("data")).is_ok_and(is_perf)
}

/// Threads of perf that are read at most: it has one for each core, or fewer.
const MAX_PARTS: usize = 4096;

/// Reads such a folder.
fn read_perf_folder(importer: &mut Importer<'_>, folder: &Path) -> Result<Report> {
    let open = |name: &str| -> io::Result<Counted<File>> {
        let file = File::open(folder.join(name))?;
        let len = file.metadata()?.len();
        Ok(Counted::new(
            file,
            &folder.join(name).display().to_string(),
            Some(len),
        ))
    };
    let mut parts = Vec::new();
    for n in 0..MAX_PARTS {
        match open(&format!("data.{n}")) {
            Ok(part) => parts.push(part),
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error).with_context(|| format!("cannot read data.{n}")),
        }
    }
    Ok(importer.read_folder(open("data")?, parts)?)
}

/// Hands all samples of these recordings to `sink`, and says which event it looked at.
pub fn read(files: &[PathBuf], symbols: &SymbolArgs, sink: &mut dyn Sink) -> Result<Answer> {
    let answer = read_all(files, symbols, sink)?;
    tell_event(sink, &answer.tables);
    Ok(answer)
}

/// Says which of several events is shown, unless the user chose one.
pub fn tell_event(sink: &dyn Sink, tables: &StackTables) {
    if let Some((first, others)) = sink.default_event()
        && !others.is_empty()
    {
        let others: Vec<&str> = others.iter().map(|event| tables.name(*event)).collect();
        eprintln!(
            "sexton: showing {}, the first event of the recording; --event all or --event NAME \
             shows others: {}",
            tables.name(first),
            others.join(", ")
        );
    }
}

fn read_all(files: &[PathBuf], symbols: &SymbolArgs, sink: &mut dyn Sink) -> Result<Answer> {
    match files {
        [bundle] if is_bundle(bundle) => read_bundle(bundle, sink),
        files => {
            if let Some(folder) = files.iter().find(|file| is_bundle(file)) {
                bail!(
                    "{}: a bundle is read alone, not together with files",
                    folder.display()
                );
            }
            read_files(files, symbols, sink)
        }
    }
}

fn read_files(files: &[PathBuf], args: &SymbolArgs, sink: &mut dyn Sink) -> Result<Answer> {
    let mut of_files;
    let mut none = NoSymbols;
    let symbols: &mut dyn Symbols = if args.no_symbols {
        &mut none
    } else {
        of_files = FileSymbols::new(args)?;
        &mut of_files
    };
    let mut importer = Importer::new(symbols, sink);
    let mut answer = Answer {
        tables: StackTables::default(),
        has_times: true,
        n_samples: 0,
        is_complete: true,
    };
    for file in files {
        let report = read_file(&mut importer, file)
            .with_context(|| format!("cannot import {}", file.display()))?;
        tell(file, &report);
        answer.has_times &= report.has_times;
        answer.n_samples += report.n_samples;
        answer.is_complete &= report.is_whole();
    }
    let tables = importer.into_tables();
    if tables.is_full() {
        eprintln!("sexton: there are too many different stacks; some were cut short");
        answer.is_complete = false;
    }
    answer.tables = tables.into_tables();
    Ok(answer)
}

fn read_file(importer: &mut Importer<'_>, file: &Path) -> Result<Report> {
    if file == Path::new("-") {
        let stdin = Counted::new(io::stdin(), "stdin", None);
        return Ok(importer.read_stream(stdin)?);
    }
    if is_perf_folder(file) {
        return read_perf_folder(importer, file);
    }
    let opened = File::open(file)?;
    let metadata = opened.metadata()?;
    let name = file.display().to_string();
    if metadata.is_file() {
        let counted = Counted::new(opened, &name, Some(metadata.len()));
        Ok(importer.read_file(counted)?)
    } else {
        Ok(importer.read_stream(Counted::new(opened, &name, None))?)
    }
}

/// Says what is missing from a file, on stderr.
fn tell(file: &Path, report: &Report) {
    let name = escape(file.as_os_str().as_encoded_bytes());
    if let Some(stopped) = &report.stopped {
        eprintln!(
            "sexton: {name}: reading stopped {}: {}; {} samples before it are used",
            stopped.at,
            escape(stopped.why.as_bytes()),
            report.n_samples
        );
    }
    if report.n_lost > 0 {
        eprintln!(
            "sexton: {name}: the kernel dropped {} records while it was recorded (ring buffer \
             full): samples or names are missing",
            report.n_lost
        );
    }
    if report.n_not_unwound > 0 {
        eprintln!(
            "sexton: {name}: {} copied user stacks could not be unwound to their end: the copy is \
             too short (--call-graph dwarf,65528 copies more) or a file is not there",
            report.n_not_unwound
        );
    }
    if report.n_skipped > 0 {
        eprintln!(
            "sexton: {name}: passed over {} damaged or unknown records or lines; samples may be \
             missing",
            report.n_skipped
        );
    }
    if report.n_odd > 0 {
        eprintln!(
            "sexton: {name}: {} samples are longer than the file's header says; they may be \
             damaged",
            report.n_odd
        );
    }
}

fn read_bundle(folder: &Path, sink: &mut dyn Sink) -> Result<Answer> {
    let bundle = Bundle::open(folder)?;
    let mut answer = Answer {
        tables: StackTables::default(),
        has_times: true,
        n_samples: 0,
        is_complete: true,
    };
    if let Some(span) = bundle.stacks_span() {
        sink.begin(span.start().as_ns());
    }
    let window = sink.window_ns();
    let window = Moment::from_ns(*window.start())..=Moment::from_ns(*window.end());
    let gaps = if sink.wants_stacks() || sink.wants_owners() {
        read_samples(&bundle, window, sink, &mut answer)
    } else if sink.takes_cells(CELL_NS) {
        read_cells(&bundle, window, sink, &mut answer)
    } else {
        read_ticks(&bundle, window, sink, &mut answer)
    };
    for gap in gaps {
        let text = escape(gap.text.as_bytes());
        eprintln!("sexton: {}: {text}", folder.display());
        answer.is_complete = false;
    }
    Ok(answer)
}

fn read_samples(
    bundle: &Bundle,
    window: RangeInclusive<Moment>,
    sink: &mut dyn Sink,
    answer: &mut Answer,
) -> Vec<Gap> {
    let mut merger = Merger::default();
    let mut gaps = Vec::new();
    for piece in bundle.stacks(Some(window)) {
        match piece {
            StackPiece::Chunk(chunk) => {
                answer.n_samples += chunk.samples.len() as u64;
                merger.feed(chunk.segment, &chunk.samples, &chunk.tables, sink);
            }
            StackPiece::Gap(_, gap) => gaps.push(gap),
        }
    }
    answer.tables = merger.into_tables();
    gaps
}

/// For questions that ask only when cores were busy.
fn read_ticks(
    bundle: &Bundle,
    window: RangeInclusive<Moment>,
    sink: &mut dyn Sink,
    answer: &mut Answer,
) -> Vec<Gap> {
    let tables = StackTables::default();
    let gaps = bundle.ticks(Some(window), &mut |ticks| {
        answer.n_samples += ticks.len() as u64;
        for tick in ticks {
            let sample = StackSample::without_owner(tick.at, tick.cpu, tick.state);
            sink.sample(&sample, &tables);
        }
    });
    gaps.into_iter().map(|(_, gap)| gap).collect()
}

/// For those of them that ask in whole cells of time.
fn read_cells(
    bundle: &Bundle,
    window: RangeInclusive<Moment>,
    sink: &mut dyn Sink,
    answer: &mut Answer,
) -> Vec<Gap> {
    let tables = StackTables::default();
    let mut times = Vec::new();
    let gaps = bundle.tick_cells(Some(window), &mut |cells| {
        for alike in cells.chunk_by(|a, b| (a.cpu, a.is_idle) == (b.cpu, b.is_idle)) {
            let state = if alike[0].is_idle {
                CoreState::Idle
            } else {
                CoreState::Unknown
            };
            answer.n_samples += alike.iter().map(|cell| u64::from(cell.n)).sum::<u64>();
            let sample = StackSample::without_owner(alike[0].at, alike[0].cpu, state);
            times.clear();
            times.extend(alike.iter().map(|cell| (cell.at, cell.n)));
            sink.samples(&sample, &times, &tables);
        }
    });
    gaps.into_iter().map(|(_, gap)| gap).collect()
}
