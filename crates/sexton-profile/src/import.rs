//! Reads recordings of others: perf.data, the text of `perf script`, folded stacks, pprof and
//! profiles of OpenTelemetry; each also packed with gzip. All but the last two stream: samples
//! go to a [`Sink`] as they are read, and what is kept (names, frames, stacks) does not grow
//! with the length of a recording but with how much differs in it.
//!
//! A truncated or damaged file gives what could be read; [`Report::stopped`] says where it
//! ended and why.

mod bytes;
mod folded;
mod lines;
mod listed;
mod otlp;
pub mod perf_data;
mod perf_script;
mod pprof;
mod wire;

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::RangeInclusive;

use flate2::read::MultiGzDecoder;
use sexton_model::moment::Moment;
use sexton_model::stack::{NameId, StackSample, StackTables};

use crate::filter::Matcher;
use crate::symbols::Symbols;
use crate::tables::TableBuilder;
use bytes::Window;

/// Where samples go.
pub trait Sink {
    /// Takes one sample; the tables hold all that it refers to.
    fn sample(&mut self, sample: &StackSample, tables: &StackTables);

    /// Whether it looks at stacks. When it does not, importers leave out all but those of
    /// idle cores, which is where most of the work is.
    fn wants_stacks(&self) -> bool {
        true
    }

    /// Whether it looks at who ran: process, names, event, weight. When it does not, and not
    /// at stacks either, readers of bundles leave these out, which is most of the work.
    fn wants_owners(&self) -> bool {
        true
    }

    /// Whether it is all the same to it when within a cell a sample was taken, its first
    /// microsecond excepted: cells are this long, and begin at multiples of it. Then readers
    /// of bundles may count samples instead of telling each.
    fn takes_cells(&self, _cell_ns: u64) -> bool {
        false
    }

    /// Takes samples that differ from this one in their times only: when, and how many.
    fn samples(&mut self, like: &StackSample, times: &[(Moment, u32)], tables: &StackTables) {
        for &(at, n) in times {
            for _ in 0..n {
                self.sample(&StackSample { at, ..*like }, tables);
            }
        }
    }

    /// What lets samples pass, of one who looks at a part of them. It hears what the recording tells
    /// of itself, and knows what is left out.
    fn matcher(&self) -> Option<&Matcher> {
        None
    }

    /// The same, to be told.
    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        None
    }

    /// Hears which events the recording has, in the order of its list, before its first
    /// sample. Texts have no such list.
    fn events(&mut self, names: &[NameId], _tables: &StackTables) {
        if let Some(matcher) = self.matcher_mut() {
            matcher.events(names);
        }
    }

    /// The event that it looks at because it is the first one, and others that it therefore
    /// left out.
    fn default_event(&self) -> Option<(NameId, &[NameId])> {
        self.matcher()?.default_event()
    }

    /// Hears when the recording begins, from readers that may leave out what is not within
    /// [`Self::window_ns`].
    fn begin(&mut self, at_ns: u64) {
        if let Some(matcher) = self.matcher_mut() {
            matcher.begin(at_ns);
        }
    }

    /// The times that it looks at, once it has heard when the recording begins.
    fn window_ns(&self) -> RangeInclusive<u64> {
        self.matcher().map_or(0..=u64::MAX, Matcher::window_ns)
    }

    /// Whether it tells places of one file apart that have no name. When it does not,
    /// importers take them as one, and there are far fewer different stacks.
    fn wants_addresses(&self) -> bool {
        true
    }
}

impl Sink for Vec<StackSample> {
    fn sample(&mut self, sample: &StackSample, _: &StackTables) {
        self.push(*sample);
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `perf record -o FILE`.
    PerfData,
    /// `perf record -o -`.
    PerfPipe,
    /// `perf script`.
    PerfScript,
    /// One line per stack, frames separated by semicolons, then a count.
    Folded,
    /// `profile.proto` of pprof.
    Pprof,
    /// Profiles of OpenTelemetry.
    Otlp,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PerfData => "perf.data",
            Self::PerfPipe => "perf.data in pipe mode",
            Self::PerfScript => "perf script text",
            Self::Folded => "folded stacks",
            Self::Pprof => "pprof",
            Self::Otlp => "OTLP profiles",
        })
    }
}

