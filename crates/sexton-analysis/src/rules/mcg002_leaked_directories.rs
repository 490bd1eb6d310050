//! MCG002: live cgroup directories are leaked
//!
//! Means: a program creates cgroups and does not remove them. They are live, empty, old, and one
//! of many alike; or a thousand and more of them alike were made within the last hour and are
//! empty, which is a leak that goes on. They cost what dying ones cost, and also ids: at 65,535
//! live memory cgroups no more can be made.
//! Not this: dying cgroups, which have no directory (MCG001); the few empty ones that a
//! service keeps for its own order; cgroups that were just made and have a process in them.
//! By hand: `find /sys/fs/cgroup -depth -type d -mmin +60 -links 2` and look whether
//! `cgroup.procs` is empty.
//! Next: repair the program that creates them; `rmdir` removes empty ones.

use std::collections::{BTreeMap, BTreeSet};

use sexton_model::fact::Measure;
use sexton_model::fact::cgroup::CGROUP_BORN;
use sexton_model::fact::memcg as fact;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::creations::pattern_of;
use crate::evidence::origins::Origin;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures;

const CODE: &str = "MCG002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::MemoryCgroupLeak,
    title: "live cgroup directories are leaked",
    sees: "leaked cgroup directories",
    needs: &["memcg"],
    uses: &["cgroups"],
    is_essential: false,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[&FLOOR, &MANY, &FAST],
    source: include_str!("mcg002_leaked_directories.rs"),
    judge,
};

static FLOOR: Threshold = Threshold {
    rule: CODE,
    name: "floor",
    default: 110.0,
    range: (1.0, 65_535.0),
    unit: Measure::Count,
    why: "fewer leaked directories alike may be in order: kubelet runs up to 110 pods on a node \
          (maxPods) and keeps what of them has ended for a while. The census calls none leaked \
          that is younger than an hour, in use, or one of fewer than ten alike",
};

static MANY: Threshold = Threshold {
    rule: CODE,
    name: "many",
    default: 1_000.0,
    range: (1.0, 65_535.0),
    unit: Measure::Count,
    why: "these cost as much as the dying ones that MCG001 is about; the kernel has 65,535 ids \
          for live ones (MEM_CGROUP_ID_MAX)",
};

static FAST: Threshold = Threshold {
    rule: CODE,
    name: "fast",
    default: 1_000.0,
    range: (10.0, 65_535.0),
    unit: Measure::Count,
    why: "empty directories alike that were made within the last hour. A node of 110 pods, \
          kubelet's default, has about 500 cgroups, and a start fills each within seconds; at a \
          thousand an hour the kernel's 65,535 ids last less than three days",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    if case.latest(&fact::MEMCG_LEAKED, &Subject::node()).is_none() {
        return out.not_judged(CODE, "this census method does not show empty directories");
    }
    for origin in case.origins() {
        if origin.leaked as f64 >= case.limit(&FLOOR) {
            out.found(finding(case, origin));
        } else if origin.young_empty as f64 >= case.limit(&FAST) {
            out.found(growing(case, origin));
        }
    }
}

/// So many were made within the hour, and have nothing in them.
fn growing(case: &Case<'_>, origin: &Origin<'_>) -> Finding {
    let n = figures::count(origin.young_empty);
    let creator = creator(case, origin);
    let by = creator
        .as_ref()
        .map_or(String::new(), |(who, _)| format!("{who} made "));
    let mut evidence = vec![
        Evidence::speaks_for(
            "memcg: census",
            format!(
                "{n} of {} live ones are empty and were made within the last hour",
                figures::count(origin.live)
            ),
        )
        .value(origin.young_empty as f64)
        .at(origin.at),
    ];
    evidence.push(match &creator {
        Some((who, n)) => Evidence::speaks_for(
            "cgroups",
            format!("{who} made {} of them during the watch", figures::count(*n)),
        ),
        None => Evidence::missing("cgroups", "who made them: none was made during the watch"),
    });
    let whole = finding(case, origin);
    Finding {
        severity: Severity::Warning,
        confidence: Confidence::LIKELY,
        title: format!(
            "{by}{n} empty cgroup directories of {} within the last hour, all still there",
            origin.subject.name
        ),
        figure: format!("{n} made within the last hour"),
        evidence,
        ..whole
    }
}

