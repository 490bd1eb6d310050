//! CPU001: one core is lost to system time
//!
//! Means: one core did nothing but run the kernel, for seconds without a break. What is bound
//! to that core waits: interrupts, network polling, threads that cannot move.
//! Not this: a core that runs programs, however busy; a node whose average is high but
//! whose cores take turns; time that the hypervisor took (steal); what sexton itself does,
//! such as loading programs on a slow machine: the kernel's work for it is left out.
//! A note while nothing suffers: a program that makes system calls in a loop (`dd`), a polling thread
//! (io_uring SQPOLL, vhost) or a busy driver thread gives the core to any task that wakes there. It is
//! that only where waits for the core were recorded one by one and none was long, interrupts had
//! little of it, and neither network polling, the kernel's log nor a walk of memory cgroups (CPU002)
//! meets it.
//! By hand: `mpstat -P ALL 1`, the columns %sys, %irq and %soft of the worst core, not `all`.
//! Next: CPU002 if it names a process; else `sudo perf record -a -g`, then
//! `perf report --sort cpu,comm,sym`.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::core::{
    CORE_IRQ_RATIO, CORE_SOFTIRQ_RATIO, CORE_STEAL_RATIO, CORE_SYSTEM_RATIO,
    CORE_UNACCOUNTED_RATIO, CORE_USER_RATIO,
};
use sexton_model::fact::{Fact, Measure};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::restart_loops::watched;
use crate::evidence::span;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{percent, seen_for, time};
use users::{User, users};

mod own;
mod room;
mod users;

const CODE: &str = "CPU001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::CoreLost,
    title: "one core is lost to system time",
    sees: "lost cores",
    needs: &["cores"],
    uses: &["stacks", "runq", "napi", "klog"],
    is_essential: true,
    least: Some(&STRETCH),
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[&PART, &STRETCH, &LONG_STRETCH, &WAIT],
    source: include_str!("cpu001_lost_core.rs"),
    judge,
};

static PART: Threshold = Threshold {
    rule: CODE,
    name: "part",
    default: 0.8,
    range: (0.1, 1.0),
    unit: Measure::Ratio,
    why: "a core whose time goes to system, irq and softirq to this part has nothing left for \
          others; a real-time task has at most 0.95 of a core before the scheduler steps in \
          (sched_rt_runtime_us). Of two cores that compiled with a load of 25 half of all samples \
          were below 0.2 and one in a hundred above 0.7",
};

static STRETCH: Threshold = Threshold {
    rule: CODE,
    name: "stretch",
    default: 2.0,
    range: (0.2, 3600.0),
    unit: Measure::Seconds,
    why: "this long without a break is no burst of ordinary work: two cores that compiled with a load of \
          25 had 0.1 s at most in two minutes, and 0.6 s above half of a core. Less than half of \
          the 5 s after which network drivers reset their device",
};

static LONG_STRETCH: Threshold = Threshold {
    rule: CODE,
    name: "long_stretch",
    default: 5.0,
    range: (0.2, 3600.0),
    unit: Measure::Seconds,
    why: "after this long without a break a network driver resets its device: the transmit watchdog of ena and of \
          the kernel's network stack is 5 s",
};

static WAIT: Threshold = Threshold {
    rule: CODE,
    name: "wait",
    default: 0.1,
    range: (0.001, 60.0),
    unit: Measure::Seconds,
    why: "a core that a task got within this time was shared with it, whatever the kernel did there: \
          the scheduler gives ordinary tasks a turn within 100 ms. Waits are recorded one by one \
          from there on",
};

/// What parts a core's time has that matter here.
static PARTS: [&Fact; 3] = [&CORE_SYSTEM_RATIO, &CORE_IRQ_RATIO, &CORE_SOFTIRQ_RATIO];

/// A pause between two samples that is longer is a hole: nothing is known of it.
const HOLE: Duration = Duration::from_secs(5);

/// Fewer samples than these make a stretch that is only likely.
const ENOUGH_SAMPLES: usize = 10;

/// Processes that are named beside a lost core.
const MAX_NAMED: usize = 3;

/// The kernel's part of a core's time over one interval.
#[derive(Debug, Clone, Copy)]
struct Share {
    from: Moment,
    to: Moment,
    ratio: f64,
}

/// A run of intervals in which the kernel had most of the core.
#[derive(Debug, Clone, PartialEq)]
struct Stretch {
    from: Moment,
    to: Moment,
    n_samples: usize,
}

impl Stretch {
    fn length(&self) -> Duration {
        self.to.since(self.from)
    }
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    let cores = shares(case);
    if cores.is_empty() {
        return out.not_judged(CODE, "no core was sampled twice");
    }
    let least = case.lasting(&STRETCH);
    for (core, shares) in &cores {
        let stretches = stretches(shares, case.limit(&PART));
        if stretches.iter().any(|stretch| stretch.length() >= least) {
            out.found(finding(case, core, &cores, &stretches));
        }
    }
}

