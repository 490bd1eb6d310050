//! Reads the ring, window by window.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::fact::finding::FINDING_TURN;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::moment::Moment;
use sexton_model::wall::WallClock;
use sexton_profile::merge::Merger;
use sexton_profile::window::ByOwner;
use sexton_store::{Boot, Bundle, Place, Ring, StackPiece, StoreError};

use super::load::Load;
use super::logs::LogLine;
use super::owner::{CONTAINER_ID, Owners};
use super::pusher::OwnFigures;
use super::receiver::Signal;
use crate::state::Metrics;

/// A window is read this long after its end: what sensors saw is in the ring by then.
const LAG: Duration = Duration::from_secs(5);

/// A window that ended this long ago or less takes its wall-clock time from the current clock.
const FRESH: Duration = Duration::from_secs(90);

/// The wall clock is noted each minute.
const NOTED_WITHIN: Duration = Duration::from_secs(70);

/// Owners that have a profile of their own in a window. Receivers take some thousands of series of
/// all nodes together.
const MAX_OWNERS: usize = 100;

/// Lines of one window. A node has some ten in an hour.
const MAX_LINES: usize = 2_000;

/// What time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// By the clock of the recording.
    pub boot: Moment,
    /// Nanoseconds since 1970.
    pub wall_ns: u64,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing before this time has passed.
    NotYet(Duration),
    /// Go on from here; this number of windows is lost.
    Skip(Place, u64),
    /// The next window.
    Window(Window),
}

/// A window that was read.
#[derive(Debug)]
pub(super) struct Window {
    /// The place behind it.
    pub(super) after: Place,
    /// When it ended, in nanoseconds since 1970.
    pub(super) end_ns: u64,
    pub(super) load: Load,
    pub(super) n_folded: u64,
}

/// The ring as one channel reads it.
pub struct Source {
    ring: Ring,
    /// The boot that is being recorded.
    boot: String,
    node: String,
    owners: Arc<Mutex<Owners>>,
    own: OwnFigures,
    /// Whether profiles say the id of their container.
    has_ids: bool,
    /// Metrics up to the place that was read, of this boot, counted since this time.
    metrics: Option<(String, Metrics, u64)>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("ring", &self.ring)
            .finish_non_exhaustive()
    }
}

impl Source {
    /// A ring, the boot that is being recorded, and the name of the node.
    pub fn new(
        ring: Ring,
        (boot, node): (&str, &str),
        owners: Arc<Mutex<Owners>>,
        own: OwnFigures,
    ) -> Self {
        Self {
            ring,
            boot: boot.to_owned(),
            node: node.to_owned(),
            owners,
            own,
            has_ids: true,
            metrics: None,
        }
    }

