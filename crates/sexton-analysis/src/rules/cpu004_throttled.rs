//! CPU004: a cgroup is throttled by its CPU quota
//!
//! Means: a unit, container or cgroup used its CPU quota up in most periods (of 100 ms, as a
//! rule) and stood still until the next, although cores may have been free. What it serves is
//! late by these pauses.
//! Not this: a quota that is used up now and then; a node without free cores (CPU003); batch
//! work that a quota is meant to hold back, which only its owner can tell: the finding says how
//! much of the periods it was, and stays a warning.
//! By hand: `grep -E 'nr_periods|nr_throttled' /sys/fs/cgroup/<cgroup>/cpu.stat`, twice.
//! Next: raise the quota (`CPUQuota=`, `docker update --cpus`, `resources.limits.cpu`), or have
//! the program start fewer threads than the quota has cores.

use std::time::Duration;

use sexton_model::fact::Measure;
use sexton_model::fact::pressure::{
    CPU_QUOTA_CGROUPS, CPU_QUOTA_CORES, CPU_THROTTLED_RATIO, PRESSURE_CPU_FULL_RATIO,
};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::evidence::cpu_load::Use;
use crate::evidence::owners::{self, Place};
use crate::evidence::span;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{percent, plural, time};
use crate::words::unit_name::systemctl;

const CODE: &str = "CPU004";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::CpuShort,
    title: "a cgroup is throttled by its CPU quota",
    sees: "CPU throttling",
    // Which of the first two it was depends on how old the recording is.
    needs: &[],
    uses: &["contention", "pressure", "cores"],
    is_essential: false,
    least: None,
    cause: Cause::WhenNamed,
    offer: Offer::NOTHING,
    thresholds: &[&PERIODS, &NOTABLE, &LEAST_SECONDS],
    source: include_str!("cpu004_throttled.rs"),
    judge,
};

static PERIODS: Threshold = Threshold {
    rule: CODE,
    name: "periods",
    default: 0.5,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "a cgroup that is stopped in every second period is late with half of what it does. Twice \
          the share at which the alert CPUThrottlingHigh of kubernetes-mixin begins",
};

static NOTABLE: Threshold = Threshold {
    rule: CODE,
    name: "notable",
    default: 0.25,
    range: (0.01, 1.0),
    unit: Measure::Ratio,
    why: "from a quarter of the periods on it is a note: where the alert CPUThrottlingHigh of \
          kubernetes-mixin begins, of severity info",
};

static LEAST_SECONDS: Threshold = Threshold {
    rule: CODE,
    name: "least_seconds",
    default: 10.0,
    range: (1.0, 3600.0),
    unit: Measure::Seconds,
    why: "less is the start of a program, which takes more CPU than its work does; 10 s are a \
          hundred periods",
};

/// Findings that are made; the rest is counted on the last of them.
const MAX_FINDINGS: usize = 8;

/// One cgroup and what its quota did.
struct Throttled<'a> {
    cgroup: &'a Subject,
    owner: Subject,
    /// The part of the periods, and the time over which that was seen.
    part: f64,
    seen: Duration,
    from: Moment,
    to: Moment,
    quota: Option<f64>,
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    if case.latest(&CPU_QUOTA_CGROUPS, &Subject::node()).is_none() {
        return out.not_judged(CODE, unread(case));
    }
    let least = Duration::from_secs_f64(case.limit(&LEAST_SECONDS));
    let mut all: Vec<Throttled<'_>> = case
        .by_subject(&CPU_THROTTLED_RATIO)
        .into_keys()
        .filter_map(|cgroup| throttled(case, cgroup))
        .filter(|one| one.part >= case.limit(&NOTABLE) && one.seen >= least)
        .collect();
    all.sort_by(|a, b| {
        b.part
            .total_cmp(&a.part)
            .then_with(|| a.cgroup.cmp(b.cgroup))
    });
    // A quota of a pod stops its containers too: the narrowest that is told says it.
    let paths: Vec<String> = all
        .iter()
        .map(|one| format!("{}/", one.cgroup.name))
        .collect();
    all.retain(|one| {
        let own = format!("{}/", one.cgroup.name);
        !paths
            .iter()
            .any(|path| *path != own && path.starts_with(&own))
    });
    let n_left = all.len().saturating_sub(MAX_FINDINGS);
    all.truncate(MAX_FINDINGS);
    for (i, one) in all.iter().enumerate() {
        let mut finding = one.finding(case);
        if n_left > 0 && i + 1 == all.len() {
            let text = format!(
                "throttled as well: {}",
                plural(n_left as u64, "more cgroup")
            );
            finding
                .evidence
                .push(Evidence::speaks_for("contention: cpu.stat", text));
        }
        out.found(finding);
    }
}