/// Who made most of them during the watch, and how many: a process, or processes of one name, as
/// a script starts them.
fn creator(case: &Case<'_>, origin: &Origin<'_>) -> Option<(String, u64)> {
    let mut by_name: BTreeMap<&str, (BTreeSet<u32>, u64)> = BTreeMap::new();
    let mut all = 0;
    for event in case.events(&CGROUP_BORN) {
        if pattern_of(&event.subject.name) != origin.pattern {
            continue;
        }
        all += 1;
        if let (Some(comm), Some(pid)) = (&event.says.creator_comm, event.says.creator_pid) {
            let (pids, n) = by_name.entry(comm).or_default();
            pids.insert(pid);
            *n += 1;
        }
    }
    let (comm, (pids, n)) = by_name.into_iter().max_by_key(|(_, (_, n))| *n)?;
    let who = match pids.first() {
        Some(pid) if pids.len() == 1 => format!("{comm} (pid {pid})"),
        _ => format!("processes named {comm}"),
    };
    (n * 2 > all).then_some((who, n))
}

fn finding(case: &Case<'_>, origin: &Origin<'_>) -> Finding {
    let n = figures::count(origin.leaked);
    let place = &origin.subject.name;
    let is_many = origin.leaked as f64 >= case.limit(&MANY);
    let mut touched = origin.touched();
    touched.sort();
    touched.dedup();
    Finding {
        code: CODE,
        subject: origin.subject.clone(),
        severity: if is_many {
            Severity::Warning
        } else {
            Severity::Note
        },
        confidence: Confidence::LIKELY,
        title: format!("{n} leaked cgroup directories of {place}: empty, never removed"),
        figure: format!("{n} leaked"),
        since: None,
        evidence: vec![
            Evidence::speaks_for(
                "memcg: census",
                format!(
                    "{n} of {} live ones are empty, alike and older than an hour",
                    figures::count(origin.live)
                ),
            )
            .value(origin.leaked as f64)
            .at(origin.at),
            Evidence::missing("memcg: census", "whether their owner will use them again"),
        ],
        remedies: vec![Remedy::advice(
            RemedyKind::CleanUp,
            format!(
                "Remove the empty directories {place} with rmdir, deepest first; rmdir refuses those in use"
            ),
        )],
        touched,
        episodes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::record::Sink;
    use sexton_model::subject::SubjectKind;

    use super::*;
    use crate::testing;
    use crate::testing::{Watch, at};

    fn check(leaked: Option<u64>, expected: (usize, usize)) {
        let mut watch = Watch::new(100, 30);
        let mut out = Sink::new("memcg", at(100));
        let subject = Subject::new(SubjectKind::Cgroup, "/kubepods/<id>");
        if let Some(n) = leaked {
            out.sample(&Subject::node(), &fact::MEMCG_LEAKED, n as f64);
            let details = vec![
                ("live".into(), "3000".into()),
                ("leaked".into(), n.to_string()),
            ];
            out.event(
                at(100),
                &subject,
                &fact::MEMCG_ORIGIN,
                testing::read(details),
            );
        }
        watch.add(out);
        let findings = watch.judge(&RULE);
        let counts = (findings.findings.len(), findings.not_judged.len());
        assert_eq!(counts, expected, "{leaked:?}");
    }

    /// The finding that was missed: thousands of empty directories, none older than an hour.
    #[test]
    fn many_young_empty_ones_are_a_leak_that_goes_on() {
        let judged = |young: u64| {
            let mut watch = Watch::new(100, 30);
            let mut out = Sink::new("memcg", at(110));
            out.sample(&Subject::node(), &fact::MEMCG_LEAKED, 0.0);
            let subject = Subject::new(SubjectKind::Cgroup, "/jobs/run-<n>");
            let details = vec![
                ("example".into(), "/jobs/run-7".into()),
                ("live".into(), "5007".into()),
                ("leaked".into(), "0".into()),
                ("young_empty".into(), young.to_string()),
            ];
            let says = testing::read(details);
            out.event(at(110), &subject, &fact::MEMCG_ORIGIN, says);
            watch.add(out);
            let kept = (0..3).map(|i| testing::Churn {
                path: format!("/jobs/run-{i}"),
                creator: ("leaker.sh", 4711),
                ancestry: "",
                unit: None,
                is_released: false,
            });
            watch.add(testing::creations(105, kept));
            watch.judge(&RULE).findings
        };
        let found = judged(5_000);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(
            found[0].title,
            "leaker.sh (pid 4711) made 5,000 empty cgroup directories of /jobs/run-<n> within the \
             last hour, all still there"
        );
        assert_eq!(found[0].severity, Severity::Warning);
        // The pods of a node that has just started.
        assert!(judged(500).is_empty());
    }

    #[test]
    fn many_are_leaked_and_few_are_not() {
        check(Some(2_311), (1, 0));
        check(Some(11), (0, 0));
        check(None, (0, 1));
    }
}
