//! Defunct processes keep their PIDs and count as tasks of their cgroup, so they use up the
//! limits of both.

use std::path::Path;

use sexton_model::fact::limit::LIMIT_USED;
use sexton_model::fact::process::DEFUNCT_CHILDREN;
use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::words::figures;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "TASK002",
    effect: "LIM001",
    meet,
};

/// A smaller part of what is used is not what uses it up.
const LEAST_SHARE: f64 = 0.05;

fn meet(case: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    if !counts_them(cause, effect) {
        return Meeting::Strangers;
    }
    let piles = case.events(&DEFUNCT_CHILDREN);
    let mut own = piles.filter(|event| *event.subject == cause.subject);
    let (Some(last), Some(used)) = (own.next_back(), case.latest(&LIMIT_USED, &effect.subject))
    else {
        return Meeting::Strangers;
    };
    let share = last.says.n as f64 / used.max(1.0);
    if share < LEAST_SHARE {
        return Meeting::Strangers;
    }
    let text = format!(
        "{} of the {} that count against {} are its defunct children: {}",
        figures::count(last.says.n),
        figures::count(used as u64),
        effect.subject.name,
        figures::percent(share.min(1.0))
    );
    let evidence = vec![Evidence::speaks_for("processes and limits", text).value(share)];
    let percent = (share * 100.0) as u8;
    Meeting::Joined(Confidence::percent(percent.clamp(25, 95)), evidence)
}

/// Whether defunct children of this parent count against that limit.
fn counts_them(cause: &Finding, effect: &Finding) -> bool {
    let limit = &*effect.subject.name;
    match limit.strip_prefix("pids.max ") {
        Some(limited) => cause
            .touched_of(SubjectKind::Cgroup)
            .any(|cgroup| Path::new(&*cgroup.name).starts_with(limited)),
        None => matches!(limit, "kernel.pid_max" | "kernel.threads-max"),
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::limit::{LIMIT_MOST, LIMIT_USED_RATIO};
    use sexton_model::fact::process::DefunctChildren;
    use sexton_model::record::Sink;
    use sexton_model::subject::Subject;

    use super::*;
    use crate::testing::{Watch, at};

    /// How many links there are from so many defunct children to a limit of 500 that is full.
    fn links(n: u64, limit: &str) -> usize {
        let mut watch = Watch::new(100, 30);
        let mut out = Sink::new("processes", at(110));
        let says = DefunctChildren {
            pid: 812,
            n,
            n_lasting: n,
            oldest_ns: 100_000_000_000,
            // On cgroup v1 each hierarchy has a path of its own.
            cgroup: Some("/systemd/jobs.service".into()),
            limited_cgroup: Some("/system.slice/jobs.service".into()),
            ..DefunctChildren::default()
        };
        let parent = Subject::new(SubjectKind::Process, "812");
        out.event(at(110), &parent, &DEFUNCT_CHILDREN, says);
        watch.add(out);
        let mut out = Sink::new("limits", at(110));
        let limit = Subject::new(SubjectKind::Limit, limit);
        for (fact, value) in [
            (&LIMIT_USED_RATIO, 0.99),
            (&LIMIT_USED, 4_950.0),
            (&LIMIT_MOST, 5_000.0),
        ] {
            out.sample(&limit, fact, value);
        }
        watch.add(out);
        watch.diagnose().links.len()
    }

    #[test]
    fn many_of_the_same_cgroup_or_node_are_why() {
        assert_eq!(links(4_000, "pids.max /system.slice/jobs.service"), 1);
        assert_eq!(links(4_000, "pids.max /system.slice"), 1);
        assert_eq!(links(4_000, "kernel.pid_max"), 1);
    }

    #[test]
    fn few_or_those_of_another_cgroup_are_not() {
        assert_eq!(links(150, "kernel.pid_max"), 0);
        assert_eq!(links(4_000, "pids.max /system.slice/other.service"), 0);
        assert_eq!(links(4_000, "pids.max /system.slice/jobs"), 0);
        assert_eq!(links(4_000, "fs.file-max"), 0);
    }
}