/// The kernel's part of each core's time, in the order of time, without its work for us.
fn shares<'a>(case: &Case<'a>) -> BTreeMap<&'a Subject, Vec<Share>> {
    let mut sums: BTreeMap<&Subject, BTreeMap<Moment, f64>> = BTreeMap::new();
    for fact in PARTS {
        for record in case.of(fact) {
            if let Some(value) = record.value() {
                let of_core = sums.entry(&record.subject).or_default();
                *of_core.entry(record.at).or_default() += value;
            }
        }
    }
    let own = case.own_work();
    let with_begin = |core: &Subject, moments: BTreeMap<Moment, f64>| {
        let all: Vec<(Moment, f64)> = moments.into_iter().collect();
        let pairs = all
            .windows(2)
            .filter(|pair| pair[1].0.since(pair[0].0) <= HOLE);
        pairs
            .map(|pair| Share {
                from: pair[0].0,
                to: pair[1].0,
                ratio: own.without(core, pair[1].0, pair[1].1),
            })
            .collect::<Vec<Share>>()
    };
    sums.into_iter()
        .map(|(core, moments)| (core, with_begin(core, moments)))
        .filter(|(_, shares)| !shares.is_empty())
        .collect()
}

/// The stretches in which the mean stays at or above `part`. The kernel counts in ticks, so
/// one interval of 100 ms may fall short of what the next makes up for.
fn stretches(shares: &[Share], part: f64) -> Vec<Stretch> {
    let mut done = Vec::new();
    let mut open: Option<(Stretch, f64)> = None;
    let mut until = Moment::default();
    for share in shares {
        let is_hot = share.ratio >= part;
        let length = share.to.since(share.from).as_secs_f64();
        let goes_on = open.as_ref().is_some_and(|(stretch, hot)| {
            let all = share.to.since(stretch.from).as_secs_f64();
            share.from == until && (hot + share.ratio * length) >= part * all
        });
        if !goes_on {
            done.extend(open.take().map(|(stretch, _)| stretch));
        }
        match (&mut open, is_hot) {
            (None, true) => {
                let stretch = Stretch {
                    from: share.from,
                    to: share.to,
                    n_samples: 1,
                };
                open = Some((stretch, share.ratio * length));
            }
            (Some((stretch, hot)), _) => {
                *hot += share.ratio * length;
                if is_hot {
                    stretch.to = share.to;
                    stretch.n_samples += 1;
                }
            }
            (None, false) => {}
        }
        until = share.to;
    }
    done.extend(open.map(|(stretch, _)| stretch));
    done
}

fn finding(
    case: &Case<'_>,
    core: &Subject,
    cores: &BTreeMap<&Subject, Vec<Share>>,
    stretches: &[Stretch],
) -> Finding {
    let least = case.lasting(&STRETCH);
    let long: Vec<&Stretch> = stretches
        .iter()
        .filter(|stretch| stretch.length() >= least)
        .collect();
    let longest = long.iter().map(|stretch| stretch.length()).max();
    let longest = longest.unwrap_or_default();
    let sum: Duration = long.iter().map(|stretch| stretch.length()).sum();
    let n_samples = long.iter().map(|stretch| stretch.n_samples).max();
    let users = users(case, core, &long);
    let is_long = longest.as_secs_f64() >= case.limit(&LONG_STRETCH);
    let own = own::part(case, core, &long);
    let is_ours = hot_part(case, core, &long) - own < case.limit(&PART) && own >= own::LEAST;
    let room = room::of(case, core, &long, &users);
    let mut touched = vec![core.clone()];
    touched.extend(users.iter().map(|user| user.process.clone()));
    touched.extend(
        users
            .first()
            .filter(|user| user.had_it())
            .map(|user| user.owner.clone()),
    );
    Finding {
        code: CODE,
        subject: core.clone(),
        severity: match (is_ours || room.is_some(), is_long) {
            (true, _) => Severity::Note,
            (false, true) => Severity::Serious,
            (false, false) => Severity::Warning,
        },
        confidence: if n_samples >= Some(ENOUGH_SAMPLES) {
            Confidence::CERTAIN
        } else {
            Confidence::LIKELY
        },
        title: title(
            core,
            &seen_for(longest, watched(case)),
            &users,
            room.is_some(),
        ),
        figure: format!("{} in the kernel without a break", time(longest)),
        since: long.first().map(|stretch| stretch.from),
        evidence: [
            evidence(case, core, cores, &long, (longest, sum), &users),
            own::evidence(own).into_iter().collect(),
            room.map(room::evidence).into_iter().collect(),
        ]
        .concat(),
        remedies: remedies(core, users.first()),
        episodes: span::longest(long.iter().map(|stretch| episode(stretch, core)).collect()),
        touched,
    }
}

