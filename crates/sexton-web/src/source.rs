//! Something to look at: a bundle, and what was read of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::text::{self, escape};
use sexton_store::{Bundle, StoreError};
use tempfile::TempDir;

use crate::api::Kept;
use crate::clock::Clock;
use crate::heat::{self, Heat};
use crate::index::{Index, facts};

/// Records that are read before others may look.
const BATCH: usize = 20_000;

/// How often a recording is looked at for more, while it grows and when it does not.
const BEAT: Duration = Duration::from_secs(1);
const SLOW_BEAT: Duration = Duration::from_secs(5);

/// A recording whose end is this near to now still grows, as far as can be told.
const LIVE_US: u64 = 15_000_000;

/// Records may come this much later than others of their time.
const LATE_NS: u64 = 30_000_000_000;

/// The wall clock is noted more often than this.
const NEAR_END_NS: u64 = 90_000_000_000;

/// What a source is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "SourceKind")]
pub(crate) enum Kind {
    /// What sexton recorded.
    Recording,
    /// Samples of stacks, and nothing else.
    Profile,
}

/// Something to look at.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) path: PathBuf,
    /// Whether samples have times.
    pub(crate) has_times: bool,
    /// What could not be read when it was opened.
    pub(crate) notes: Vec<String>,
    state: RwLock<State>,
    /// The last judgement.
    pub(crate) judged: tokio::sync::Mutex<Option<Kept>>,
    /// Gone with the source.
    _folder: Option<TempDir>,
}

/// What was read of a source so far.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) index: Index,
    pub(crate) clock: Clock,
    pub(crate) bundle: Arc<Bundle>,
    /// When cores were busy.
    pub(crate) heat: Heat,
    /// Whether all of it was read that was there.
    pub(crate) is_read: bool,
    /// Up to which moment samples were counted.
    counted_ns: Option<u64>,
    /// Up to which moment it was read.
    pub(crate) read_ns: u64,
    pub(crate) is_live: bool,
    /// Why it cannot be read any more.
    pub(crate) trouble: Option<String>,
}

impl Source {
    /// Opens a bundle and begins to read it.
    pub(crate) fn open(
        id: &str,
        name: &str,
        path: &Path,
        folder: Option<TempDir>,
        notes: Vec<String>,
        has_times: bool,
    ) -> Result<Arc<Self>, StoreError> {
        let bundle = Bundle::open(path)?;
        let is_profile = bundle.span().is_none() && bundle.stacks_span().is_some();
        let clock = clock_of(&bundle);
        let source = Arc::new(Self {
            id: id.to_owned(),
            name: name.to_owned(),
            kind: if is_profile {
                Kind::Profile
            } else {
                Kind::Recording
            },
            path: path.to_owned(),
            has_times,
            notes,
            state: RwLock::new(State {
                index: Index::default(),
                clock,
                bundle: Arc::new(bundle),
                heat: Heat::begin(),
                is_read: is_profile,
                counted_ns: None,
                read_ns: 0,
                is_live: false,
                trouble: None,
            }),
            judged: tokio::sync::Mutex::new(None),
            _folder: folder,
        });
        if !is_profile {
            source.begin("reads", Self::read_more);
        }
        source.begin("counts", Self::count_more);
        Ok(source)
    }

    /// What was read so far.
    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads on a thread of its own, which ends when nobody has the source any more.
    fn begin(self: &Arc<Self>, name: &str, more: fn(&Self, bool) -> Duration) {
        let source = Arc::downgrade(self);
        let reads = thread::Builder::new().name(name.into()).spawn(move || {
            // Where it may not be lowered, it is as it was.
            let _ = rustix::process::setpriority_process(None, 10);
            let mut is_first = true;
            while let Some(source) = source.upgrade() {
                let beat = more(&source, is_first);
                is_first = false;
                drop(source);
                thread::sleep(beat);
            }
        });
        if let Err(error) = reads {
            self.change(|state| state.trouble = Some(format!("no thread to read it: {error}")));
        }
    }

    /// Reads what is there and was not read; says when to look again.
    fn read_more(&self, is_first: bool) -> Duration {
        let is_folder = self.path.is_dir();
        let bundle = if is_first || !is_folder {
            Ok(Arc::clone(&self.state().bundle))
        } else {
            Bundle::open(&self.path).map(Arc::new)
        };
        match bundle {
            Ok(bundle) => self.read(&bundle, is_first),
            Err(error) => self.change(|state| {
                state.trouble = Some(chain(&error));
                state.is_live = false;
            }),
        }
        match self.state().is_live {
            true => BEAT,
            false => SLOW_BEAT,
        }
    }

