//! Reads a bundle, whatever state it is in.

use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sexton_model::fact::Fact;
use sexton_model::moment::Moment;
use sexton_model::timeline::Records;

use crate::error::StoreError;
use crate::ledger::Segment;
use crate::meta::{Meta, Node};
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
    pub(crate) log: Option<Mutex<Log>>,
    /// The log is there and cannot be read at all.
    pub(crate) log_trouble: Option<String>,
    span: Option<RangeInclusive<Moment>>,
}

impl Bundle {
    /// Opens a bundle to read. Only a folder that is no bundle is an error: what is torn
    /// or damaged in it is a gap among its records.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let meta = Meta::read(dir)?.ok_or_else(|| StoreError::NotABundle {
            dir: dir.to_owned(),
            why: "it has no bundle.json".into(),
        })?;
        let records = dir.join("records");
        // The log first: should it be sealed meanwhile, its segment is in the list.
        let (log, log_trouble) = match open_log(&records.join(wal::FILE)) {
            Ok(log) => (log, None),
            Err(why) => (None, Some(why)),
        };
        let segments = Segment::list(&records)?;
        let sealed = segments.last().map_or(0, |last| last.sequence);
        let log = log.filter(|log| log.sequence > sealed);
        let ends = segments
            .iter()
            .map(|segment| (segment.from_ns, segment.to_ns))
            .chain(log.as_ref().and_then(Log::span_ns));
        let span = ends.reduce(|(from, to), next| (from.min(next.0), to.max(next.1)));
        Ok(Self {
            dir: dir.to_owned(),
            meta,
            segments,
            log: log.map(Mutex::new),
            log_trouble,
            span: span.map(|(from, to)| Moment::from_ns(from)..=Moment::from_ns(to)),
        })
    }

    /// The node that it is about.
    pub fn node(&self) -> &Node {
        &self.meta.node
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
        let log = self.log.as_ref().and_then(|log| log.lock().ok());
        let first = self.segments.first().map(|first| first.sequence);
        let first = first.or(log.map(|log| log.sequence))?;
        let segments = first.checked_sub(1).filter(|n| *n > 0)?;
        Some(Dropped {
            segments,
            before: *self.span.as_ref()?.start(),
        })
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
        let (from_ns, to_ns) = window.map_or((0, u64::MAX), |window| {
            (window.start().as_ns(), window.end().as_ns())
        });
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

fn open_log(path: &Path) -> Result<Option<Log>, String> {
    match File::open(path).and_then(Log::scan) {
        Ok(Some(log)) => Ok(Some(log)),
        Ok(None) => Err("it does not begin like a log".into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
