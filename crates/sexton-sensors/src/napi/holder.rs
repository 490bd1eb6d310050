//! Who held a core while network polling waited for it.

use std::ops::RangeInclusive;

use sexton_bpf::prog::napi::{self, Core, Look};
use sexton_host::Host;

use crate::tasks;

/// Runs that are shorter are not kept: many who share a core hold nobody up.
const SHORT_NS: u64 = 5_000_000;

/// The one that had the core longest during a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    /// `None` when it ended before it could be asked.
    pub(super) comm: Option<String>,
    /// Since when it ran without a break, or since the wait began if it ran before that.
    pub(super) since_ns: u64,
    /// How long, of the wait.
    pub(super) ns: u64,
}

impl Holder {
    /// As the program noted it; `None` when nobody had the core for long.
    pub(super) fn of(noted: &napi::Holder) -> Option<Self> {
        (noted.ns > 0).then(|| Self {
            pid: noted.pid,
            comm: Some(tasks::name_of(&noted.comm)),
            since_ns: noted.since_ns,
            ns: noted.ns,
        })
    }

    /// Of a wait that goes on: the one that runs, or one that ran longer.
    pub(super) fn now(host: &Host, since_ns: u64, now_ns: u64, core: &Core) -> Option<Self> {
        let ended = core.stretches.kept.iter().map(|stretch| Self {
            pid: stretch.pid,
            comm: Some(tasks::name_of(&stretch.comm)),
            since_ns: stretch.since_ns.max(since_ns),
            ns: stretch
                .until_ns
                .saturating_sub(stretch.since_ns.max(since_ns)),
        });
        // When it got the core nobody noted, if nothing waited for the core then.
        let runs_since_ns = core.current_since_ns.max(since_ns);
        let runs = Self {
            pid: core.current_pid,
            comm: None,
            since_ns: runs_since_ns,
            ns: now_ns.saturating_sub(runs_since_ns),
        };
        let longest = ended.chain([runs]).max_by_key(|holder| holder.ns)?;
        let longest = Some(longest).filter(|holder| holder.ns >= SHORT_NS)?;
        Some(Self {
            comm: longest.comm.or_else(|| tasks::comm(host, longest.pid)),
            ..longest
        })
    }

    /// Its kernel stack, innermost first, if it was looked at during the wait. None at all
    /// when it ran outside the kernel.
    pub(super) fn frames<'core>(
        &self,
        look: &'core Look,
        wait_ns: RangeInclusive<u64>,
    ) -> Option<&'core [u64]> {
        let is_whole = look.version.is_multiple_of(2);
        let is_of_it = look.pid == self.pid && wait_ns.contains(&look.at_ns);
        (is_whole && is_of_it).then(|| {
            let n = (look.n_frames as usize).min(look.frames.len());
            &look.frames[..n]
        })
    }

    /// Whether it is a thread of this process.
    pub(super) fn is_own(&self, host: &Host) -> bool {
        let path = host.proc(&format!("self/task/{}", self.pid));
        path.is_ok_and(|path| host.root().meta(&path).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of the past, as pid, since and until in ms; who runs since when; and who held
    /// the core since 100 ms, as of 900 ms.
    #[track_caller]
    fn check(past: &[(u32, u64, u64)], runs: (u32, u64), expected: Option<(u32, u64)>) {
        const MS: u64 = 1_000_000;
        let mut core = Core::default();
        (core.current_pid, core.current_since_ns) = (runs.0, runs.1 * MS);
        for (kept, (pid, since, until)) in core.stretches.kept.iter_mut().zip(past) {
            (kept.pid, kept.since_ns, kept.until_ns) = (*pid, since * MS, until * MS);
        }
        let host = Host::live().expect("a mount table");
        let found = Holder::now(&host, 100 * MS, 900 * MS, &core);
        assert_eq!(found.map(|holder| (holder.pid, holder.ns / MS)), expected);
    }

    #[test]
    fn the_one_that_had_the_core_longest_during_the_wait() {
        check(&[], (7, 0), Some((7, 800)));
        check(&[], (7, 300), Some((7, 600)));
        check(&[(5, 200, 800)], (7, 890), Some((5, 600)));
        // Only what lies within the wait counts.
        check(&[(5, 0, 99), (6, 0, 150)], (7, 870), Some((6, 50)));
        check(&[(5, 0, 300)], (7, 300), Some((7, 600)));
        // Many shared it, or none.
        check(&[], (7, 897), None);
    }
}