    /// Counts samples that are there and were not counted; says when to look again.
    fn count_more(&self, is_first: bool) -> Duration {
        let (bundle, from_ns, is_live) = {
            let state = self.state();
            (
                Arc::clone(&state.bundle),
                state.heat.unsettled_ns(),
                state.is_live,
            )
        };
        let beat = if is_live { BEAT } else { SLOW_BEAT };
        if !is_first && !is_live && self.state().heat.reading_ns.is_none() {
            let end_ns = bundle.stacks_span().map(|span| span.end().as_ns());
            if end_ns == self.state().counted_ns {
                return beat;
            }
        }
        let settles_ns = heat::settles_ns(&bundle);
        if !is_first {
            self.change(|state| state.heat.forget_tail());
        }
        for samples in heat::chunks(&bundle, from_ns) {
            self.change(|state| state.heat.add(&samples, settles_ns));
        }
        let end_ns = bundle.stacks_span().map(|span| span.end().as_ns());
        self.change(|state| {
            state.heat.settle(settles_ns);
            state.counted_ns = end_ns;
        });
        beat
    }

    fn read(&self, bundle: &Arc<Bundle>, is_first: bool) {
        let end = |bundle: &Bundle| bundle.span().map(|span| span.end().as_ns());
        let has_grown = end(&self.state().bundle) < end(bundle);
        let end_ns = end(bundle).unwrap_or(0);
        if !is_first && !has_grown {
            return self.change(|state| {
                state.is_live = end_ns == 0 || is_recent(state.clock.us(end_ns));
            });
        }
        let from_ns = self.state().read_ns.saturating_sub(LATE_NS);
        let window = Moment::from_ns(from_ns)..=Moment::from_ns(u64::MAX);
        let window = (!is_first).then_some(window);
        self.change(|state| {
            state.bundle = Arc::clone(bundle);
            if !is_first {
                state.index.cut(from_ns);
            }
        });
        let wanted = facts();
        let mut stream = bundle.stream(window, Some(&wanted));
        loop {
            let batch: Vec<_> = stream.by_ref().take(BATCH).collect();
            let is_last = batch.len() < BATCH;
            self.change(|state| state.take(&batch, is_last));
            if is_last {
                break;
            }
        }
        self.change(|state| {
            state.is_read = true;
            state.read_ns = end_ns;
            // One that was only begun has no end yet.
            state.is_live = end_ns == 0 || is_recent(state.clock.us(end_ns));
            state.trouble = None;
        });
    }
}

impl State {
    fn take(&mut self, batch: &[Record], is_last: bool) {
        for record in batch {
            self.index.add(record);
        }
        if let Some(last) = batch.last()
            && !self.is_read
        {
            self.read_ns = last.at.as_ns();
        }
        if is_last {
            self.index.settle();
        }
        // Notes of before the clock was set would move all that is shown, and back again.
        if is_last || !self.clock.is_wall() {
            self.clock = self.clock.noted(self.index.wall());
        }
    }

    /// From the first sample of anything to after the last, in nanoseconds.
    pub(crate) fn span_ns(&self) -> (u64, u64) {
        let stacks = self.bundle.stacks_span();
        let stacks = stacks.map(|span| (span.start().as_ns(), span.end().as_ns()));
        let records = self.bundle.span().map(|span| {
            let created = self.bundle.created().as_ns();
            let from = span.start().as_ns().max(created);
            (from.min(span.end().as_ns()), span.end().as_ns())
        });
        let records = match (self.index.span(), records) {
            (Some((from, _)), Some((_, to))) => Some((from, to)),
            (_, records) => records,
        };
        let both = records.into_iter().chain(stacks);
        let span = both.reduce(|(from, to), next| (from.min(next.0), to.max(next.1)));
        let (from, to) = span.unwrap_or((0, 0));
        (from, to.saturating_add(1000))
    }

    /// How much of it was read, from 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "a part of a whole")]
    pub(crate) fn progress(&self) -> f64 {
        if self.is_read && self.heat.reading_ns.is_none() {
            return 1.0;
        }
        let (from, to) = self.span_ns();
        let read_ns = if self.is_read { to } else { self.read_ns };
        let read_ns = read_ns.min(self.heat.reading_ns.unwrap_or(to));
        let read = read_ns.saturating_sub(from) as f64;
        (read / to.saturating_sub(from).max(1) as f64).clamp(0.0, 0.99)
    }
}

/// What the wall clock said last. Known from the first answer on: times must not change
/// their meaning while the rest is read.
fn clock_of(bundle: &Bundle) -> Clock {
    let Some(span) = bundle.span() else {
        return Clock::default();
    };
    let wanted = [&SEXTON_WALL_CLOCK_NS];
    let note = |record: Record| {
        let value = record.value()?;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "nanoseconds since 1970"
        )]
        Some((record.at, value as u64))
    };
    let end_ns = span.end().as_ns();
    let near_end = Moment::from_ns(end_ns.saturating_sub(NEAR_END_NS))..=*span.end();
    let last = bundle
        .stream(Some(near_end), Some(&wanted))
        .filter_map(note)
        .last();
    let any = || bundle.stream(None, Some(&wanted)).find_map(note);
    let noted: Vec<_> = last.or_else(any).into_iter().collect();
    Clock::default().noted(&noted)
}

fn is_recent(end_us: u64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_us = now.map_or(0, |now| now.as_micros());
    now_us.abs_diff(u128::from(end_us)) < u128::from(LIVE_US)
}

/// An error and what is behind it, safe to be shown.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    escape(text::chain(error).as_bytes())
}
