//! Where exits come from: a BPF program, or where none can be loaded, what the kernel says of each
//! task as it exits (taskstats), with its cgroup followed by perf's records of tasks.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sexton_bpf::prog::exits::{Event, Maker, Tally, Watch};
use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::perf::{self, Ask, Cgroups, Point, Tasks, What};
use sexton_host::process::Place;
use sexton_host::taskstats::{Exit, Listener};
use sexton_host::tracepoint::{Field, Tracefs, Tracepoint};
use sexton_host::{Host, clock, machine, process};
use sexton_model::census::Hierarchy;
use sexton_model::gap::{Gap, Why};

use super::NAME;
use crate::bpf;

/// Room of each core for records of tasks.
const RING_BYTES: usize = 1 << 17;

/// Parents and cgroups that are counted apart; as many as the program in the kernel does.
const MAX_MAKERS: usize = 128;

/// A process that ran for less is a short one.
const SHORT: Duration = Duration::from_secs(1);

/// Something that tells of exits.
pub(super) enum Source {
    Bpf(Box<Watch>),
    Stats(Box<ByStats>),
}

impl Source {
    /// The best source that works here, or why there is none. Processes of these names are told
    /// of also when they exit well.
    pub(super) fn open(host: &Host, clients: &[String]) -> Result<Self, Gap> {
        match load(host, clients) {
            Ok(watch) => Ok(Self::Bpf(Box::new(watch))),
            Err(gap) => ByStats::open(host, clients, gap)
                .map(Box::new)
                .map(Self::Stats),
        }
    }

    /// Why exits do not come from BPF, if they do not.
    pub(super) fn instead_of_bpf(&self) -> Option<&Gap> {
        match self {
            Self::Bpf(_) => None,
            Self::Stats(stats) => Some(&stats.instead),
        }
    }

    /// Hands over what has exited; returns how many events made no sense.
    pub(super) fn drain(&mut self, host: &Host, most: usize, mut take: impl FnMut(Event)) -> u64 {
        match self {
            Self::Bpf(watch) => watch.drain(most, take),
            Self::Stats(stats) => stats.drain(host, most, &mut take),
        }
    }

    /// What has been counted since it began.
    pub(super) fn tally(&self) -> Tally {
        match self {
            Self::Bpf(watch) => watch.tally(),
            Self::Stats(stats) => stats.tally,
        }
    }

    /// Who makes processes, counted since it began.
    pub(super) fn makers(&self) -> Vec<Maker> {
        match self {
            Self::Bpf(watch) => watch.makers().collect(),
            Self::Stats(stats) => stats.makers.values().cloned().collect(),
        }
    }

    /// How often exits were dropped of which nothing is known.
    pub(super) fn n_overruns(&self) -> u64 {
        match self {
            Self::Bpf(_) => 0,
            Self::Stats(stats) => stats.listener.n_overruns(),
        }
    }
}

fn load(host: &Host, clients: &[String]) -> Result<Watch, Gap> {
    if let Some(gap) = bpf::refusal(NAME, host) {
        return Err(gap);
    }
    let blind = |error| bpf::gap(NAME, host, &error, "sudo sexton record");
    let mut watch = Watch::load(clients.iter().map(String::as_str)).map_err(blind)?;
    watch.attach().map_err(blind)?;
    Ok(watch)
}

/// Exits as the kernel's accounting tells them.
pub(super) struct ByStats {
    listener: Listener,
    watch: perf::Watch,
    tasks: Tasks,
    moves: Moves,
    /// Chosen by the kernel when memory ran out, and not dead yet.
    victims: HashSet<u32>,
    clients: HashSet<Vec<u8>>,
    tally: Tally,
    /// By cgroup and name of the parent.
    makers: HashMap<(Vec<u8>, Vec<u8>), Maker>,
    /// Why there is no BPF program.
    instead: Gap,
}

