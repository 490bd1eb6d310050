//! CPU005: time is stolen by the hypervisor, or the clock is throttled
//!
//! Means: the cores are there and run slower than they seem to. Either the hypervisor gave their
//! time to others (steal): the virtual machine is one of too many on its host, or it used its
//! CPU credits up. Or the processor lowers its own clock because it is too hot.
//! Not this: a busy node (CPU003) or a quota of a cgroup (CPU004). Steal is counted only while
//! a core has work: an idle node shows none, whatever its host does.
//! By hand: `mpstat -P ALL 1`, column %steal; `journalctl -k -g 'clock.*throttled'`.
//! Next: move the virtual machine to another host or take a type without CPU credits; have the
//! cooling of the machine checked.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::core::CORE_STEAL_RATIO;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::kernel_log::{self, Line, trust};
use crate::evidence::span::{self, earlier};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{before, count, percent, times};

const CODE: &str = "CPU005";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::CpuShort,
    title: "time is stolen by the hypervisor, or the clock is throttled",
    sees: "stolen CPU time",
    needs: &["cores"],
    uses: &["klog"],
    is_essential: true,
    least: Some(&LEAST_SECONDS),
    cause: Cause::Always,
    offer: Offer::NOTHING,
    thresholds: &[&STOLEN, &MUCH_STOLEN, &LEAST_SECONDS, &BEFORE],
    source: include_str!("cpu005_stolen.rs"),
    judge,
};

static STOLEN: Threshold = Threshold {
    rule: CODE,
    name: "stolen",
    default: 0.1,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "a tenth of the time of all cores in a minute: everything takes a ninth longer",
};

static MUCH_STOLEN: Threshold = Threshold {
    rule: CODE,
    name: "much_stolen",
    default: 0.3,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "a core that loses a third of its time is late for its own timers and interrupts, and what \
          runs there takes half as long again. Of one core it is a finding, of all it is serious",
};

static LEAST_SECONDS: Threshold = Threshold {
    rule: CODE,
    name: "least_seconds",
    default: 10.0,
    range: (1.0, 3600.0),
    unit: Measure::Seconds,
    why: "a neighbour's burst of a few seconds, or a migration to another host, is over by then",
};

static BEFORE: Threshold = Threshold {
    rule: CODE,
    name: "before",
    default: 600.0,
    range: (0.0, 604_800.0),
    unit: Measure::Seconds,
    why: "lines of the log count this long before the watch: the kernel repeats that the clock is \
          throttled at most every five minutes",
};

/// Lines that a finding shows.
const MAX_SHOWN: usize = 4;

fn judge(case: &Case<'_>, out: &mut Findings) {
    match stolen(case) {
        Some(stolen) if stolen.is_enough(case) => out.found(stolen.finding(case)),
        Some(_) => {}
        None => return out.not_judged(CODE, "no core was looked at twice"),
    }
    let began = case.window().map_or(case.now(), |window| *window.start());
    let since = earlier(began, Duration::from_secs_f64(case.limit(&BEFORE)));
    let lines = kernel_log::lines(case, &["cpu_throttled"]).into_iter();
    let lines: Vec<Line<'_>> = lines.filter(|line| line.at() >= since).collect();
    if !lines.is_empty() {
        out.found(too_hot(case, &lines));
    }
}

/// What the hypervisor took in the worst minute.
struct Stolen {
    /// Of all cores, and of the worst one.
    mean: f64,
    worst: (Subject, f64),
    from: Moment,
    to: Moment,
}

/// How much of a core's time was stolen in one minute.
#[derive(Default)]
struct Minute {
    stolen: f64,
    seconds: f64,
}

/// Over longer times what was bad for minutes is lost in the mean.
const MINUTE: Duration = Duration::from_secs(60);

/// Minute by minute from a moment on, how much of each core's time was stolen.
fn minutes<'a>(case: &Case<'a>, began: Moment) -> BTreeMap<u64, BTreeMap<&'a Subject, Minute>> {
    let mut minutes: BTreeMap<u64, BTreeMap<&Subject, Minute>> = BTreeMap::new();
    for (core, records) in case.by_subject(&CORE_STEAL_RATIO) {
        for pair in records.windows(2) {
            let (Some(part), at) = (pair[1].value(), pair[1].at) else {
                continue;
            };
            let seconds = at.since(pair[0].at).min(MOST_COVERED).as_secs_f64();
            let nth = pair[0].at.since(began).as_secs() / MINUTE.as_secs();
            let minute = minutes.entry(nth).or_default().entry(core).or_default();
            minute.stolen += part * seconds;
            minute.seconds += seconds;
        }
    }
    minutes
}

/// What is longer between two samples is a hole.
const MOST_COVERED: Duration = Duration::from_secs(5);