/// What was lost, and who had it. One that only had its turn is not named.
fn title(core: &Subject, longest: &str, users: &[User], has_room: bool) -> String {
    let what = match has_room {
        true => "ran the kernel",
        false => "was lost to system time",
    };
    let lost = format!("core {} {what} for {longest} without a break", core.name);
    let lost = match users.first().filter(|user| user.had_it()) {
        Some(user) => format!("{lost}, by {}", user.words()),
        None => lost,
    };
    match has_room {
        true => format!("{lost}; nothing waited long for it"),
        false => lost,
    }
}

/// The kernel's part of the core in these stretches.
fn hot_part(case: &Case<'_>, core: &Subject, long: &[&Stretch]) -> f64 {
    let parts = PARTS.iter().map(|fact| mean_in(case, fact, core, long));
    parts.sum()
}

fn episode(stretch: &Stretch, core: &Subject) -> Episode {
    Episode {
        from: stretch.from,
        to: stretch.to,
        touched: vec![core.clone()],
    }
}

fn evidence(
    case: &Case<'_>,
    core: &Subject,
    cores: &BTreeMap<&Subject, Vec<Share>>,
    long: &[&Stretch],
    (longest, sum): (Duration, Duration),
    users: &[User],
) -> Vec<Evidence> {
    let split: Vec<String> = PARTS
        .iter()
        .zip(["system", "irq", "softirq"])
        .map(|(fact, name)| format!("{name} {}", percent(mean_in(case, fact, core, long))))
        .collect();
    let mut all = vec![
        Evidence::speaks_for(
            "cores: /proc/stat",
            format!(
                "core {} ran only the kernel for {} without a break, {} in all",
                core.name,
                time(longest),
                time(sum)
            ),
        )
        .value(longest.as_secs_f64()),
        Evidence::speaks_for(
            "cores: /proc/stat",
            format!("during that time: {}", split.join(", ")),
        ),
        average(cores),
    ];
    let user = mean_in(case, &CORE_USER_RATIO, core, long);
    all.push(
        Evidence::speaks_for(
            "cores: /proc/stat",
            format!("user time was {}: not a user load", percent(user)),
        )
        .value(user),
    );
    all.extend(taken(case, core, long));
    all.extend(users.iter().take(MAX_NAMED).map(User::evidence));
    all.extend(match users.first() {
        Some(user) if user.had_it() => None,
        Some(_) => {
            let text = "no one process had most of it: they took turns";
            Some(Evidence::against("stacks", text))
        }
        None => Some(unnamed(case)),
    });
    all
}

/// Why no process is named.
fn unnamed(case: &Case<'_>) -> Evidence {
    match case.heard("stacks") {
        true => Evidence::missing(
            "stacks",
            "no process had a tenth of that core's kernel time over ten seconds",
        ),
        false => Evidence::missing("stacks", case.why_silent("stacks")),
    }
}

/// Time of the core that neither programs nor the kernel had.
fn taken(case: &Case<'_>, core: &Subject, long: &[&Stretch]) -> Vec<Evidence> {
    let facts = [
        (&CORE_STEAL_RATIO, "steal time was"),
        (&CORE_UNACCOUNTED_RATIO, "unaccounted time was"),
    ];
    let parts = facts.map(|(fact, what)| (mean_in(case, fact, core, long), what));
    let much = parts.into_iter().filter(|(part, _)| *part >= 0.05);
    much.map(|(part, what)| {
        let text = format!("{what} {} of the core", percent(part));
        Evidence::against("cores: /proc/stat", text).value(part)
    })
    .collect()
}

/// What hides such a core: the mean of all of them.
fn average(cores: &BTreeMap<&Subject, Vec<Share>>) -> Evidence {
    let length = |share: &Share| share.to.since(share.from).as_secs_f64();
    let mean = |shares: &Vec<Share>| {
        let had: f64 = shares.iter().map(|share| share.ratio * length(share)).sum();
        let all: f64 = shares.iter().map(length).sum();
        if all > 0.0 { had / all } else { 0.0 }
    };
    let all = cores.values().map(mean).sum::<f64>() / cores.len().max(1) as f64;
    let text = format!("average over all {} cores: {}", cores.len(), percent(all));
    Evidence::speaks_for("cores: /proc/stat", text).value(all)
}

/// The mean of a fact of a core in these stretches.
fn mean_in(case: &Case<'_>, fact: &'static Fact, core: &Subject, long: &[&Stretch]) -> f64 {
    let lost: Vec<_> = long
        .iter()
        .map(|stretch| (stretch.from, stretch.to))
        .collect();
    let samples: Vec<_> = case.samples(fact, core).collect();
    span::mean(&samples, &lost).unwrap_or(0.0)
}

fn remedies(core: &Subject, user: Option<&User>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if let Some(user) = user {
        let pid = &user.process.name;
        let look = Remedy::command(
            RemedyKind::Look,
            format!("Print the kernel stack of {}", user.comm),
            format!("sudo cat /proc/{pid}/stack"),
        );
        remedies.push(look.of_process(pid));
    }
    remedies.push(Remedy::command(
        RemedyKind::Look,
        "Profile that core",
        format!("sudo perf top -C {}", core.name),
    ));
    remedies
}

#[cfg(test)]
mod tests;
