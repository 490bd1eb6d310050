//! CPU006: a real-time task holds a core
//!
//! Means: a program with real-time priority keeps a core busy, and what can only run there waits for
//! half a second and more at a time: threads of the kernel that belong to the core (`kworker/N`,
//! `ksoftirqd/N`) and tasks that are pinned to it. Network polling, timers, writeback and RCU of that
//! core wait with them. The other cores may be idle, so that the node's average shows nothing.
//! Not this: a core that the kernel itself holds (CPU001), or a reader of cgroup statistics (CPU002); a
//! task of ordinary priority, which the scheduler takes off the core in time; waits of niced tasks, or
//! of what a quota holds back (CPU004). Where waits are known as means alone (no BPF) it is not
//! assessed.
//! By hand: `ps -eLo pid,tid,cls,rtprio,psr,pcpu,comm --sort=-pcpu | head`: class FF or RR near 100 %.
//! Next: give the program ordinary priority, or keep its core free of other work (`isolcpus=`, IRQ
//! affinity) if it is meant to have it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::core::CORE_SYSTEM_RATIO;
use sexton_model::fact::runq::{CoreWait, RUNQ_WAIT};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::cpu_load;
use crate::evidence::owners::{self, Place};
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{plural, time, times};
use crate::words::unit_name::systemctl;

const CODE: &str = "CPU006";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::CoreLost,
    title: "a real-time task holds a core",
    sees: "cores held by real-time tasks",
    needs: &["runq", "cores"],
    uses: &["stacks"],
    is_essential: false,
    least: None,
    cause: Cause::Always,
    offer: Offer::NOTHING,
    thresholds: &[&WAIT, &LONG_WAIT, &WAITS],
    source: include_str!("cpu006_held_core.rs"),
    judge,
};

static WAIT: Threshold = Threshold {
    rule: CODE,
    name: "wait",
    default: 0.5,
    range: (0.5, 600.0),
    unit: Measure::Seconds,
    why: "a wait for one core that is so long is no turn: tasks of ordinary priority get one \
          within 100 ms. Who held the core is recorded from there on",
};

static LONG_WAIT: Threshold = Threshold {
    rule: CODE,
    name: "long_wait",
    default: 2.0,
    range: (0.5, 600.0),
    unit: Measure::Seconds,
    why: "one wait of this length is enough to tell; the kernel leaves ordinary tasks 50 ms of each \
          second (sched_rt_runtime_us), so that it means that this guard is off or is not enough. \
          Half of the 5 s after which network drivers reset their device",
};

static WAITS: Threshold = Threshold {
    rule: CODE,
    name: "waits",
    default: 3.0,
    range: (1.0, 1000.0),
    unit: Measure::Count,
    why: "once or twice is a burst, as of a device that is set up; a loop does it every second",
};

/// Who ran for this part of a wait is who the task waited for.
const MOST: f64 = 0.9;

/// A core that was in the kernel for this part of a wait is CPU001's.
const IN_KERNEL: f64 = 0.5;

/// Waits with this between them are one stretch: on a quiet core a thread of the kernel wakes
/// each second or two.
const PAUSE: Duration = Duration::from_secs(5);

/// Tasks that the evidence names.
const MAX_NAMED: usize = 3;

/// One wait for a core that one task held.
struct Wait<'a> {
    waiter: &'a str,
    core: &'a Subject,
    from: Moment,
    to: Moment,
    holder: u32,
    comm: &'a str,
    /// How long the holder ran, of the wait.
    ran: Duration,
    /// `None`: it had exited, or the recording is of an older sexton.
    is_realtime: Option<bool>,
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    if cpu_load::are_means(case) {
        let because = "waits for a core were recorded as means alone (/proc/schedstat), in which no \
                       single wait shows; BPF tells them one by one";
        return out.not_judged(CODE, because);
    }
    let held_back = cpu_load::held_back(case);
    let mut by_owner: BTreeMap<Subject, Vec<Wait<'_>>> = BTreeMap::new();
    for event in case.events(&RUNQ_WAIT) {
        if let Some(wait) = wait_of(case, event, &held_back) {
            let place = Place {
                cgroup: event.says.holder_cgroup.as_deref(),
                comm: wait.comm,
                ..Place::default()
            };
            by_owner.entry(place.owner()).or_default().push(wait);
        }
    }
    let least = case.limit(&WAITS) as usize;
    let long = Duration::from_secs_f64(case.limit(&LONG_WAIT));
    for (owner, waits) in by_owner {
        if waits.len() >= least || waits.iter().any(|wait| wait.length() >= long) {
            out.found(finding(case, owner, &waits));
        }
    }
}