/// The worst minute; `None` when no core was looked at twice.
fn stolen(case: &Case<'_>) -> Option<Stolen> {
    let samples = case.of(&CORE_STEAL_RATIO);
    let (began, ended) = (samples.first()?.at, samples.last()?.at);
    let least = case.lasting(&LEAST_SECONDS).min(MINUTE).as_secs_f64();
    let mut all: Vec<Stolen> = Vec::new();
    for (nth, cores) in minutes(case, began) {
        let is_long = cores.values().any(|minute| minute.seconds + 0.5 >= least);
        // The last minute of a long watch may be a few seconds.
        if !is_long && nth > 0 {
            continue;
        }
        let parts = cores.iter().filter(|(_, minute)| minute.seconds > 0.0);
        let parts: Vec<(&Subject, f64)> = parts
            .map(|(core, minute)| (*core, minute.stolen / minute.seconds))
            .collect();
        let worst = parts
            .iter()
            .max_by(|a, b| a.1.total_cmp(&b.1).then_with(|| b.0.cmp(a.0)));
        let Some((core, part)) = worst else {
            continue;
        };
        let from = began.after(MINUTE * u32::try_from(nth).unwrap_or(u32::MAX));
        all.push(Stolen {
            worst: ((*core).clone(), *part),
            mean: parts.iter().map(|(_, part)| part).sum::<f64>() / parts.len() as f64,
            from,
            to: from.after(MINUTE).min(ended),
        });
    }
    all.into_iter().max_by(|a, b| {
        let by_mean = a.mean.total_cmp(&b.mean);
        by_mean.then_with(|| a.worst.1.total_cmp(&b.worst.1))
    })
}

impl Stolen {
    fn is_enough(&self, case: &Case<'_>) -> bool {
        let seconds = self.to.since(self.from).as_secs_f64();
        let is_much = self.is_everywhere(case) || self.worst.1 >= case.limit(&MUCH_STOLEN);
        is_much && seconds >= case.lasting(&LEAST_SECONDS).min(MINUTE).as_secs_f64()
    }

    fn is_everywhere(&self, case: &Case<'_>) -> bool {
        self.mean >= case.limit(&STOLEN)
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        const SOURCE: &str = "cores: /proc/stat";
        let (core, worst) = &self.worst;
        let of_all = format!("{} of the time of all cores", percent(self.mean));
        let of_worst = format!("{} of the time of core {}", percent(*worst), core.name);
        let is_everywhere = self.is_everywhere(case);
        let (subject, text, part) = match is_everywhere {
            true => (Subject::node(), of_all.clone(), self.mean),
            false => (core.clone(), of_worst.clone(), *worst),
        };
        Finding {
            code: CODE,
            severity: match self.mean >= case.limit(&MUCH_STOLEN) {
                true => Severity::Serious,
                false => Severity::Warning,
            },
            confidence: Confidence::CERTAIN,
            title: format!("the hypervisor took {text}"),
            figure: format!("{} stolen", percent(part)),
            since: Some(self.from),
            evidence: vec![
                Evidence::speaks_for(SOURCE, format!("it took {of_all}")).value(self.mean),
                Evidence::speaks_for(SOURCE, format!("it took {of_worst}, the worst one"))
                    .value(*worst),
            ],
            remedies: remedies(),
            touched: vec![Subject::node(), core.clone()],
            episodes: vec![Episode {
                from: self.from,
                to: self.to,
                touched: vec![core.clone()],
            }],
            subject,
        }
    }
}

fn remedies() -> Vec<Remedy> {
    vec![
        Remedy::advice(
            RemedyKind::Stop,
            "move the virtual machine to another host, or stop and start it: most clouds then \
             place it anew",
        ),
        Remedy::advice(
            RemedyKind::Prevent,
            "take a type of machine with cores of its own, or without CPU credits",
        ),
        Remedy::command(
            RemedyKind::Look,
            "see it for each core",
            "mpstat -P ALL 1 10",
        ),
    ]
}

