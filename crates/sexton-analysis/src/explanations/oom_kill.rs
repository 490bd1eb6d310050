//! The kernel killed something for want of memory.

use std::time::Duration;

use sexton_model::diagnosis::Explanation;
use sexton_model::finding::{Evidence, Finding};
use sexton_model::moment::Moment;

use super::{any_of, not_seen, plays_a_part, ruled_out};
use crate::case::Case;
use crate::evidence::oom_kills::{self, OomKill};
use crate::evidence::span::earlier;
use crate::words::figures::{before, times};

const NAME: &str = "oom kill";

/// A kill that is older explains nothing of what happens now.
const RECENT: Duration = Duration::from_secs(600);

pub(super) fn weigh(case: &Case<'_>, findings: &[Finding]) -> Option<Explanation> {
    if !any_of(
        findings,
        &["JOB001", "NIC001", "CPU001", "UNIT001", "UNIT003", "CTR001"],
    ) {
        return None;
    }
    if !case.heard("klog") && !case.heard("exits") {
        return not_seen(case, NAME, "klog");
    }
    let kills = oom_kills::of(case, earlier(case.now(), RECENT));
    let times_of = |kill: &OomKill<'_>| (kill.at, kill.n as usize);
    let kills: Vec<(Moment, usize)> = kills.iter().map(times_of).collect();
    let recent = kills
        .iter()
        .filter(|(at, _)| case.now().since(*at) <= RECENT);
    let recent: usize = recent.map(|(_, n)| n).sum();
    match (recent, kills.iter().map(|(at, _)| at).max()) {
        (0, None) => {
            let text = "no OOM kill in the kernel log";
            ruled_out(NAME, Evidence::against("klog, exits", text))
        }
        (0, Some(last)) => {
            let text = format!("the last kill was {}", before(case.now(), *last));
            ruled_out(NAME, Evidence::against("klog, exits", text).at(*last))
        }
        (n, Some(last)) => {
            let text = format!(
                "the kernel OOM-killed {}, last {}",
                times(n),
                before(case.now(), *last)
            );
            plays_a_part(NAME, Evidence::speaks_for("klog, exits", text).at(*last))
        }
        (_, None) => None,
    }
}