    /// Leaves the id of the container out of profiles: for receivers in which each id is a series.
    pub(super) fn leave_out_ids(&mut self) {
        self.has_ids = false;
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Where a channel begins that has no place yet: at the window of now.
    pub(super) fn here(&self, signal: Signal, now: Now) -> Place {
        Place::new(&self.boot, floor(now.boot, signal.width()))
    }

    /// What comes behind a place.
    pub(super) fn next(
        &mut self,
        place: &Place,
        signal: Signal,
        now: Now,
        max_age: Duration,
    ) -> Result<Step, StoreError> {
        let boots = self.ring.boots()?;
        let Some(at) = boots.iter().position(|boot| boot.id == place.boot) else {
            // The whole boot is gone from the ring.
            let first = boots.first().map(|boot| begin(boot, signal));
            return Ok(Step::Skip(first.unwrap_or(self.here(signal, now)), 1));
        };
        let boot = &boots[at];
        let width = signal.width();
        let from = place.until();
        let to = floor(from, width).after(width);
        let is_current = boot.id == self.boot;
        if is_current {
            let due = to.after(LAG);
            if now.boot < due {
                return Ok(Step::NotYet(due.since(now.boot)));
            }
            let oldest = floor(back(now.boot, max_age), width);
            if to < oldest {
                return Ok(Step::Skip(
                    Place::new(&boot.id, oldest),
                    windows(from, oldest, width),
                ));
            }
        }
        let next = boots.get(at + 1).map(|next| begin(next, signal));
        let bundle = match (Bundle::open(folder(boot, signal)), &next) {
            (Ok(bundle), _) => bundle,
            // An earlier boot that cannot be read does not keep the later ones from being sent.
            (Err(_), Some(next)) if !is_current => return Ok(Step::Skip(next.clone(), 1)),
            (Err(error), _) => return Err(error),
        };
        let span = match signal {
            Signal::Profiles => bundle.stacks_span(),
            Signal::Metrics | Signal::Logs => bundle.span(),
        };
        let ended = span.as_ref().is_none_or(|span| from > *span.end());
        if !is_current && ended {
            return Ok(next.map_or(Step::NotYet(width), |next| Step::Skip(next, 0)));
        }
        if let Some(span) = &span
            && to <= *span.start()
        {
            let first = floor(*span.start(), width);
            let n_lost = bundle.dropped().map_or(0, |_| windows(from, first, width));
            return Ok(Step::Skip(Place::new(&boot.id, first), n_lost));
        }
        Ok(self.window(boot, &bundle, (from, to), signal, now, max_age))
    }

    /// Reads a window, unless it is too old.
    fn window(
        &mut self,
        boot: &Boot,
        bundle: &Bundle,
        (from, to): (Moment, Moment),
        signal: Signal,
        now: Now,
        max_age: Duration,
    ) -> Step {
        let is_current = boot.id == self.boot;
        let after = Place::new(&boot.id, to);
        let wall = match is_current && now.boot.since(to) <= FRESH {
            true => WallClock::new(vec![(now.boot, now.wall_ns)]),
            false => wall_clock(boot, from, to, is_current.then_some(now)),
        };
        let (Some(start_ns), Some(end_ns)) = (unix(&wall, from), unix(&wall, to)) else {
            // Without a time it is of no use to a receiver.
            return Step::Skip(after, 1);
        };
        let age_ns = now.wall_ns.saturating_sub(end_ns);
        if Duration::from_nanos(age_ns) > max_age {
            return Step::Skip(after, 1);
        }
        let is_fresh = is_current && now.boot.since(to) <= FRESH;
        let range = (from, to, start_ns, end_ns);
        let (load, n_folded) = match signal {
            Signal::Metrics => (self.metrics(bundle, &boot.id, range, is_fresh), 0),
            Signal::Logs => (lines(bundle, &wall, range), 0),
            Signal::Profiles => self.profiles(boot, bundle, range, is_fresh),
        };
        Step::Window(Window {
            after,
            end_ns,
            load,
            n_folded,
        })
    }

    fn metrics(
        &mut self,
        bundle: &Bundle,
        boot: &str,
        (from, to, start_ns, end_ns): (Moment, Moment, u64, u64),
        is_fresh: bool,
    ) -> Load {
        if self.metrics.as_ref().is_none_or(|(of, ..)| of != boot) {
            self.metrics = Some((boot.to_owned(), Metrics::new(from), start_ns));
        }
        let own = is_fresh.then(|| (self.own)());
        let (metrics, since_ns) = match &mut self.metrics {
            Some((_, metrics, since_ns)) => {
                let records = bundle.stream(Some(from..=last_before(to)), None);
                records.for_each(|record| metrics.take(&record));
                (metrics.points(own.as_ref(), to), *since_ns)
            }
            None => (Vec::new(), 0),
        };
        let metrics = metrics.into_iter().filter(|it| !it.points.is_empty());
        Load::Metrics {
            since_ns,
            at_ns: end_ns,
            metrics: metrics.collect(),
        }
    }

    fn profiles(
        &mut self,
        boot: &Boot,
        bundle: &Bundle,
        (from, to, start_ns, end_ns): (Moment, Moment, u64, u64),
        is_fresh: bool,
    ) -> (Load, u64) {
        let range = Some(from..=last_before(to));
        // Held for a moment each time: the agent's loop waits for it.
        let owners = || self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        // Of the past, the agent that runs now may not have heard.
        if !is_fresh && let Ok(records) = Bundle::open(&boot.records) {
            let facts = [&CONTAINER_STARTED.fact, &CONTAINER_EXITED.fact];
            let records = records.stream(range.clone(), Some(&facts));
            records.for_each(|record| owners().take(&record));
        }
        let node = self.node.as_str();
        let mut merger = Merger::default();
        let has_ids = self.has_ids;
        let mut by_owner = ByOwner::new(|cgroup: Option<&[u8]>| {
            let mut labels = owners().labels(node, cgroup, to);
            labels.retain(|(name, _)| has_ids || *name != CONTAINER_ID);
            labels
        });
        for piece in bundle.stacks(range) {
            if let StackPiece::Chunk(chunk) = piece {
                merger.feed(chunk.segment, &chunk.samples, &chunk.tables, &mut by_owner);
            }
        }
        let window = (start_ns, end_ns.saturating_sub(start_ns));
        let other = Owners::other(node);
        let (profiles, n_folded) = by_owner.finish(merger, window, MAX_OWNERS, other);
        (Load::Profiles(profiles), n_folded)
    }
}

fn lines(bundle: &Bundle, wall: &WallClock, (from, to, ..): (Moment, Moment, u64, u64)) -> Load {
    let facts = [&FINDING_TURN.fact];
    let records = bundle.stream(Some(from..=last_before(to)), Some(&facts));
    let lines = records.filter_map(|record| LogLine::of(&record, unix(wall, record.at)?));
    Load::Logs(lines.take(MAX_LINES).collect())
}

/// What the wall clock said around a window, as the ring noted it.
fn wall_clock(boot: &Boot, from: Moment, to: Moment, now: Option<Now>) -> WallClock {
    let facts = [&SEXTON_WALL_CLOCK_NS];
    let range = back(from, NOTED_WITHIN)..=to.after(NOTED_WITHIN);
    let mut noted: Vec<(Moment, u64)> = Vec::new();
    if let Ok(bundle) = Bundle::open(&boot.records) {
        let records = bundle.stream(Some(range), Some(&facts));
        noted.extend(records.filter_map(|record| Some((record.at, record.value()? as u64))));
    }
    if noted.is_empty() {
        noted.extend(now.map(|now| (now.boot, now.wall_ns)));
    }
    WallClock::new(noted)
}

fn unix(wall: &WallClock, moment: Moment) -> Option<u64> {
    u64::try_from(wall.ns(moment)?).ok()
}

/// Where the windows of a boot begin.
fn begin(boot: &Boot, signal: Signal) -> Place {
    let created = Bundle::open(&boot.records).map(|bundle| bundle.created());
    let created = created.unwrap_or_default();
    Place::new(&boot.id, floor(created, signal.width()))
}

fn folder(boot: &Boot, signal: Signal) -> &Path {
    match signal {
        Signal::Logs => &boot.findings,
        Signal::Metrics | Signal::Profiles => &boot.records,
    }
}

/// The beginning of the window that a moment is in.
fn floor(moment: Moment, width: Duration) -> Moment {
    let width = u64::try_from(width.as_nanos()).unwrap_or(u64::MAX);
    Moment::from_ns(moment.as_ns() / width * width)
}

fn back(moment: Moment, time: Duration) -> Moment {
    let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Moment::from_ns(moment.as_ns().saturating_sub(time))
}

fn last_before(moment: Moment) -> Moment {
    back(moment, Duration::from_nanos(1))
}

fn windows(from: Moment, to: Moment, width: Duration) -> u64 {
    let n = to.since(from).as_nanos().div_ceil(width.as_nanos());
    u64::try_from(n).unwrap_or(u64::MAX)
}
