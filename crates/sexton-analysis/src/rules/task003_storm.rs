//! TASK003: processes are created in a storm
//!
//! Means: one unit, container or program starts and ends hundreds of processes a second. To
//! start /bin/true and reap it took half a millisecond of a core where it was measured, a chain of
//! shells that execute each other 2.3 ms; at such rates that is where the node's time goes.
//! Not this: a build or a batch of short jobs, whose processes do more than start (a note, however
//! small the jobs are); one shell script that runs on one of many cores (a note). The rate is held
//! against the number of cores, and what it costs against all of their time.
//! By hand: `vmstat -f` twice, or the line `processes` of /proc/stat; then
//! `sudo bpftrace -e 'tracepoint:sched:sched_process_exec { @[comm, cgroup] = count(); }'`.
//! Next: the parent that the finding names: a loop without a pause, a health check that starts
//! a shell each time, a crash loop inside a supervisor.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::core::TASKS_CREATED;
use sexton_model::fact::exit::{PROCESS_MAKER, ProcessMaker};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::cpu_load::{self, Use};
use crate::evidence::makers;
use crate::evidence::owners;
use crate::evidence::span;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{count, percent, time};
use crate::words::process::pause;
use crate::words::unit_name::{journal, systemctl};

const CODE: &str = "TASK003";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::Tasks,
    title: "processes are created in a storm",
    sees: "fork storms",
    needs: &["exits"],
    uses: &["cores", "stacks"],
    is_essential: true,
    least: Some(&LEAST_SECONDS),
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&RATE, &HIGH_RATE, &WORK, &SHARE, &LEAST_SECONDS],
    source: include_str!("task003_storm.rs"),
    judge,
};

static RATE: Threshold = Threshold {
    rule: CODE,
    name: "rate",
    default: 50.0,
    range: (1.0, 100_000.0),
    unit: Measure::Count,
    why: "fewer exits a second, for each core of the node, are not looked at: compiling 12 C files \
          of 120 functions had 4 for each second of a core. At half a millisecond each, which \
          starting and reaping /bin/true takes, this many cost a fortieth of all cores",
};

static HIGH_RATE: Threshold = Threshold {
    rule: CODE,
    name: "high_rate",
    default: 300.0,
    range: (1.0, 100_000.0),
    unit: Measure::Count,
    why: "this many a second leave each at most 3.3 ms of a core: they do hardly more than start, \
          whatever else runs. The smallest jobs that were measured, compiling a C file of one line, \
          need 4.4 ms for each process",
};

static WORK: Threshold = Threshold {
    rule: CODE,
    name: "work",
    default: 0.003,
    range: (0.0001, 60.0),
    unit: Measure::Seconds,
    why: "processes that take more of a core than this, on average, do more than start: 4.4 ms each \
          for compiling a C file of one line, 230 ms for one of 120 functions; /bin/true takes \
          0.5 ms, a chain of three shells and programs that execute each other 2.3 ms",
};

static SHARE: Threshold = Threshold {
    rule: CODE,
    name: "share",
    default: 0.6,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "a storm whose processes have this part of all cores leaves little for others. One script \
          has one core at most, half of a node with two",
};

static LEAST_SECONDS: Threshold = Threshold {
    rule: CODE,
    name: "least_seconds",
    default: 8.0,
    range: (2.0, 3600.0),
    unit: Measure::Seconds,
    why: "a script that configures a build, or a package that is installed, starts as many for a \
          few seconds",
};

/// The part of all exits that must be one maker's, unless its rate is high by itself.
const MOST: f64 = 0.5;

/// Names of children that a finding shows.
const MAX_NAMED: usize = 3;

/// One that makes processes, and what was seen of it.
#[derive(Default)]
struct Maker<'a> {
    events: Vec<Event<'a, ProcessMaker>>,
    /// Its part of all exits.
    part: f64,
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    let used = Use::of(case);
    let n_cores = used.n_cores.max(1) as f64;
    let mut by_owner: BTreeMap<Subject, Maker<'_>> = BTreeMap::new();
    let mut orphans: BTreeMap<Moment, u64> = BTreeMap::new();
    for event in case.events(&PROCESS_MAKER) {
        let owner = makers::maker_owner(event.says);
        if makers::is_orphanage(event.subject, &owner) {
            *orphans.entry(event.at).or_default() += event.says.n;
        } else {
            by_owner.entry(owner).or_default().events.push(event);
        }
    }
    for (owner, mut maker) in by_owner {
        let fast = case.limit(&RATE) * n_cores;
        maker.keep_fast(fast);
        let least = case.lasting(&LEAST_SECONDS);
        maker.part = maker.part_of_all(&orphans);
        // Two of them at once are two storms, though neither has most of all exits.
        let is_high = maker.rate() >= case.limit(&HIGH_RATE) * n_cores;
        if maker.length() >= least && (maker.part >= MOST || is_high) {
            out.found(maker.finding(case, &owner, n_cores));
        }
    }
}