/// The processor lowered its clock because of its temperature.
fn too_hot(case: &Case<'_>, lines: &[Line<'_>]) -> Finding {
    let mut cores: Vec<Subject> = lines.iter().filter_map(|line| line.core()).collect();
    cores.sort();
    cores.dedup();
    let last = lines.iter().map(|line| line.at()).max().unwrap_or_default();
    let subject = cores.first().cloned().unwrap_or_else(Subject::node);
    let where_ = match cores.len() {
        0 => String::new(),
        1 => format!(" of core {}", cores[0].name),
        n => format!(" of {} cores", count(n as u64)),
    };
    let text = format!("the kernel logged it {}", times(lines.len()));
    let mut evidence = vec![Evidence::speaks_for("klog", text).value(lines.len() as f64)];
    evidence.extend(
        lines
            .iter()
            .rev()
            .take(MAX_SHOWN)
            .map(|line| line.evidence()),
    );
    let episode = |line: &Line<'_>| Episode {
        from: line.at(),
        to: line.at(),
        touched: line.core().into_iter().collect(),
    };
    Finding {
        code: CODE,
        // Any program may write such a line.
        severity: match lines.iter().any(|line| line.is_of_kernel()) {
            true => Severity::Warning,
            false => Severity::Note,
        },
        confidence: trust(lines),
        title: format!(
            "the processor lowered the clock{where_} because it was too hot, last {}",
            before(case.now(), last)
        ),
        figure: "clock throttled".into(),
        since: lines.iter().map(|line| line.at()).min(),
        evidence,
        remedies: vec![
            Remedy::advice(
                RemedyKind::Prevent,
                "have fans, air flow and heat sink of the machine checked",
            ),
            Remedy::command(
                RemedyKind::Look,
                "see how often each core was throttled",
                "grep . /sys/devices/system/cpu/cpu*/thermal_throttle/*_count",
            ),
        ],
        episodes: span::longest(lines.iter().map(episode).collect()),
        touched: [vec![subject.clone()], cores].concat(),
        subject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::story::{Story, words};

    /// Cores that work, of which the hypervisor takes these parts.
    fn story<const N: usize>(parts: [f64; N], seconds: f64) -> Story {
        let mut story = Story::default();
        for (cpu, part) in (0..).zip(parts) {
            let mut at = 10.0;
            while at <= 10.0 + seconds {
                story = story.sample("cores", at, &Subject::cpu(cpu), &CORE_STEAL_RATIO, part);
                at += 1.0;
            }
        }
        story
    }

    #[test]
    fn stolen_time_is_told_by_how_much_it_is() {
        let found = story([0.7, 0.5], 20.0).found_by(&RULE);
        assert_eq!(found[0].id().as_str(), "CPU005:node");
        assert_eq!(found[0].severity, Severity::Serious);
        let said = words(&found[0]);
        assert!(
            said.contains("took 60 % of the time of all cores"),
            "{said}"
        );
        assert!(
            said.contains("it took 70 % of the time of core 0, the worst one"),
            "{said}"
        );
        let some = story([0.15, 0.1], 20.0).found_by(&RULE);
        assert_eq!(some[0].severity, Severity::Warning);
    }

    #[test]
    fn one_core_of_many_is_named() {
        let mut parts = [0.01; 64];
        parts[17] = 0.6;
        let found = story(parts, 20.0).found_by(&RULE);
        assert_eq!(found[0].id().as_str(), "CPU005:17");
        assert_eq!(
            found[0].title,
            "the hypervisor took 60 % of the time of core 17"
        );
        assert_eq!(found[0].severity, Severity::Warning);
    }

    #[test]
    fn a_bad_minute_is_seen_in_a_long_watch() {
        let mut story = story([0.0, 0.0], 1_800.0);
        for second in 0..70 {
            for cpu in 0..2 {
                let at = 1_810.0 + f64::from(second);
                story = story.sample("cores", at, &Subject::cpu(cpu), &CORE_STEAL_RATIO, 0.5);
            }
        }
        let found = story.found_by(&RULE);
        assert!(
            found[0].title.contains("of all cores"),
            "{}",
            found[0].title
        );
    }

    #[test]
    fn a_neighbours_burst_is_no_trouble() {
        assert!(story([0.03, 0.02], 30.0).found_by(&RULE).is_empty());
        let short = story([0.7, 0.5], 5.0).told_by(&RULE);
        assert!(short.findings.is_empty());
        assert_eq!(
            short.not_judged[0].because,
            "watched for 5.0 s, it takes 10 s to show"
        );
        // A watch of ten seconds shows it, though its first and last look see a part.
        assert!(story([0.0, 0.0], 10.0).told_by(&RULE).not_judged.is_empty());
        assert_eq!(story([0.7, 0.5], 10.0).found_by(&RULE).len(), 1);
        let told = Story::default().heard("cores", 1.0).told_by(&RULE);
        assert_eq!(told.not_judged.len(), 1);
    }

    #[test]
    fn a_clock_that_is_throttled_is_told_with_its_core() {
        let core = Subject::cpu(3);
        let found = story([0.0, 0.0], 30.0)
            .line(20.0, &core, "cpu_throttled", &[("cpu", "3")])
            .found_by(&RULE);
        assert_eq!(found[0].id().as_str(), "CPU005:3");
        assert!(
            found[0].title.contains("of core 3 because it was too hot"),
            "{}",
            found[0].title
        );
        // Any program may write such a line.
        let written = story([0.0, 0.0], 30.0)
            .line(
                20.0,
                &core,
                "cpu_throttled",
                &[("cpu", "3"), ("written_by", "userspace")],
            )
            .found_by(&RULE);
        assert_eq!(written[0].confidence, Confidence::WEAK);
        assert_eq!(written[0].severity, Severity::Note);
    }
}
