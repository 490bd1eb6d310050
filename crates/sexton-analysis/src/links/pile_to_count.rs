//! A pile of dying cgroups is most of what is too many.

use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_LIVE};
use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::Subject;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::words::figures;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "MCG001",
    effect: "MCG003",
    meet,
};

/// A smaller part of the whole is not what makes it too many.
const LEAST_SHARE: f64 = 0.05;

fn meet(case: &Case<'_>, cause: &Finding, _: &Finding) -> Meeting {
    let node = Subject::node();
    let dying = case.latest(&MEMCG_DYING, &node).unwrap_or(0.0);
    // A pile that could only be counted is all of them.
    let own = case.latest(&MEMCG_DYING, &cause.subject);
    let own = own.unwrap_or_else(|| case.nameless().map_or(0.0, |_| dying));
    let total = dying + case.latest(&MEMCG_LIVE, &node).unwrap_or(0.0);
    let share = own / total.max(1.0);
    if share < LEAST_SHARE {
        return Meeting::Strangers;
    }
    let text = format!(
        "{} of the {} are these dying ones: {:.0} %",
        figures::count(own as u64),
        figures::count(total as u64),
        share * 100.0
    );
    let evidence = vec![Evidence::speaks_for("memcg: census", text).value(share)];
    let percent = (share * 100.0) as u8;
    Meeting::Joined(Confidence::percent(percent.clamp(25, 95)), evidence)
}