impl Maker<'_> {
    /// What was told, by moment: exits of this maker, all exits, and the time they took.
    fn seconds(&self) -> BTreeMap<Moment, (u64, u64, u64)> {
        let mut seconds: BTreeMap<Moment, (u64, u64, u64)> = BTreeMap::new();
        for event in &self.events {
            let told = seconds.entry(event.at).or_default();
            told.0 += event.says.n;
            (told.1, told.2) = (event.says.n_all, event.says.interval_ns);
        }
        seconds
    }

    /// Leaves only the seconds in which it made at least this many.
    fn keep_fast(&mut self, least: f64) {
        let seconds = self.seconds();
        self.events.retain(|event| {
            let (n, _, ns) = seconds[&event.at];
            n as f64 >= least * ns as f64 / 1e9
        });
    }

    fn length(&self) -> Duration {
        let ns = self.seconds().values().map(|(.., ns)| *ns).sum();
        Duration::from_nanos(ns)
    }

    /// Its part of all exits but those of processes that have lost their parent: these tell
    /// nothing of who made them.
    fn part_of_all(&self, orphans: &BTreeMap<Moment, u64>) -> f64 {
        let seconds = self.seconds();
        let own: u64 = seconds.values().map(|(n, ..)| n).sum();
        let all = seconds.iter().map(|(at, (_, all, _))| {
            let lost = orphans.get(at).copied().unwrap_or(0);
            all.saturating_sub(lost)
        });
        let all: u64 = all.sum();
        own as f64 / all.max(1) as f64
    }

    fn n(&self) -> u64 {
        self.events.iter().map(|event| event.says.n).sum()
    }

    /// Exits a second.
    fn rate(&self) -> f64 {
        self.n() as f64 / self.length().as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn spans(&self) -> Vec<(Moment, Moment)> {
        let seconds = self.seconds().into_iter();
        let spans =
            seconds.map(|(at, (_, _, ns))| (span::earlier(at, Duration::from_nanos(ns)), at));
        spans.collect()
    }

    /// Names of the parents, the one with most children first.
    fn parents(&self) -> Vec<&str> {
        ranked(
            self.events
                .iter()
                .map(|event| (event.says.comm.as_deref(), event.says.n)),
        )
    }

    fn children(&self) -> Vec<&str> {
        ranked(
            self.events
                .iter()
                .map(|event| (event.says.child_comm.as_deref(), event.says.n)),
        )
    }

    /// The parent, where it was one and the same all the time.
    fn parent(&self) -> Option<&Subject> {
        let parents: BTreeSet<&Subject> = self.events.iter().map(|event| event.subject).collect();
        match parents.into_iter().collect::<Vec<_>>()[..] {
            [parent] if &*parent.name != "1" => Some(parent),
            _ => None,
        }
    }

    fn finding(&self, case: &Case<'_>, owner: &Subject, n_cores: f64) -> Finding {
        let spans = self.spans();
        let consumers = cpu_load::consumers(case, &spans);
        let names: BTreeSet<&str> = [self.parents(), self.children()]
            .concat()
            .into_iter()
            .collect();
        let own: Vec<_> = consumers
            .iter()
            .filter(|one| {
                let is_name =
                    one.owner.kind == SubjectKind::Task && names.contains(&*one.owner.name);
                one.owner == *owner || is_name
            })
            .collect();
        let cores: f64 = own.iter().map(|one| one.cores).sum();
        let kernel: f64 = own.iter().map(|one| one.kernel_cores).sum();
        let share = cores / n_cores;
        let each = cores / self.rate().max(f64::MIN_POSITIVE);
        let is_costly = share >= case.limit(&SHARE) && each <= case.limit(&WORK);
        let is_trouble = is_costly || self.rate() >= case.limit(&HIGH_RATE) * n_cores;
        let mut touched = vec![owner.clone()];
        touched.extend(self.parent().cloned());
        Finding {
            code: CODE,
            subject: owner.clone(),
            severity: match is_trouble {
                true => Severity::Warning,
                false => Severity::Note,
            },
            confidence: Confidence::CERTAIN,
            title: self.title(owner),
            figure: format!("{} processes/s", count(self.rate() as u64)),
            since: spans.first().map(|(from, _)| *from),
            evidence: self.evidence(case, (share, kernel / n_cores, each), &spans),
            remedies: self.remedies(owner),
            episodes: span::longest(
                spans
                    .iter()
                    .map(|(from, to)| Episode {
                        from: *from,
                        to: *to,
                        touched: touched.clone(),
                    })
                    .collect(),
            ),
            touched,
        }
    }

    fn title(&self, owner: &Subject) -> String {
        let parent = match (self.parent(), self.parents().first()) {
            (Some(pid), Some(comm)) if **comm == *owner.name => format!(" (pid {})", pid.name),
            (Some(pid), Some(comm)) => format!(" ({comm}, pid {})", pid.name),
            (None, Some(comm)) if **comm != *owner.name => format!(" ({comm})"),
            _ => String::new(),
        };
        let what = self
            .children()
            .first()
            .map_or(String::new(), |comm| format!(", most of them {comm}"));
        format!(
            "{}{parent} starts {} processes a second{what}",
            owners::words(owner),
            count(self.rate() as u64)
        )
    }

    fn evidence(
        &self,
        case: &Case<'_>,
        (share, kernel, each): (f64, f64, f64),
        spans: &[(Moment, Moment)],
    ) -> Vec<Evidence> {
        let n_short: u64 = self.events.iter().map(|event| event.says.n_short).sum();
        let text = format!(
            "{} of its processes exited in {}, {} of all that did",
            count(self.n()),
            time(self.length()),
            percent(self.part)
        );
        let mut all = vec![Evidence::speaks_for("exits", text).value(self.rate())];
        let text = format!(
            "{} of them had run for less than a second",
            percent(n_short as f64 / self.n().max(1) as f64)
        );
        all.push(Evidence::speaks_for("exits", text));
        let names: Vec<&str> = self.children().into_iter().take(MAX_NAMED).collect();
        if !names.is_empty() {
            let text = format!("last seen among them: {}", names.join(", "));
            all.push(Evidence::speaks_for("exits", text));
        }
        all.extend(created(case, spans).map(|rate| {
            let text = format!(
                "the kernel created {} processes and threads a second meanwhile",
                count(rate as u64)
            );
            Evidence::speaks_for("cores: processes in /proc/stat", text).value(rate)
        }));
        all.push(match case.heard("stacks") {
            true => {
                let text = format!(
                    "they had {} of all cores, and of these {} in the kernel",
                    percent(share),
                    percent(kernel / share.max(f64::MIN_POSITIVE))
                );
                match share >= case.limit(&SHARE) {
                    true => Evidence::speaks_for("stacks", text).value(share),
                    false => Evidence::against("stacks", text).value(share),
                }
            }
            false => Evidence::missing("stacks", case.why_silent("stacks")),
        });
        if each > 0.0 {
            let text = format!("each of them took {:.1} ms of a core", each * 1e3);
            all.push(match each <= case.limit(&WORK) {
                true => Evidence::speaks_for("exits, stacks", text).value(each),
                false => Evidence::against("exits, stacks", text).value(each),
            });
        }
        all
    }

    fn remedies(&self, owner: &Subject) -> Vec<Remedy> {
        let mut remedies = Vec::new();
        if owner.kind == SubjectKind::Unit {
            let unit = &owner.name;
            remedies.push(Remedy::command(
                RemedyKind::Stop,
                format!("stop {unit}"),
                systemctl("stop", unit),
            ));
            remedies.push(Remedy::command(
                RemedyKind::Look,
                format!("see what {unit} logs"),
                journal(unit),
            ));
        } else if let Some(parent) = self.parent() {
            let pause = Remedy::command(
                RemedyKind::Stop,
                "pause the parent (host PID)",
                pause(&parent.name),
            );
            remedies.push(pause.of_process(&parent.name));
        }
        remedies.push(Remedy::advice(
            RemedyKind::Prevent,
            "have it pause between two processes, or do the work without starting one",
        ));
        remedies.push(Remedy::command(
            RemedyKind::Look,
            "count what is started, by parent",
            "sudo timeout 10 bpftrace -e \
             'tracepoint:sched:sched_process_fork { @[args->parent_comm] = count(); }'",
        ));
        remedies
    }
}

/// Names by how much they stand for.
fn ranked<'a>(told: impl Iterator<Item = (Option<&'a str>, u64)>) -> Vec<&'a str> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, n) in told {
        if let Some(name) = name {
            *sums.entry(name).or_default() += n;
        }
    }
    let mut names: Vec<(&str, u64)> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    names.into_iter().map(|(name, _)| name).collect()
}

/// Tasks that the kernel created a second, from the first to the last of these spans.
fn created(case: &Case<'_>, spans: &[(Moment, Moment)]) -> Option<f64> {
    let (from, to) = (spans.first()?.0, spans.last()?.1);
    let node = Subject::node();
    let samples = case.samples(&TASKS_CREATED, &node);
    let samples: Vec<_> = samples.filter(|(at, _)| from <= *at && *at <= to).collect();
    let (first, last) = (samples.first()?, samples.last()?);
    let seconds = last.0.since(first.0).as_secs_f64();
    (seconds > 0.0).then(|| (last.1 - first.1) / seconds)
}

#[cfg(test)]
mod tests;