impl ByStats {
    fn open(host: &Host, clients: &[String], instead: Gap) -> Result<Self, Gap> {
        let closed = |why: &str| {
            let gap = bpf::not_without("exits of processes", instead.clone());
            let text = format!("{}; by taskstats: {why}", gap.text);
            Gap { text, ..gap }
        };
        if !process::numbers_are_the_kernels(host) {
            return Err(closed("only in the host's PID namespace"));
        }
        let failed = |error: std::io::Error| closed(&error.to_string());
        let (moves, points) = Moves::of(host).map_err(|gap| closed(&gap.text))?;
        let n_cores = machine::possible_cpus(host).map_err(|error| closed(&error.chain()))?;
        let mut watch = perf::Watch::new(Ask::Tracepoints(points), RING_BYTES);
        let cores = machine::online_cpus(host).map_err(|error| closed(&error.chain()))?;
        watch
            .follow_cores(&cores)
            .map_or(Ok(()), Err)
            .map_err(failed)?;
        let listener = Listener::open(n_cores).map_err(failed)?;
        let memory = MemoryHierarchy::find(host).ok().flatten();
        let is_v1 = memory.is_some_and(|memory| memory.hierarchy == Hierarchy::V1);
        Ok(Self {
            listener,
            watch,
            tasks: Tasks::with_cgroups(match is_v1 {
                true => Cgroups::Inherited,
                false => Cgroups::Shown,
            }),
            moves,
            victims: HashSet::new(),
            clients: clients
                .iter()
                .map(|name| name.clone().into_bytes())
                .collect(),
            tally: Tally::default(),
            makers: HashMap::new(),
            instead,
        })
    }

    fn drain(&mut self, host: &Host, most: usize, take: &mut impl FnMut(Event)) -> u64 {
        if let Ok(online) = machine::online_cpus(host) {
            self.watch.follow_cores(&online);
        }
        let mut exits = Vec::new();
        // Exits first: what led to them has been recorded by then.
        let heard = self.listener.drain(most, |exit| exits.push(exit));
        let mut exited_at = HashMap::new();
        let malformed = self.follow(host, &mut exited_at);
        let now = clock::now().as_ns();
        for exit in exits {
            let at_ns = exited_at.get(&exit.tid).copied().unwrap_or(now);
            if let Some(event) = self.describe(host, exit, at_ns) {
                take(event);
            }
        }
        self.tasks.forget_exited();
        malformed + u64::from(heard.is_err())
    }

    /// Follows tasks up to now, and takes down when each exited.
    fn follow(&mut self, host: &Host, exited_at: &mut HashMap<u32, u64>) -> u64 {
        let Self {
            tasks,
            moves,
            victims,
            tally,
            ..
        } = self;
        self.watch.drain(|record| match &record.what {
            What::Sample(sample) => match moves.read(&sample.fields) {
                Some(Moved::To(tid, cgroup)) => tasks.moved(host, tid, cgroup),
                Some(Moved::Chosen(pid)) => {
                    tally.n_oom_victims += 1;
                    victims.insert(pid);
                }
                None => {}
            },
            What::Exited { tid, .. } => {
                exited_at.insert(*tid, record.at_ns);
                tasks.note(host, &record.what);
            }
            other => tasks.note(host, other),
        })
    }

    /// The end of a process, if this was one that is told.
    fn describe(&mut self, host: &Host, exit: Exit, at_ns: u64) -> Option<Event> {
        let task = self.tasks.get(host, exit.tid);
        // Threads have no status of their own here.
        let is_process = exit.status != 0 || task.is_some_and(|task| task.pid == exit.tid);
        if !is_process {
            return None;
        }
        let cgroup = task.and_then(|task| task.cgroup.as_ref());
        let cgroup = cgroup.map(|path| path.to_vec()).unwrap_or_default();
        self.count_maker(host, &exit, &cgroup);
        let n = match exit.status {
            0 => &mut self.tally.n_normal,
            _ => &mut self.tally.n_abnormal,
        };
        *n += 1;
        let oom = self.victims.remove(&exit.tid);
        (exit.status != 0 || self.clients.contains(&exit.comm)).then(|| Event {
            at_ns,
            start_ns: at_ns.saturating_sub(exit.lifetime.as_nanos() as u64),
            cgroup_id: 0,
            cgroup,
            cgroup_is_cut: false,
            pid: exit.tid,
            tgid: exit.tid,
            uid: exit.user,
            code: exit.status,
            oom,
            comm: exit.comm,
        })
    }
}

