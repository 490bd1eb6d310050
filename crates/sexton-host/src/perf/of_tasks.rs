//! Samples of one process, its threads, and all that these start. Without root the kernel allows
//! that for one's own processes, and where it is strict without its own part of the stacks.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::Turns;
use super::open::{self, Attributes, Whose};
use super::record::Record;
use super::ring::Ring;
use crate::{Host, machine};

/// Threads that start while events are asked for are looked for again, so often at most.
const MAX_LOOKS: usize = 8;
/// Events that may be open: one for each thread and core.
const MAX_EVENTS: usize = 16_384;

/// What is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A process that runs, with its threads.
    Process(u32),
    /// What the calling thread starts next, from the moment when it executes a program.
    Started,
}

/// Samples of tasks.
#[derive(Debug)]
pub struct OfTasks {
    cores: Vec<Core>,
    turns: Turns,
    has_kernel: bool,
}

#[derive(Debug)]
struct Core {
    cpu: u32,
    ring: Ring,
    /// The first one owns the ring; the others write to it too.
    events: Vec<OwnedFd>,
}

impl OfTasks {
    /// Begins to sample, each time that much processor time has passed. Each core has room for
    /// about that many bytes.
    pub fn open(
        host: &Host,
        target: Target,
        period: Duration,
        room_bytes: usize,
    ) -> io::Result<Self> {
        let attributes = Attributes::clock(period)
            .follow_tasks(true)
            .follow_mappings(true)
            .inherit();
        let attributes = match target {
            Target::Process(_) => attributes,
            Target::Started => attributes.begin_on_exec(),
        };
        let whole = Self::try_open(host, target, attributes, room_bytes);
        match whole {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let attributes = attributes.without_kernel();
                let mut only_user = Self::try_open(host, target, attributes, room_bytes)?;
                only_user.has_kernel = false;
                Ok(only_user)
            }
            whole => whole,
        }
    }

    /// Whether samples have the kernel's part of stacks.
    pub fn has_kernel(&self) -> bool {
        self.has_kernel
    }

    /// Records that found no room.
    pub fn n_lost(&self) -> u64 {
        self.cores.iter().map(|core| core.ring.n_lost()).sum()
    }

    /// How often the kernel stopped sampling for the rest of a tick.
    pub fn n_throttled(&self) -> u64 {
        self.turns.n_throttled
    }

    /// Hands over what all cores have told, in the order of time. Returns how many records
    /// made no sense.
    pub fn drain(&mut self, take: impl FnMut(&Record)) -> u64 {
        let rings = self.cores.iter_mut().map(|core| &mut core.ring);
        self.turns.drain(rings, true, take)
    }

    fn try_open(
        host: &Host,
        target: Target,
        attributes: Attributes,
        room_bytes: usize,
    ) -> io::Result<Self> {
        let mut of_tasks = Self {
            cores: Vec::new(),
            turns: Turns::default(),
            has_kernel: true,
        };
        let cpus = machine::online_cpus(host).map_err(io::Error::other)?;
        let Target::Process(pid) = target else {
            of_tasks.watch(&attributes, Whose::Own, (&cpus, room_bytes))?;
            return Ok(of_tasks);
        };
        let mut watched = BTreeSet::new();
        for _ in 0..MAX_LOOKS {
            let threads = threads(host, pid)?;
            let new: Vec<u32> = threads.difference(&watched).copied().collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                watched.insert(tid);
                if watched.len() * cpus.len() > MAX_EVENTS {
                    let text = "it has too many threads; sexton record samples all processes";
                    return Err(io::Error::other(text));
                }
                match of_tasks.watch(&attributes, Whose::Task(tid), (&cpus, room_bytes)) {
                    // It has exited meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) if error.raw_os_error() == Some(libc::EMFILE) => {
                        let text = "each thread takes a file for each core, and no more may be \
                                    open: raise the limit with ulimit -n";
                        return Err(io::Error::other(text));
                    }
                    other => other?,
                }
            }
        }
        if of_tasks.cores.is_empty() {
            return Err(no_process());
        }
        of_tasks.enable()?;
        Ok(of_tasks)
    }

    fn watch(
        &mut self,
        attributes: &Attributes,
        whose: Whose,
        (cpus, room_bytes): (&[u32], usize),
    ) -> io::Result<()> {
        for cpu in cpus {
            let event = open::open(attributes, whose, *cpu)?;
            match self.cores.iter_mut().find(|core| core.cpu == *cpu) {
                Some(core) => {
                    open::set_output(&event, &core.events[0])?;
                    core.events.push(event);
                }
                None => self.cores.push(Core {
                    cpu: *cpu,
                    ring: Ring::map(&event, room_bytes)?,
                    events: vec![event],
                }),
            }
        }
        Ok(())
    }

    fn enable(&self) -> io::Result<()> {
        let mut events = self.cores.iter().flat_map(|core| &core.events);
        events.try_for_each(open::enable)
    }
}

fn no_process() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "there is no such process")
}

/// The threads of a process.
fn threads(host: &Host, pid: u32) -> io::Result<BTreeSet<u32>> {
    let gone = |_| no_process();
    let path = host.proc(&format!("{pid}/task")).map_err(gone)?;
    let entries = host.list(path).map_err(gone)?;
    let names = entries.iter().filter_map(|entry| entry.name.to_str());
    Ok(names.filter_map(|name| name.parse().ok()).collect())
}