impl Wait<'_> {
    fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// A long wait of a task that matters for a core that one real-time task had.
fn wait_of<'a>(
    case: &Case<'a>,
    event: Event<'a, CoreWait>,
    held_back: &[&str],
) -> Option<Wait<'a>> {
    let says = event.says;
    let waited = Duration::from_nanos(says.waited_ns);
    let ran = Duration::from_nanos(says.holder_ns?);
    let wait = Wait {
        waiter: says.comm.as_deref().unwrap_or("a task"),
        core: event.subject,
        from: earlier(event.at, waited),
        to: event.at,
        holder: says.holder_pid.filter(|pid| *pid != 0)?,
        comm: says.holder_comm.as_deref().unwrap_or("a task"),
        ran,
        is_realtime: says.holder_realtime,
    };
    let matters = says.nice.is_none_or(|nice| nice <= 0)
        && !cpu_load::is_held_back(says.cgroup.as_deref(), held_back);
    // Of one that is gone only this tells: nothing else of user space keeps these off their core.
    let is_realtime = says
        .holder_realtime
        .unwrap_or_else(|| cpu_load::is_of_kernel(wait.waiter));
    let samples: Vec<_> = case.samples(&CORE_SYSTEM_RATIO, wait.core).collect();
    let in_kernel = span::mean(&samples, &[(wait.from, wait.to)]);
    let is_held = waited.as_secs_f64() >= case.limit(&WAIT)
        && ran >= waited.mul_f64(MOST)
        && !cpu_load::is_of_kernel(wait.comm)
        && in_kernel.is_some_and(|ratio| ratio < IN_KERNEL)
        && !is_reader(case, wait.holder)
        && !case
            .own_work()
            .explains(case, wait.core, wait.from, wait.to);
    (matters && is_realtime && is_held).then_some(wait)
}

/// One that walks memory cgroups is CPU002's, whatever its priority.
fn is_reader(case: &Case<'_>, pid: u32) -> bool {
    let holder = process(pid);
    case.sightings().iter().any(|one| one.process == holder)
}

fn finding(case: &Case<'_>, owner: Subject, waits: &[Wait<'_>]) -> Finding {
    let longest = waits.iter().max_by_key(|wait| (wait.length(), wait.from));
    let length = longest.map(Wait::length).unwrap_or_default();
    let cores: BTreeSet<&Subject> = waits.iter().map(|wait| wait.core).collect();
    let holders: BTreeMap<u32, &str> = waits.iter().map(|wait| (wait.holder, wait.comm)).collect();
    let core = cores.iter().map(|core| &*core.name).collect::<Vec<_>>();
    let core = core.join(", ");
    let is_known = waits.iter().any(|wait| wait.is_realtime == Some(true));
    let starves_kernel = waits.iter().any(|wait| cpu_load::is_of_kernel(wait.waiter));
    let mut touched = vec![owner.clone()];
    touched.extend(cores.iter().map(|core| (*core).clone()));
    touched.extend(holders.keys().map(|pid| process(*pid)));
    let waiter = longest.map_or("a task", |wait| wait.waiter);
    Finding {
        code: CODE,
        severity: match starves_kernel || length.as_secs_f64() >= case.limit(&LONG_WAIT) {
            true => Severity::Serious,
            false => Severity::Warning,
        },
        confidence: match is_known {
            true => Confidence::CERTAIN,
            false => Confidence::LIKELY,
        },
        title: format!(
            "{} holds core {core} with real-time priority; {waiter} waited {} for it",
            who(&owner, &holders),
            time(length)
        ),
        figure: format!("core {core}, waits of {}", time(length)),
        since: waits.iter().map(|wait| wait.from).min(),
        evidence: evidence(waits, is_known),
        remedies: remedies(&owner, &holders),
        episodes: span::longest(episodes(&owner, waits)),
        subject: owner,
        touched,
    }
}

