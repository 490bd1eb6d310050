//! One lockup of the kernel, with a cause of its own.

use sexton_model::diagnosis::Explanation;
use sexton_model::finding::{Evidence, Finding};

use super::{any_of, not_seen, plays_a_part, ruled_out};
use crate::case::Case;
use crate::evidence::kernel_log;
use crate::words::figures::before;

const NAME: &str = "a single lockup with another cause";

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(findings, &["NET001", "NIC001", "JOB001"]) {
        return None;
    }
    if !case.heard("klog") {
        return not_seen(case, NAME, "klog");
    }
    let lines = kernel_log::lines(case, &["soft_lockup", "hard_lockup", "rcu_stall"]);
    let Some(last) = lines.last() else {
        let text = "no lockup in the kernel log (the detector fires after 20 s)";
        return ruled_out(NAME, Evidence::against("klog", text));
    };
    let who = last.says().comm.as_deref().unwrap_or("what ran there");
    // A reader that is named by both is no other cause.
    let known = findings
        .iter()
        .filter(|finding| finding.code == "CPU002")
        .any(|finding| *finding.subject.name == *who);
    let text = format!(
        "the kernel reported a lockup of {who} {}",
        before(case.now(), last.at())
    );
    match known {
        true => ruled_out(
            NAME,
            Evidence::against("klog", format!("{text}: the same reader")),
        ),
        false => plays_a_part(NAME, Evidence::speaks_for("klog", text).at(last.at())),
    }
}
