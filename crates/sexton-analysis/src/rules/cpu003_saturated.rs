//! CPU003: the CPU is saturated
//!
//! Means: all cores are in use by work of ordinary priority, and tasks that have nothing to do
//! with that work wait for a core: they are slower by the time they wait. Severity follows what
//! suffers, not how busy the node is: neither the number of runnable tasks nor CPU pressure tells
//! a hog from a build. All processes and their threads count, by unit, container or cgroup.
//! Some cores alone can be it too, while the others have room: what waits may not run there
//! (`CPUAffinity=`, `AllowedCPUs=`, a cpuset). Then these cores are named.
//! Where no one has most of the time, it is a warning when all are several times slower than each
//! would be alone; where one has, when it keeps more tasks busy for good than there are cores.
//! Not this: a build host or batch node that uses all of its cores while only its own work
//! waits (a note), however long its queue of jobs that come and go; niced work, which gives its
//! core to any other task at once; a cgroup that its quota holds back (CPU004); time that the
//! hypervisor took (CPU005); one core lost to the kernel (CPU001).
//! One busy task for each core beside daemons that sleep is a note too: a daemon that wakes gets a
//! core within milliseconds, and a runaway loop looks as a computation that is meant. `some` near
//! 100 % says that a task waited, not how long or whose. It is sick when the work of others loses a
//! quarter of a core, any task waits 2 s at once, or two tasks for each core never sleep.
//! It is not assessed while the cores are full and it was not seen who waits: means of all waits
//! (`/proc/schedstat`) show no task that starves.
//! By hand: `cat /proc/pressure/cpu`, `vmstat 1` (column r against the number of cores),
//! `pidstat -u 1` (%wait), `systemd-cgtop`.
//! Next: lower the weight or priority of what has the time, give it a quota, move it, or add cores.

mod evidence;
mod remedies;
mod some_cores;

use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::core::RUNNABLE_TASKS;
use sexton_model::fact::pressure::PRESSURE_CPU_SOME_RATIO;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Finding, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::cpu_load::{self, Consumer, Cores, LongWait, Use, Waiter, Waiters};
use crate::evidence::owners;
use crate::evidence::span;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{percent, time};

const CODE: &str = "CPU003";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::CpuShort,
    title: "the CPU is saturated",
    sees: "CPU saturation",
    needs: &["cores"],
    uses: &["contention", "pressure", "runq", "stacks"],
    is_essential: true,
    least: Some(&STRETCH),
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[
        &PART,
        &STRETCH,
        &WAITING,
        &MUCH_WAITING,
        &WAIT,
        &ENDLESS,
        &SLOWDOWN,
    ],
    source: include_str!("cpu003_saturated.rs"),
    judge,
};

static PART: Threshold = Threshold {
    rule: CODE,
    name: "part",
    default: 0.9,
    range: (0.5, 1.0),
    unit: Measure::Ratio,
    why: "cores are full when work of ordinary priority has this part of them all, second by \
          second; a tenth that is idle, or that niced work has, is there for any task that wakes",
};

static STRETCH: Threshold = Threshold {
    rule: CODE,
    name: "stretch",
    default: 10.0,
    range: (2.0, 3600.0),
    unit: Measure::Seconds,
    why: "cores that are full for less time ran one job: a deploy, a compile. PSI's own shortest \
          mean is as long (avg10)",
};

static WAITING: Threshold = Threshold {
    rule: CODE,
    name: "waiting",
    default: 0.25,
    range: (0.01, 1000.0),
    unit: Measure::Count,
    why: "others suffer when at any time this many of their tasks wait for a core, on average: \
          one of them loses a quarter of its time. Measured on two cores: idle daemons had 0.03 to \
          0.19 beside builds with -j4 and -j8 and beside two to eight busy loops; a service that \
          wants 30 % of a core had 0.18 and 0.19 beside these builds, and 0.29, 0.50 and 0.94 beside \
          two, four and eight busy loops. PSI some was 0.85 to 0.98 in the builds and 0.55 to 1.0 \
          with the loops, runnable tasks for each core 2.9 to 5.4 and 2.4 to 6.6: neither tells them \
          apart",
};

static MUCH_WAITING: Threshold = Threshold {
    rule: CODE,
    name: "much_waiting",
    default: 1.0,
    range: (0.01, 1000.0),
    unit: Measure::Count,
    why: "with this many there is never a moment in which no other task waits: the node has no \
          core left for them",
};