fn process(pid: u32) -> Subject {
    Subject::new(SubjectKind::Process, pid.to_string())
}

fn who(owner: &Subject, holders: &BTreeMap<u32, &str>) -> String {
    match holders.first_key_value() {
        Some((pid, comm)) if owner.kind == SubjectKind::Task => format!("{comm} (pid {pid})"),
        Some((pid, comm)) => format!("{comm} (pid {pid}) of {}", owners::words(owner)),
        None => owners::words(owner),
    }
}

/// Waits that follow each other are one: it held the core in between as well, and nothing that
/// matters wanted it.
fn episodes(owner: &Subject, waits: &[Wait<'_>]) -> Vec<Episode> {
    let mut waits: Vec<&Wait<'_>> = waits.iter().collect();
    waits.sort_by_key(|wait| (wait.core, wait.holder, wait.from));
    let mut held: Vec<Episode> = Vec::new();
    for wait in waits {
        let touched = vec![owner.clone(), wait.core.clone(), process(wait.holder)];
        match held.last_mut() {
            Some(last) if last.touched == touched && wait.from <= last.to.after(PAUSE) => {
                last.to = last.to.max(wait.to);
            }
            _ => held.push(Episode {
                from: wait.from,
                to: wait.to,
                touched,
            }),
        }
    }
    held
}

fn evidence(waits: &[Wait<'_>], is_known: bool) -> Vec<Evidence> {
    let ran = waits.iter().map(|wait| wait.ran).max().unwrap_or_default();
    let text = format!(
        "it ran up to {} at a stretch while others could run, {}",
        time(ran),
        times(waits.len())
    );
    let mut all = vec![Evidence::speaks_for("runq", text).value(waits.len() as f64)];
    let mut by_waiter: BTreeMap<&str, (usize, Duration)> = BTreeMap::new();
    for wait in waits {
        let (n, longest) = by_waiter.entry(wait.waiter).or_default();
        *n += 1;
        *longest = (*longest).max(wait.length());
    }
    let mut by_waiter: Vec<_> = by_waiter.into_iter().collect();
    by_waiter.sort_by_key(|(name, (n, longest))| (std::cmp::Reverse((*n, *longest)), *name));
    let n_more = by_waiter.len().saturating_sub(MAX_NAMED);
    for (waiter, (n, longest)) in by_waiter.into_iter().take(MAX_NAMED) {
        let text = format!(
            "{waiter} waited for the core {}, up to {}",
            times(n),
            time(longest)
        );
        all.push(Evidence::speaks_for("runq", text));
    }
    if n_more > 0 {
        let text = format!("{} waited for it too", plural(n_more as u64, "other task"));
        all.push(Evidence::speaks_for("runq", text));
    }
    all.push(match is_known {
        true => Evidence::speaks_for("/proc/PID/stat", "its scheduling policy is real-time"),
        false => Evidence::missing("/proc/PID/stat", "its scheduling policy"),
    });
    all
}

fn remedies(owner: &Subject, holders: &BTreeMap<u32, &str>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if let Some((pid, comm)) = holders.first_key_value() {
        let demote = Remedy::command(
            RemedyKind::Stop,
            format!("Give {comm} ordinary priority (host PID)"),
            format!("sudo chrt --all-tasks --other --pid 0 {pid}"),
        );
        let look = Remedy::command(
            RemedyKind::Look,
            format!("See the policy of each thread of {comm}"),
            format!("ps -L -o tid,cls,rtprio,psr,pcpu,comm -p {pid}"),
        );
        remedies.extend([demote.of_process(pid), look.of_process(pid)]);
    }
    if owner.kind == SubjectKind::Unit {
        remedies.push(Remedy::command(
            RemedyKind::Look,
            format!("See CPUSchedulingPolicy= of {}", owner.name),
            systemctl("cat", &owner.name),
        ));
    }
    remedies.push(Remedy::advice(
        RemedyKind::Prevent,
        format!(
            "Run {} without real-time priority, or give it a core that nothing else uses",
            owners::words(owner)
        ),
    ));
    remedies
}

#[cfg(test)]
mod tests;
