//! MCG003: there are too many memory cgroups
//!
//! Means: the kernel tracks more memory cgroups than this node can use, live and dying
//! together. Every one costs kernel memory, and reclaim walks them all.
//! Not this: a node that really runs that many containers; then most of them are live.
//! By hand: the third column of `memory` in `/proc/cgroups`, against the number of
//! directories of the memory hierarchy.
//! Next: `sexton zombies`, which says whose they are.

use sexton_model::fact::Measure;
use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_LIVE};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures;

const CODE: &str = "MCG003";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::MemoryCgroupLeak,
    title: "there are too many memory cgroups",
    sees: "number of memory cgroups",
    needs: &["memcg"],
    uses: &[],
    is_essential: false,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[&MOST, &MOST_PER_LIVE],
    source: include_str!("mcg003_too_many.rs"),
    judge,
};

static MOST: Threshold = Threshold {
    rule: CODE,
    name: "most",
    default: 1_000.0,
    range: (1.0, 1e9),
    unit: Measure::Count,
    why: "more memory cgroups than this are looked at; the gate that the founding incident's \
          engineers put into their pipeline",
};

static MOST_PER_LIVE: Threshold = Threshold {
    rule: CODE,
    name: "most_per_live",
    default: 4.0,
    range: (1.0, 1e6),
    unit: Measure::Ratio,
    why: "a larger ratio to live ones is not normal use; the founding incident had 286",
};

fn judge(case: &Case<'_>, out: &mut Findings) {
    let node = Subject::node();
    let live = case.latest(&MEMCG_LIVE, &node);
    let dying = case.latest(&MEMCG_DYING, &node);
    let (Some(live), Some(dying)) = (live, dying) else {
        return out.not_judged(
            CODE,
            "the counts do not separate live from dying memory cgroups",
        );
    };
    let total = live + dying;
    let per_live = total / live.max(1.0);
    if total <= case.limit(&MOST) || per_live <= case.limit(&MOST_PER_LIVE) {
        return;
    }
    out.found(Finding {
        code: CODE,
        subject: node.clone(),
        severity: Severity::Warning,
        confidence: Confidence::CERTAIN,
        title: format!(
            "the kernel tracks {} memory cgroups, {} of them live",
            figures::count(total as u64),
            figures::count(live as u64)
        ),
        figure: format!(
            "{} tracked, {} live",
            figures::count(total as u64),
            figures::count(live as u64)
        ),
        since: None,
        evidence: vec![
            Evidence::speaks_for("memcg", format!("{live} live, {dying} dying")).value(total),
        ],
        remedies: vec![Remedy::command(
            RemedyKind::Look,
            "List their origins and what pins them",
            "sudo sexton zombies",
        )],
        touched: vec![node],
        episodes: Vec::new(),
    });
}

#[cfg(test)]
mod tests {
    use sexton_model::moment::Moment;
    use sexton_model::record::Sink;
    use sexton_model::timeline::Records;

    use super::*;
    use crate::policy::Policy;

    fn check(live: Option<f64>, dying: Option<f64>, n_findings: usize, n_not_judged: usize) {
        let mut out = Sink::new("memcg", Moment::from_ns(1));
        for (fact, value) in [(&MEMCG_LIVE, live), (&MEMCG_DYING, dying)] {
            if let Some(value) = value {
                out.sample(&Subject::node(), fact, value);
            }
        }
        let records = Records::new(out.into_records());
        let policy = Policy::default();
        let mut findings = Findings::default();
        RULE.apply(&Case::new(&records, &policy), &mut findings);
        assert_eq!(findings.findings.len(), n_findings);
        assert_eq!(findings.not_judged.len(), n_not_judged);
    }

    #[test]
    fn many_dying_for_few_live_are_too_many() {
        check(Some(240.0), Some(68_440.0), 1, 0);
    }

    #[test]
    fn many_live_ones_are_not() {
        check(Some(5_000.0), Some(900.0), 0, 0);
        check(Some(90.0), Some(900.0), 0, 0);
    }

    #[test]
    fn what_is_not_seen_is_not_judged() {
        check(Some(240.0), None, 0, 1);
        check(None, None, 0, 1);
    }
}