/// Why no quota is known. Before there was the sensor `contention`, `pressure` read them.
fn unread(case: &Case<'_>) -> String {
    let sensor = match case.had("contention") {
        true => "contention",
        false => "pressure",
    };
    match case.heard(sensor) {
        true => "cpu.stat of no cgroup could be read".to_owned(),
        false => case.why_silent(sensor),
    }
}

/// What the quota of a cgroup did over the window.
fn throttled<'a>(case: &Case<'a>, cgroup: &'a Subject) -> Option<Throttled<'a>> {
    let samples: Vec<_> = case.samples(&CPU_THROTTLED_RATIO, cgroup).collect();
    let (first, last) = (samples.first()?, samples.last()?);
    // A sample is of the periods since the one before.
    let every = samples
        .get(1)
        .map_or(Duration::ZERO, |next| next.0.since(first.0));
    let from = span::earlier(first.0, every);
    let place = Place {
        cgroup: Some(&cgroup.name),
        comm: &cgroup.name,
        ..Place::default()
    };
    Some(Throttled {
        cgroup,
        owner: place.owner(),
        part: span::mean(&samples, &[span::EVER])?,
        seen: last.0.since(from),
        from,
        to: last.0,
        quota: case.latest(&CPU_QUOTA_CORES, cgroup),
    })
}

impl Throttled<'_> {
    fn finding(&self, case: &Case<'_>) -> Finding {
        let who = owners::words(&self.owner);
        let quota = self.quota.map_or(String::new(), |cores| {
            format!(" of {}", cores_in_words(cores))
        });
        let is_much = self.part >= case.limit(&PERIODS);
        Finding {
            code: CODE,
            subject: self.owner.clone(),
            severity: match is_much {
                true => Severity::Warning,
                false => Severity::Note,
            },
            confidence: Confidence::CERTAIN,
            title: format!(
                "{who} used up its CPU quota{quota} in {} of the periods and had to pause",
                percent(self.part)
            ),
            figure: format!("throttled in {} of the periods", percent(self.part)),
            since: Some(self.from),
            evidence: self.evidence(case),
            remedies: self.remedies(),
            touched: vec![self.owner.clone(), self.cgroup.clone()],
            episodes: vec![Episode {
                from: self.from,
                to: self.to,
                touched: vec![self.owner.clone()],
            }],
        }
    }

    fn evidence(&self, case: &Case<'_>) -> Vec<Evidence> {
        let text = format!(
            "cgroup {} used its quota up in {} of the periods over {}",
            self.cgroup.name,
            percent(self.part),
            time(self.seen)
        );
        let mut all = vec![Evidence::speaks_for("contention: cpu.stat", text).value(self.part)];
        all.push(match self.quota {
            Some(cores) => {
                let text = format!("its quota is {}", cores_in_words(cores));
                Evidence::speaks_for("contention: cpu.max", text).value(cores)
            }
            None => Evidence::missing("contention: cpu.max", "its quota was not recorded"),
        });
        let full: Vec<_> = case
            .samples(&PRESSURE_CPU_FULL_RATIO, self.cgroup)
            .collect();
        all.extend(span::mean(&full, &[(self.from, self.to)]).map(|full| {
            let text = format!("all of its tasks stood still {} of the time", percent(full));
            Evidence::speaks_for("pressure: cpu.pressure", text).value(full)
        }));
        let used = Use::of(case);
        if used.is_known() {
            let free = (1.0 - used.mean(&[(self.from, self.to)])).max(0.0);
            let text = format!(
                "{} of all cores had no work of ordinary priority meanwhile",
                percent(free)
            );
            all.push(Evidence::speaks_for("cores: /proc/stat", text).value(free));
        }
        all
    }

    fn remedies(&self) -> Vec<Remedy> {
        let name = &self.owner.name;
        let mut remedies = Vec::new();
        match self.owner.kind {
            SubjectKind::Unit => {
                let set = systemctl("set-property --runtime", name);
                remedies.push(Remedy::command(
                    RemedyKind::Stop,
                    format!("lift the quota of {name} until the next boot"),
                    format!("{set} CPUQuota="),
                ));
                remedies.push(Remedy::advice(
                    RemedyKind::Prevent,
                    format!("raise CPUQuota= of {name}, or have it do less at once"),
                ));
            }
            SubjectKind::Container => {
                let more = self.quota.map_or(1.0, |cores| (cores * 2.0).max(0.1));
                remedies.push(Remedy::command(
                    RemedyKind::Stop,
                    "double the CPU limit of the container (Docker)",
                    format!("docker update --cpus {more:.1} {}", shell_word(name)),
                ));
                remedies.push(Remedy::advice(
                    RemedyKind::Prevent,
                    "raise resources.limits.cpu of the pod, or the --cpus of the container",
                ));
            }
            _ => remedies.push(Remedy::advice(
                RemedyKind::Prevent,
                "raise the quota of the cgroup (cpu.max, or cpu.cfs_quota_us)",
            )),
        }
        remedies.push(Remedy::command(
            RemedyKind::Look,
            "see its periods, and how many of them it was throttled in",
            format!(
                "cat /sys/fs/cgroup{{,/cpu}}{}/cpu.stat 2> /dev/null",
                shell_word(&self.cgroup.name)
            ),
        ));
        remedies
    }
}