/// Where in a file reading ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// At this byte, from 0.
    Byte(u64),
    /// In this line, from 1.
    Line(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Byte(n) => write!(f, "at byte {n}"),
            Self::Line(n) => write!(f, "in line {n}"),
        }
    }
}

/// Why reading ended before the file did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// Where; positions in packed files are those of what they unpack to.
    pub at: Position,
    /// Why.
    pub why: String,
}

/// What reading a file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What the file is.
    pub format: Format,
    /// Samples that were read.
    pub n_samples: u64,
    /// Samples and other records that the kernel could not write, as it says.
    pub n_lost: u64,
    /// Samples that came later than one with a later time, beyond what perf allows for.
    pub n_unordered: u64,
    /// Records or lines that make no sense, or of a kind that is not known.
    pub n_skipped: u64,
    /// Samples that are longer than the file's header says: they may be damaged.
    pub n_odd: u64,
    /// Samples with a copy of the user stack that was not unwound to its end: the copy is too
    /// short, or a file is not there.
    pub n_not_unwound: u64,
    /// Whether all samples have times. Folded stacks have none, perf script text may.
    pub has_times: bool,
    /// Where it ended early, if it did.
    pub stopped: Option<Stopped>,
}

impl Report {
    fn new(format: Format) -> Self {
        Self {
            format,
            n_samples: 0,
            n_lost: 0,
            n_unordered: 0,
            n_skipped: 0,
            n_odd: 0,
            n_not_unwound: 0,
            has_times: format != Format::Folded,
            stopped: None,
        }
    }

    /// Whether all that happened while it was recorded is in the file, was read, and makes
    /// sense.
    pub fn is_whole(&self) -> bool {
        self.stopped.is_none() && self.n_skipped == 0 && self.n_odd == 0 && self.n_lost == 0
    }

    fn stop(&mut self, at: Position, why: impl Into<String>) {
        self.stopped.get_or_insert(Stopped {
            at,
            why: why.into(),
        });
    }
}

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It could not be read.
    #[error("cannot read it")]
    Read(#[source] io::Error),
    /// It is something else.
    #[error(
        "it is no recording that is known here: neither perf.data, perf script text, folded stacks, pprof nor OTLP profiles"
    )]
    Unknown,
    /// It has frames as in perf script text, but nothing says whose they are.
    #[error(
        "it has stacks like perf script text, but no line names a thread and an event; write it with perf script -F comm,pid,tid,cpu,time,period,event,ip,sym,dso"
    )]
    NoEventLines,
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It is perf.data, but from a machine with the other byte order.
    #[error(
        "it was recorded on a big-endian machine; convert it there: perf script > FILE, then import that text"
    )]
    BigEndian,
    /// Its header is damaged.
    #[error("its header is damaged: {0}")]
    Header(&'static str),
}

/// Reads files into one recording. Several files of a series (`perf record
/// --switch-output`) share names, stacks, and what is known of processes.
pub struct Importer<'a> {
    pub(crate) tables: TableBuilder,
    pub(crate) machine: perf_data::Machine,
    pub(crate) symbols: &'a mut dyn Symbols,
    pub(crate) sink: &'a mut dyn Sink,
}

/// Enough to tell what a file is: a header of perf.data, or some lines.
const SNIFFED: usize = 16 << 10;

impl<'a> Importer<'a> {
    /// Samples go to `sink`; names of functions come from `symbols`.
    pub fn new(symbols: &'a mut dyn Symbols, sink: &'a mut dyn Sink) -> Self {
        Self {
            tables: TableBuilder::default(),
            machine: perf_data::Machine::default(),
            symbols,
            sink,
        }
    }

