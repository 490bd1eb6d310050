//! Events of perf without BPF: samples of what cores run, and tracepoints with their fields.
//!
//! The kernel writes them into a ring of each core that we share with it; nobody is woken. It
//! also tells there of tasks as they start, take a name and exit, because a sample names its
//! task by number only, and with stacks of the code that processes map, because some exit before
//! `/proc` can be asked.

mod of_tasks;
mod open;
mod record;
mod ring;
mod spaces;
mod tasks;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use crate::clock;
use open::{Attributes, Whose};
use ring::Ring;

pub use of_tasks::{OfTasks, Target};
pub use record::{Code, Record, Sample, What};
pub use spaces::{Known, Space, Spaces};
pub use tasks::{Cgroups, Task, Tasks};

/// What a core is asked to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// The task and its stacks, each time that much time has passed on the core's software
    /// clock. It needs no hardware counter, so it works in any guest.
    Stacks(Duration),
    /// Only tasks, and the code that they map.
    Mappings,
    /// Only code that the kernel makes: BPF programs and the like.
    MadeCode,
    /// Tracepoints, with their fields.
    Tracepoints(Vec<Point>),
}

/// A tracepoint to be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// What tracefs numbers it by. The first two bytes of its fields say the same.
    pub id: u64,
    /// Only where this holds, in the kernel's own words: `root == 5`.
    pub filter: Option<String>,
}

/// Cores that tell us something.
#[derive(Debug)]
pub struct Watch {
    ask: Ask,
    room_bytes: usize,
    cores: BTreeMap<u32, Core>,
    turns: Turns,
    /// Lost on cores that went offline.
    n_lost: u64,
}

/// Brings records of several rings into the order of time.
#[derive(Debug, Default)]
struct Turns {
    /// What came too late for its turn: others may still tell of an earlier moment.
    held: Vec<Record>,
    n_throttled: u64,
}

impl Turns {
    /// Hands over what all rings hold. Returns how many records made no sense.
    fn drain<'a>(
        &mut self,
        rings: impl Iterator<Item = &'a mut Ring>,
        has_stacks: bool,
        mut take: impl FnMut(&Record),
    ) -> u64 {
        let until = clock::now().as_ns();
        let asleep_ns = until.saturating_sub(clock::monotonic_ns());
        let mut malformed = 0;
        let (held, n_throttled) = (&mut self.held, &mut self.n_throttled);
        for ring in rings {
            ring.drain(
                |header, body| match record::read(header, body, has_stacks) {
                    Ok(Some(mut record)) => {
                        record.at_ns += asleep_ns;
                        held.push(record);
                    }
                    Ok(None) => *n_throttled += u64::from(header.is_throttle()),
                    Err(record::Malformed) => malformed += 1,
                },
            );
        }
        self.held.sort_by_key(|record| record.at_ns);
        let n = self.held.partition_point(|record| record.at_ns <= until);
        self.held.drain(..n).for_each(|record| take(&record));
        malformed
    }
}

#[derive(Debug)]
struct Core {
    ring: Ring,
    /// The first one owns the ring; the others write to it too.
    _events: Vec<std::os::fd::OwnedFd>,
}

impl Watch {
    /// Watches no core yet. Each will have room for about that many bytes.
    pub fn new(ask: Ask, room_bytes: usize) -> Self {
        Self {
            ask,
            room_bytes,
            cores: BTreeMap::new(),
            turns: Turns::default(),
            n_lost: 0,
        }
    }

    /// Begins to watch a core. Fails for one that is offline, and where events of perf are
    /// refused.
    pub fn watch_core(&mut self, cpu: u32) -> io::Result<()> {
        let mut events = Vec::new();
        let mut ring = None;
        let maps = matches!(self.ask, Ask::Stacks(_) | Ask::Mappings);
        let is_of_kernel = self.ask == Ask::MadeCode;
        for (i, (attributes, filter)) in self.attributes().into_iter().enumerate() {
            // Each event would tell of all tasks.
            let attributes = attributes.follow_tasks(i == 0 && !is_of_kernel);
            let attributes = attributes.follow_mappings(maps);
            let attributes = attributes.follow_made_code(is_of_kernel);
            let event = open::open(&attributes, Whose::All, cpu)?;
            if let Some(filter) = filter {
                open::set_filter(&event, &filter)?;
            }
            match events.first() {
                None => ring = Some(Ring::map(&event, self.room_bytes)?),
                Some(first) => open::set_output(&event, first)?,
            }
            events.push(event);
        }
        let ring = ring.ok_or(io::ErrorKind::InvalidInput)?;
        for event in &events {
            open::enable(event)?;
        }
        let core = Core {
            ring,
            _events: events,
        };
        self.cores.insert(cpu, core);
        Ok(())
    }

    /// Watches cores that came online, and forgets those that went. Returns why one was refused.
    pub fn follow_cores(&mut self, online: &[u32]) -> Option<io::Error> {
        let watched = self.cores();
        for gone in watched.iter().filter(|cpu| !online.contains(cpu)) {
            self.forget_core(*gone);
        }
        let new = online.iter().filter(|cpu| !watched.contains(cpu));
        new.filter_map(|cpu| self.watch_core(*cpu).err()).last()
    }

    /// Whether [`Self::watch_core`] would be allowed for stacks.
    pub fn may_sample(cpu: u32) -> io::Result<()> {
        Self::new(Ask::Stacks(Duration::from_secs(1)), 0).watch_core(cpu)
    }

    /// Ends it. An event does not outlive its core: one that comes back needs a new one.
    pub fn forget_core(&mut self, cpu: u32) {
        if let Some(core) = self.cores.remove(&cpu) {
            self.n_lost += core.ring.n_lost();
        }
    }

    /// The cores that are watched.
    pub fn cores(&self) -> Vec<u32> {
        self.cores.keys().copied().collect()
    }

    /// Records that found no room, since it began.
    pub fn n_lost(&self) -> u64 {
        let cores = self.cores.values();
        self.n_lost + cores.map(|core| core.ring.n_lost()).sum::<u64>()
    }

    /// How often the kernel stopped an event for the rest of a tick, because there were too
    /// many of it.
    pub fn n_throttled(&self) -> u64 {
        self.turns.n_throttled
    }

    /// Hands over what all cores have told, in the order of time. Returns how many records
    /// made no sense.
    pub fn drain(&mut self, take: impl FnMut(&Record)) -> u64 {
        let has_stacks = matches!(self.ask, Ask::Stacks(_));
        let rings = self.cores.values_mut().map(|core| &mut core.ring);
        self.turns.drain(rings, has_stacks, take)
    }

    fn attributes(&self) -> Vec<(Attributes, Option<String>)> {
        match &self.ask {
            Ask::Stacks(period) => vec![(Attributes::clock(*period), None)],
            Ask::Mappings | Ask::MadeCode => vec![(Attributes::silent(), None)],
            Ask::Tracepoints(points) => points
                .iter()
                .map(|point| (Attributes::tracepoint(point.id), point.filter.clone()))
                .collect(),
        }
    }
}
