//! Reads a bundle, whatever state it is in.

use std::fs::{self, File};
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sexton_model::fact::Fact;
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::timeline::Records;
use tempfile::TempDir;

use crate::error::StoreError;
use crate::ledger::Segment;
use crate::meta::{Meta, Node};
use crate::pack;
use crate::stacks::{self, StackLog, StackSegment, StackStream, Tick, TickCell};
use crate::stream::{Stream, Wanted};
use crate::wal::{self, Log};

/// What is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// So many segments were dropped to keep the bundle within its limits.
    pub segments: u64,
    /// They were older than this, the first moment still there.
    pub before: Moment,
}

/// A bundle as it was when it was opened. A writer may be at it meanwhile.
#[derive(Debug)]
pub struct Bundle {
    pub(crate) dir: PathBuf,
    meta: Meta,
    pub(crate) segments: Vec<Segment>,
    /// The one that is being sealed, if any is, and the open one.
    pub(crate) logs: Vec<Mutex<Log>>,
    /// A log is there and cannot be read at all.
    pub(crate) log_trouble: Option<String>,
    span: Option<RangeInclusive<Moment>>,
    pub(crate) stack_segments: Vec<StackSegment>,
    pub(crate) stack_log: Option<StackLog>,
    pub(crate) stack_log_trouble: Option<String>,
    /// Where a packed bundle was unpacked to; gone with this value.
    _unpacked: Option<TempDir>,
}