static WAIT: Threshold = Threshold {
    rule: CODE,
    name: "wait",
    default: 2.0,
    range: (0.1, 600.0),
    unit: Measure::Seconds,
    why: "a task that waits so long at once does not share fairly, it starves: with turns of 3 ms \
          that takes over 600 tasks in front of it. Half of the 5 s after which network drivers \
          reset their device",
};

static ENDLESS: Threshold = Threshold {
    rule: CODE,
    name: "endless",
    default: 2.0,
    range: (1.0, 1000.0),
    unit: Measure::Count,
    why: "with this many tasks of one owner for each core that never sleep, each has at most half of \
          a core for good: a queue that does not get shorter by working it off. Jobs of a build \
          come and go; a program with one busy thread for each core has 1",
};

static SLOWDOWN: Threshold = Threshold {
    rule: CODE,
    name: "slowdown",
    default: 3.0,
    range: (1.1, 1000.0),
    unit: Measure::Count,
    why: "where no one has most of the time: all together are this many times slower than each would \
          be alone. Four units with one busy task each on two cores have 2, eight have 4",
};

/// One owner with this part of what was used is who has the time.
const MAIN: f64 = 0.5;

/// Where no one is, those with this part of what the first has are like it: they share, and do not
/// suffer more from the others than the others do from them.
const LIKE_FIRST: f64 = 0.5;

/// An owner of whose tasks fewer wait at any time hardly does: a hundred daemons that each lose a
/// hundredth of a core are not one that loses a whole one. Each of the idle daemons beside the builds
/// and loops that `waiting` was measured with had less.
const HARDLY: f64 = 0.05;

/// Owners and waiters that a finding names.
const MAX_NAMED: usize = 3;

/// What was seen while the cores were full.
struct Seen<'a> {
    used: &'a Use,
    full: &'a [(Moment, Moment)],
    consumers: Vec<Consumer>,
    waiters: Waiters,
    waits: Vec<LongWait>,
    /// Runnable tasks for each core.
    crowd: Option<f64>,
    /// These cores alone, and the part of the others that was used.
    some: Option<(Vec<&'a Subject>, f64)>,
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    let cores = Cores::of(case);
    let used = cores.together(|_| true);
    if !used.is_known() {
        return out.not_judged(CODE, "no core was looked at twice");
    }
    let full = long_stretches(case, &used);
    if full.is_empty() {
        some_cores::judge(case, &cores, out);
        return;
    }
    let seen = Seen::of(case, &used, &full);
    if !seen.is_judged(case) {
        return out.not_judged(CODE, unseen(case));
    }
    // The work of looking is not a trouble of the node.
    if !seen.main().is_some_and(|main| main.is_own) {
        out.found(seen.finding(case));
    }
}

/// When these cores together were full for long.
fn long_stretches(case: &Case<'_>, used: &Use) -> Vec<(Moment, Moment)> {
    let least = case.lasting(&STRETCH);
    let mut full = used.stretches(case.limit(&PART));
    full.retain(|(from, to)| to.since(*from) >= least);
    full
}

/// Why it is not known who waited.
fn unseen(case: &Case<'_>) -> String {
    let why = match (case.had("contention"), case.heard("contention")) {
        (true, true) => "no look at processes fell into that time".to_owned(),
        (true, false) => case.why_silent("contention"),
        (false, _) if case.heard("pressure") => "waits of tasks were not recorded".to_owned(),
        (false, _) => case.why_silent("pressure"),
    };
    format!("all cores were in use, and who waited was not seen: {why}")
}

impl<'a> Seen<'a> {
    fn of(case: &Case<'_>, used: &'a Use, full: &'a [(Moment, Moment)]) -> Self {
        let crowd: Vec<_> = case.samples(&RUNNABLE_TASKS, &Subject::node()).collect();
        Self {
            consumers: cpu_load::consumers(case, full),
            waiters: Waiters::of(case, full),
            waits: cpu_load::long_waits(case, full),
            crowd: span::mean(&crowd, full).map(|n| n / used.n_cores.max(1) as f64),
            used,
            full,
            some: None,
        }
    }
}

