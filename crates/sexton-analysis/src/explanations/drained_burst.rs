//! A burst of cgroups, after a deploy for instance, that drains by itself.

use sexton_model::diagnosis::{Explanation, Outcome};
use sexton_model::fact::memcg::MEMCG_DYING;
use sexton_model::finding::{Evidence, Finding};
use sexton_model::subject::Subject;

use super::{any_of, plays_a_part, ruled_out, told};
use crate::case::Case;
use crate::words::figures::count;

const NAME: &str = "a burst that already drained";

/// Counts that say whether it drains.
const ENOUGH: usize = 3;

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(findings, &["MCG001", "MCG003", "UNIT002", "CTR001"]) {
        return None;
    }
    let node = Subject::node();
    let counts = case.samples(&MEMCG_DYING, &node);
    let counts: Vec<f64> = counts.map(|(_, value)| value).collect();
    let most = counts.iter().copied().max_by(f64::total_cmp);
    let (Some(most), Some(last)) = (most, counts.last().copied()) else {
        let evidence = Evidence::missing("memcg", "dying memory cgroups were not counted");
        return told(NAME, Outcome::NotSeen, evidence);
    };
    let text = format!(
        "at most {} dying, {} at the end, from {} counts",
        count(most as u64),
        count(last as u64),
        counts.len()
    );
    match () {
        () if counts.len() < ENOUGH => {
            told(NAME, Outcome::NotSeen, Evidence::missing("memcg", text))
        }
        () if last <= most / 2.0 => {
            plays_a_part(NAME, Evidence::speaks_for("memcg", text).value(last))
        }
        () => ruled_out(NAME, Evidence::against("memcg", text).value(last)),
    }
}