    /// What the samples refer to.
    pub fn into_tables(self) -> TableBuilder {
        self.tables
    }

    /// Reads a file. Better than [`Self::read_stream`] because the names of a perf.data's
    /// events are at its end.
    pub fn read_file<R: Read + Seek + Send>(&mut self, mut file: R) -> Result<Report, ImportError> {
        let features = perf_data::features_of_file(&mut file);
        file.seek(SeekFrom::Start(0)).map_err(ImportError::Read)?;
        self.read(Window::new(file), features)
    }

    /// Reads the folder that `perf record --threads` writes: its file `data`, and `data.0` and
    /// so on, which hold records only.
    pub fn read_folder<R: Read + Seek + Send>(
        &mut self,
        mut data: R,
        parts: Vec<R>,
    ) -> Result<Report, ImportError> {
        let features = perf_data::features_of_file(&mut data);
        data.seek(SeekFrom::Start(0)).map_err(ImportError::Read)?;
        let mut window = Window::new(data);
        let start = window.up_to(SNIFFED).map_err(ImportError::Read)?;
        let format = sniff(start)?;
        if format != Format::PerfData {
            return Err(ImportError::Unknown);
        }
        let parts = parts.into_iter().map(Window::new).collect();
        perf_data::read(self, format, window, parts, features)
    }

    /// Reads what comes through a pipe.
    pub fn read_stream<R: Read + Send>(&mut self, stream: R) -> Result<Report, ImportError> {
        self.read(Window::new(stream), perf_data::Features::default())
    }

    fn read<R: Read + Send>(
        &mut self,
        mut window: Window<R>,
        features: perf_data::Features,
    ) -> Result<Report, ImportError> {
        let start = window.up_to(SNIFFED).map_err(ImportError::Read)?;
        if start.starts_with(b"\x1f\x8b") {
            let mut unpacked = Window::new(MultiGzDecoder::new(window.into_reader()));
            let start = unpacked.up_to(SNIFFED).map_err(ImportError::Read)?;
            let format = sniff(start)?;
            return self.read_as(format, unpacked, features);
        }
        let format = sniff(start)?;
        self.read_as(format, window, features)
    }

    fn read_as<R: Read + Send>(
        &mut self,
        format: Format,
        window: Window<R>,
        features: perf_data::Features,
    ) -> Result<Report, ImportError> {
        match format {
            Format::PerfData | Format::PerfPipe => {
                perf_data::read(self, format, window, Vec::new(), features)
            }
            Format::PerfScript => Ok(perf_script::read(self, window)),
            Format::Folded => Ok(folded::read(self, window)),
            Format::Pprof => Ok(pprof::read(self, window)),
            Format::Otlp => Ok(otlp::read(self, window)),
        }
    }
}

/// Tells from its beginning what a file is.
pub fn sniff(start: &[u8]) -> Result<Format, ImportError> {
    const PIPE_HEADER_SIZE: u64 = 16;
    if start.is_empty() {
        return Err(ImportError::Empty);
    }
    if start.starts_with(b"PERFILE2") {
        let size = start.get(8..16).and_then(|size| size.try_into().ok());
        return match size.map(u64::from_le_bytes) {
            None => Err(ImportError::Header("it ends within the first 16 bytes")),
            Some(PIPE_HEADER_SIZE) => Ok(Format::PerfPipe),
            Some(_) => Ok(Format::PerfData),
        };
    }
    if start.starts_with(b"2ELIFREP") {
        return Err(ImportError::BigEndian);
    }
    if let Some(format) = wire::kind(start) {
        return Ok(format);
    }
    if perf_script::is_likely(start) {
        Ok(Format::PerfScript)
    } else if folded::is_likely(start) {
        Ok(Format::Folded)
    } else if perf_script::has_frames(start) {
        Err(ImportError::NoEventLines)
    } else {
        Err(ImportError::Unknown)
    }
}