impl Bundle {
    /// Opens a bundle to read: a folder, or one file that [`crate::pack`] made, which is
    /// unpacked to a temporary folder. Only what is no bundle is an error: what is torn or
    /// damaged in it is a gap among its records.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let found = fs::metadata(path).map_err(StoreError::io("open", path))?;
        if !found.is_file() {
            return Self::open_folder(path);
        }
        if !pack::is_packed(path) {
            return Err(StoreError::NotABundle {
                dir: path.to_owned(),
                why: "it is a file, and does not begin like a packed bundle".into(),
            });
        }
        let folder = tempfile::Builder::new()
            .prefix("sexton-unpacked-")
            .tempdir();
        let folder = folder.map_err(StoreError::io("make a folder to unpack", path))?;
        pack::unpack_into(path, folder.path())?;
        let mut bundle = Self::open_folder(folder.path())?;
        bundle._unpacked = Some(folder);
        Ok(bundle)
    }

    fn open_folder(dir: &Path) -> Result<Self, StoreError> {
        let meta = Meta::read(dir)?.ok_or_else(|| StoreError::NotABundle {
            dir: dir.to_owned(),
            why: "it has no bundle.json".into(),
        })?;
        let records = dir.join("records");
        // In the order in which records move: what is closed or sealed meanwhile is met
        // again where it went, and left out once.
        let (mut logs, mut log_trouble) = (Vec::new(), None);
        for file in [wal::FILE, wal::CLOSED_FILE] {
            match open_log(&records.join(file)) {
                Ok(log) => logs.extend(log),
                Err(why) => log_trouble = Some(why),
            }
        }
        let (stack_log, stack_log_trouble) = match open_stack_log(dir) {
            Ok(log) => (log, None),
            Err(why) => (None, Some(why)),
        };
        let stack_segments = StackSegment::list(dir)?;
        let sealed_stacks = stack_segments.last().map_or(0, |last| last.sequence);
        let segments = Segment::list(&records)?;
        let sealed = segments.last().map_or(0, |last| last.sequence);
        logs.retain(|log| log.sequence > sealed);
        logs.sort_by_key(|log| log.sequence);
        logs.dedup_by_key(|log| log.sequence);
        let ends = segments
            .iter()
            .map(|segment| (segment.from_ns, segment.to_ns))
            .chain(logs.iter().filter_map(Log::span_ns));
        let span = ends.reduce(|(from, to), next| (from.min(next.0), to.max(next.1)));
        Ok(Self {
            dir: dir.to_owned(),
            meta,
            segments,
            logs: logs.into_iter().map(Mutex::new).collect(),
            log_trouble,
            span: span.map(|(from, to)| Moment::from_ns(from)..=Moment::from_ns(to)),
            stack_segments,
            stack_log: stack_log.filter(|log| log.sequence > sealed_stacks),
            stack_log_trouble,
            _unpacked: None,
        })
    }

    /// The node that it is about.
    pub fn node(&self) -> &Node {
        &self.meta.node
    }

    /// The events of an imported profile, where it has several, in the order of its list.
    pub fn events(&self) -> &[String] {
        &self.meta.events
    }

    /// When the bundle was begun.
    pub fn created(&self) -> Moment {
        Moment::from_ns(self.meta.created_ns)
    }

    /// From its first record to its last; `None` when there is none.
    pub fn span(&self) -> Option<RangeInclusive<Moment>> {
        self.span.clone()
    }

    /// What was dropped to keep the bundle within its limits.
    pub fn dropped(&self) -> Option<Dropped> {
        let log = self.logs.first().and_then(|log| log.lock().ok());
        let first = self.segments.first().map(|first| first.sequence);
        let first = first.or(log.map(|log| log.sequence))?;
        let segments = first.checked_sub(1).filter(|n| *n > 0)?;
        Some(Dropped {
            segments,
            before: *self.span.as_ref()?.start(),
        })
    }

    /// From the first sample of stacks to the last; `None` when there is none.
    pub fn stacks_span(&self) -> Option<RangeInclusive<Moment>> {
        let sealed = self.stack_segments.iter();
        let sealed = sealed.map(|segment| (segment.from_ns, segment.to_ns));
        let all = sealed.chain(self.stack_log.as_ref().and_then(StackLog::span_ns));
        let (from, to) = all.reduce(|(from, to), next| (from.min(next.0), to.max(next.1)))?;
        Some(Moment::from_ns(from)..=Moment::from_ns(to))
    }

    /// Samples of stacks of a window, or all. They come in chunks, in the order they were
    /// recorded; in memory are one chunk (some 32768 samples) and the dictionaries of one
    /// segment.
    pub fn stacks(&self, window: Option<RangeInclusive<Moment>>) -> StackStream<'_> {
        StackStream::new(self, span_ns(window))
    }

    /// When cores were sampled in a window, or ever, and what they did: handed over in
    /// pieces, each in the order of time. Far faster than [`Self::stacks`], and enough for
    /// the heat map of a machine or a core. Returns what should be there and cannot be read.
    pub fn ticks(
        &self,
        window: Option<RangeInclusive<Moment>>,
        take: &mut dyn FnMut(&[Tick]),
    ) -> Vec<(Moment, Gap)> {
        stacks::visit_ticks(self, span_ns(window), take)
    }

    /// The same, counted: samples of one core within the same [`crate::CELL_NS`] of time come as one,
    /// where a segment knows them so, and otherwise one by one. For questions to which it is
    /// all the same when in such a cell a sample was taken, its first microsecond excepted;
    /// the window must begin and end between two cells.
    pub fn tick_cells(
        &self,
        window: Option<RangeInclusive<Moment>>,
        take: &mut dyn FnMut(&[TickCell]),
    ) -> Vec<(Moment, Gap)> {
        stacks::visit_cells(self, span_ns(window), take)
    }

    /// Where the raw files are.
    pub fn raw(&self) -> PathBuf {
        self.dir.join("raw")
    }

    /// The records of a window, or all; of some facts, or all. Gaps are always there: who
    /// asks for a fact must know what could not be seen.
    pub fn load(
        &self,
        window: Option<RangeInclusive<Moment>>,
        facts: Option<&[&'static Fact]>,
    ) -> Records {
        Records::new(self.stream(window, facts).collect())
    }

    /// Like `load`, one record after the other in the order of time. In memory are only
    /// the blocks (some 32768 records) that overlap the current moment: one or two,
    /// unless records came late.
    pub fn stream(
        &self,
        window: Option<RangeInclusive<Moment>>,
        facts: Option<&[&'static Fact]>,
    ) -> Stream<'_> {
        let (from_ns, to_ns) = span_ns(window);
        Stream::new(
            self,
            Wanted {
                from_ns,
                to_ns,
                facts: facts.map(<[_]>::to_vec),
            },
        )
    }
}

/// All of time when nothing else is asked for.
fn span_ns(window: Option<RangeInclusive<Moment>>) -> (u64, u64) {
    window.map_or((0, u64::MAX), |window| {
        (window.start().as_ns(), window.end().as_ns())
    })
}

fn open_log(path: &Path) -> Result<Option<Log>, String> {
    match File::open(path).and_then(Log::scan) {
        Ok(Some(log)) => Ok(Some(log)),
        Ok(None) => Err("it does not begin like a log".into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn open_stack_log(dir: &Path) -> Result<Option<StackLog>, String> {
    let path = dir.join(stacks::FOLDER).join(stacks::LOG_FILE);
    match File::open(path).and_then(StackLog::scan) {
        Ok(Some(log)) => Ok(Some(log)),
        Ok(None) => Err("it does not begin like a log".into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