impl Seen<'_> {
    fn knows_waits(&self) -> bool {
        self.waiters.seconds() > 0.0
    }

    /// Whether it was seen that tasks wait, or that they do not.
    fn is_judged(&self, case: &Case<'_>) -> bool {
        let limit = Duration::from_secs_f64(case.limit(&WAIT));
        // Below that processes are not looked at: no task loses so much.
        let is_quiet = self
            .pressure(case)
            .is_some_and(|some| some < case.limit(&WAITING));
        // The sexton that recorded may be older than the looks at processes.
        let is_older = !case.had("contention") && case.heard("pressure") && case.heard("runq");
        self.knows_waits()
            || is_quiet
            || self.longest_wait() >= limit
            || (is_older && !cpu_load::are_means(case))
    }

    /// Part of the time in which a task waited for a core.
    fn pressure(&self, case: &Case<'_>) -> Option<f64> {
        let node = Subject::node();
        let samples: Vec<_> = case.samples(&PRESSURE_CPU_SOME_RATIO, &node).collect();
        span::mean(&samples, self.full)
    }

    /// The one that has most of the time, if one has.
    fn main(&self) -> Option<&Consumer> {
        let used = self.used.mean(self.full) * self.used.n_cores as f64;
        let first = self.consumers.first();
        first.filter(|first| first.cores >= MAIN * used)
    }

    /// Whether a process has nothing to do with the work that has the time.
    fn is_other(&self, waiter: &Waiter) -> bool {
        self.is_apart(Some(&waiter.owner), &waiter.comm)
    }

    fn is_apart(&self, owner: Option<&Subject>, comm: &str) -> bool {
        let Some(owner) = owner else {
            return self.main().is_none_or(|main| !main.has_name(comm));
        };
        match self.main() {
            Some(main) => *owner != main.owner && !is_name_of(main, owner, comm),
            None => {
                let first = self.consumers.first().map_or(0.0, |first| first.cores);
                self.cores_of(owner) < LIKE_FIRST * first
            }
        }
    }

    fn cores_of(&self, owner: &Subject) -> f64 {
        let mut consumers = self.consumers.iter();
        let found = consumers.find(|one| one.owner == *owner);
        found.map_or(0.0, |one| one.cores)
    }

    /// How many times slower all are than each would be alone. Alone, an owner would have a core
    /// for each of its tasks that runs or waits, or all cores.
    fn slowdown(&self) -> f64 {
        let n_cores = self.used.n_cores.max(1) as f64;
        let waiting = self.waiters.by_owner().into_iter();
        let lost = waiting.map(|(owner, waiting)| {
            let has = self.cores_of(owner);
            (has + waiting).min(n_cores) - has.min(n_cores)
        });
        1.0 + lost.sum::<f64>() / n_cores
    }

    /// Tasks of who has the time that never sleep.
    fn n_endless(&self) -> usize {
        let is_own = |owner: &Subject, comm: &str| !self.is_apart(Some(owner), comm);
        match self.main() {
            Some(_) if self.knows_waits() => self.waiters.n_endless(is_own),
            _ => 0,
        }
    }

    /// How many tasks of others wait at any time, of those that do not hardly wait.
    fn waiting_of_others(&self) -> f64 {
        let is_other = |owner: &Subject, comm: &str| self.is_apart(Some(owner), comm);
        self.waiters.mean(HARDLY, is_other)
    }

    fn others_wait(&self, case: &Case<'_>) -> bool {
        self.waiting_of_others() >= case.limit(&WAITING)
    }

    fn is_overcommitted(&self, case: &Case<'_>) -> bool {
        self.n_endless() as f64 >= case.limit(&ENDLESS) * self.used.n_cores.max(1) as f64
    }

    fn waits_of_others(&self) -> impl Iterator<Item = &LongWait> {
        let waits = self.waits.iter();
        waits.filter(|wait| self.is_apart(wait.owner.as_ref(), &wait.comm))
    }

    fn longest_wait(&self) -> Duration {
        self.waits
            .first()
            .map_or(Duration::ZERO, |wait| wait.waited)
    }

    /// What others suffer.
    fn severity(&self, case: &Case<'_>) -> Severity {
        let waiting = self.waiting_of_others();
        let longest = self.waits_of_others().map(|wait| wait.waited).max();
        let limit = Duration::from_secs_f64(case.limit(&WAIT));
        let is_starved = longest.is_some_and(|longest| longest >= limit);
        let suffers = self.others_wait(case) || self.longest_wait() >= limit;
        match self.main() {
            // Whose work it is was not recorded: all of it may be one's own. That is no reason to
            // starve, where who waits could have been seen.
            None if self.consumers.is_empty() => {
                match self.longest_wait() >= limit && case.had("contention") {
                    true => Severity::Warning,
                    false => Severity::Note,
                }
            }
            None if suffers || self.slowdown() >= case.limit(&SLOWDOWN) => Severity::Warning,
            Some(_) if is_starved || waiting >= case.limit(&MUCH_WAITING) => Severity::Serious,
            Some(_) if suffers || self.is_overcommitted(case) => Severity::Warning,
            _ => Severity::Note,
        }
    }

    fn subject(&self) -> Subject {
        self.main()
            .map_or_else(Subject::node, |main| main.owner.clone())
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        let subject = self.subject();
        let severity = self.severity(case);
        let mut touched = vec![subject.clone()];
        touched.extend(
            self.main()
                .into_iter()
                .flat_map(|main| main.processes.iter().cloned()),
        );
        let some = self.some.iter().flat_map(|(cores, _)| cores);
        touched.extend(some.map(|core| (*core).clone()));
        let episode = |(from, to): &(Moment, Moment)| Episode {
            from: *from,
            to: *to,
            touched: touched.clone(),
        };
        Finding {
            code: CODE,
            severity,
            confidence: match self.knows_waits() && !self.consumers.is_empty() {
                true if self.waiters.n_unread() > 0 => Confidence::LIKELY,
                true => Confidence::CERTAIN,
                false => Confidence::POSSIBLE,
            },
            title: self.title(case, severity),
            figure: match self.some {
                Some(_) => format!("{} of {}", percent(self.used.mean(self.full)), self.place()),
                None => format!("{} of all cores", percent(self.used.mean(self.full))),
            },
            since: self.full.first().map(|(from, _)| *from),
            evidence: self.evidence(case),
            remedies: remedies::of(&subject, self.some.is_some()),
            episodes: span::longest(self.full.iter().map(episode).collect()),
            subject,
            touched,
        }
    }

    /// `all 4 cores`, `cores 0, 1`.
    fn place(&self) -> String {
        match &self.some {
            None => format!("all {} cores", self.used.n_cores),
            Some((cores, _)) => some_cores::words(cores),
        }
    }

    fn title(&self, case: &Case<'_>, severity: Severity) -> String {
        let place = self.place();
        let who = match self.main() {
            Some(main) => {
                let part = main.cores / self.used.n_cores.max(1) as f64;
                format!("{} has {} of {place}", words(main), percent(part.min(1.0)))
            }
            None if self.used.n_cores == 1 => format!("{place} is in use by many at once"),
            None => format!("{place} are in use by many at once"),
        };
        let longest = self.waits_of_others().next();
        let suffers = self.waiters.all.iter().find(|waiter| self.is_other(waiter));
        match (severity, longest, suffers) {
            (Severity::Note, ..) => format!("{who}; other work hardly waits"),
            (_, Some(wait), _) if wait.waited >= Duration::from_secs(1) => {
                format!(
                    "{who}; {} waited {} for a core",
                    wait.comm,
                    time(wait.waited)
                )
            }
            _ if !self.others_wait(case) && self.is_overcommitted(case) => {
                let n_endless = self.n_endless();
                format!("{who}; {n_endless} of its tasks never sleep and share them")
            }
            (_, _, Some(waiter)) => format!(
                "{who}; {} waited for a core {} of the time",
                waiter.comm,
                percent(self.waiters.part(waiter.waited))
            ),
            _ if self.main().is_none() => {
                let n = self.slowdown();
                format!("{who}; each is {n:.1} times slower than it would be alone")
            }
            _ => format!(
                "{who}; tasks waited up to {} for a core",
                time(self.longest_wait())
            ),
        }
    }
}

/// Who it is. The path of a cgroup alone says little: its main program comes first.
fn words(main: &Consumer) -> String {
    let owner = owners::words(&main.owner);
    match (main.owner.kind, main.comms.first()) {
        (SubjectKind::Cgroup, Some(comm)) => format!("{comm} in {owner}"),
        _ => owner,
    }
}

/// Whether an owner is only a name, and the name is one of the main consumer's processes: their
/// cgroup could not be asked any more, or theirs is not known.
fn is_name_of(main: &Consumer, owner: &Subject, comm: &str) -> bool {
    let is_vague = owner.kind == SubjectKind::Task || main.owner.kind == SubjectKind::Task;
    is_vague && main.has_name(comm)
}

#[cfg(test)]
mod tests;
