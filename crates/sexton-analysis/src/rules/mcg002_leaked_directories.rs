//! MCG002: live cgroup directories are leaked
//!
//! Means: a program creates cgroups and does not remove them. They are live, empty, old, and one
//! of many alike. They cost what dying ones cost, and also ids: at 65,535 live memory cgroups
//! no more can be made.
//! Not this: dying cgroups, which have no directory (MCG001); the few empty ones that a
//! service keeps for its own order.
//! By hand: `find /sys/fs/cgroup -depth -type d -mmin +60 -links 2` and look whether
//! `cgroup.procs` is empty.
//! Next: repair the program that creates them; `rmdir` removes empty ones.

use sexton_model::fact::Measure;
use sexton_model::fact::memcg as fact;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::origins::Origin;
use crate::rule::{Findings, Rule, Threshold};
use crate::words::figures;

const CODE: &str = "MCG002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    title: "live cgroup directories are leaked",
    needs: &["memcg"],
    uses: &["cgroups"],
    is_essential: false,
    is_cause: false,
    thresholds: &[&FLOOR, &MANY],
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

fn judge(case: &Case<'_>, out: &mut Findings) {
    if case.latest(&fact::MEMCG_LEAKED, &Subject::node()).is_none() {
        return out.not_judged(CODE, "this census method does not show empty directories");
    }
    for origin in case.origins() {
        if origin.leaked as f64 >= case.limit(&FLOOR) {
            out.found(finding(case, origin));
        }
    }
}

fn finding(case: &Case<'_>, origin: &Origin<'_>) -> Finding {
    let n = figures::count(origin.leaked);
    let place = &origin.subject.name;
    let is_many = origin.leaked as f64 >= case.limit(&MANY);
    let mut touched = vec![
        origin.subject.clone(),
        Subject::new(SubjectKind::Cgroup, origin.pattern.as_str()),
    ];
    touched.extend(
        origin
            .unit
            .as_deref()
            .map(|unit| Subject::new(SubjectKind::Unit, unit)),
    );
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

    #[test]
    fn many_are_leaked_and_few_are_not() {
        check(Some(2_311), (1, 0));
        check(Some(11), (0, 0));
        check(None, (0, 1));
    }
}