/// `0.2 cores`, `1 core`.
fn cores_in_words(cores: f64) -> String {
    match cores {
        c if (c - 1.0).abs() < 0.005 => "1 core".into(),
        c if c < 0.1 => format!("{c:.2} cores"),
        c => format!("{} cores", (c * 10.0).round() / 10.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::story::{Story, subject, words};

    /// A unit whose quota stops it in these parts of the periods, told every 5 s.
    fn story(parts: &[f64]) -> Story {
        let cgroup = subject(SubjectKind::Cgroup, "/system.slice/api.service");
        let mut story = Story::default().core(0, (10.0, 40.0), (0.02, 0.1)).sample(
            "pressure",
            10.0,
            &Subject::node(),
            &CPU_QUOTA_CGROUPS,
            1.0,
        );
        for (i, part) in parts.iter().enumerate() {
            let seconds = 15.0 + 5.0 * i as f64;
            story = story
                .sample("pressure", seconds, &cgroup, &CPU_THROTTLED_RATIO, *part)
                .sample("pressure", seconds, &cgroup, &CPU_QUOTA_CORES, 0.2);
        }
        story
    }

    fn severity(parts: &[f64]) -> Option<Severity> {
        let found = story(parts).found_by(&RULE);
        found.first().map(|finding| finding.severity)
    }

    #[test]
    fn a_unit_that_is_stopped_in_most_periods_is_named_with_its_quota() {
        let found = story(&[0.9, 1.0, 0.95, 1.0]).found_by(&RULE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].id().as_str(), "CPU004:api.service");
        assert_eq!(found[0].severity, Severity::Warning);
        let said = words(&found[0]);
        assert!(
            said.contains("its CPU quota of 0.2 cores in 96 %"),
            "{said}"
        );
        let commands = found[0]
            .remedies
            .iter()
            .filter_map(|one| one.command.as_deref());
        let commands: Vec<&str> = commands.collect();
        assert!(
            commands[0].contains("set-property --runtime api.service CPUQuota="),
            "{commands:?}"
        );
    }

    #[test]
    fn a_quota_that_is_used_up_now_and_then_is_no_trouble() {
        assert_eq!(severity(&[0.0, 0.3, 0.1, 0.0]), None);
        // The start of a program.
        assert_eq!(severity(&[1.0, 0.1, 0.0, 0.0, 0.0, 0.0]), None);
        assert_eq!(severity(&[0.9]), None);
        assert_eq!(severity(&[0.4, 0.3, 0.35, 0.3]), Some(Severity::Note));
    }

    #[test]
    fn of_a_pod_and_its_container_the_container_is_told() {
        let mut story = story(&[]);
        let pod = "/kubepods.slice/kubepods-pod1.slice";
        let container = format!("{pod}/cri-containerd-{}.scope", "0a".repeat(32));
        for seconds in [15.0, 20.0, 25.0] {
            for path in [pod, &container] {
                let cgroup = subject(SubjectKind::Cgroup, path);
                story = story.sample("pressure", seconds, &cgroup, &CPU_THROTTLED_RATIO, 0.9);
            }
        }
        let found = story.found_by(&RULE);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].subject.kind, SubjectKind::Container);
    }

    #[test]
    fn without_quotas_to_read_it_is_not_judged() {
        for sensor in ["pressure", "contention"] {
            let told = Story::default().heard(sensor, 1.0).told_by(&RULE);
            assert_eq!(told.not_judged.len(), 1, "{sensor}");
            assert!(told.not_judged[0].because.contains("cpu.stat"), "{sensor}");
        }
    }

    /// As on a kernel that was booted with psi=0.
    #[test]
    fn it_needs_no_pressure() {
        let quotas = |sensor: &'static str| {
            let cgroup = subject(SubjectKind::Cgroup, "/system.slice/api.service");
            let node = Subject::node();
            let story = Story::default().sample(sensor, 10.0, &node, &CPU_QUOTA_CGROUPS, 1.0);
            [15.0, 20.0, 25.0].into_iter().fold(story, |story, at| {
                story.sample(sensor, at, &cgroup, &CPU_THROTTLED_RATIO, 0.9)
            })
        };
        // Recordings from before there was that sensor have it from another.
        for sensor in ["contention", "pressure"] {
            let found = quotas(sensor).found_by(&RULE);
            assert_eq!(found.len(), 1, "{sensor}");
        }
    }
}