impl ByStats {
    /// Counts an exit for the parent's name and the cgroup, as the program in the kernel does.
    fn count_maker(&mut self, host: &Host, exit: &Exit, cgroup: &[u8]) {
        let parent = self.tasks.get(host, exit.parent);
        let comm = parent.map_or_else(Vec::new, |parent| parent.comm.to_vec());
        let key = (cgroup.to_vec(), comm);
        if self.makers.len() >= MAX_MAKERS && !self.makers.contains_key(&key) {
            self.tally.n_unplaced += 1;
            return;
        }
        let (cgroup, comm) = key.clone();
        let maker = self.makers.entry(key).or_insert_with(|| Maker {
            cgroup_id: 0,
            cgroup,
            comm,
            parent: exit.parent,
            child: Vec::new(),
            n: 0,
            n_short: 0,
        });
        maker.n += 1;
        maker.n_short += u64::from(exit.lifetime < SHORT);
        (maker.parent, maker.child) = (exit.parent, exit.comm.clone());
    }
}

/// Tracepoints that say more of tasks: they are moved to a cgroup, or chosen when memory runs out.
struct Moves {
    attach: u64,
    victim: u64,
    kind: Field,
    moved: Field,
    path: Field,
    chosen: Field,
}

/// What one of them said.
enum Moved<'b> {
    To(u32, &'b [u8]),
    Chosen(u32),
}

impl Moves {
    /// As this kernel has them, and what to ask of perf.
    fn of(host: &Host) -> Result<(Self, Vec<Point>), Gap> {
        let gap = |error: sexton_host::HostError| Gap::new(NAME, error.why(), error.chain());
        let tracefs = Tracefs::open(host).map_err(gap)?;
        let attach = tracefs
            .tracepoint(host, "cgroup/cgroup_attach_task")
            .map_err(gap)?;
        let victim = tracefs.tracepoint(host, "oom/mark_victim").map_err(gap)?;
        let places = Place::read_own(host).map_err(gap)?;
        let memory = places.iter().find(|place| place.is_of("memory"));
        let root = memory.map_or(0, |place| place.hierarchy);
        let points = vec![
            Point {
                id: attach.id,
                filter: Some(format!("dst_root == {root}")),
            },
            Point {
                id: victim.id,
                filter: None,
            },
        ];
        let moves = Self::by(&attach, &victim).ok_or_else(|| {
            let text = "tracepoints of this kernel lack a task or a path";
            Gap::new(NAME, Why::Unsupported, text)
        })?;
        Ok((moves, points))
    }

    fn by(attach: &Tracepoint, victim: &Tracepoint) -> Option<Self> {
        Some(Self {
            attach: attach.id,
            victim: victim.id,
            kind: attach.field("common_type")?.clone(),
            moved: attach.field("pid")?.clone(),
            path: attach.field("dst_path")?.clone(),
            chosen: victim.field("pid")?.clone(),
        })
    }

    fn read<'b>(&self, fields: &'b [u8]) -> Option<Moved<'b>> {
        let kind = self.kind.number(fields)?;
        if kind == self.attach {
            let tid = self.moved.number(fields)? as u32;
            return Some(Moved::To(tid, self.path.text(fields)?));
        }
        let chosen = (kind == self.victim).then(|| self.chosen.number(fields))??;
        Some(Moved::Chosen(chosen as u32))
    }
}
