//! Work ends because the kernel OOM-killed a process of it a moment before: its main process
//! then fails with a status of its own, which does not say so.

use std::time::Duration;

use sexton_model::finding::{Confidence, Evidence, Finding};
use sexton_model::subject::SubjectKind;

use super::{LinkRule, Meeting};
use crate::case::Case;
use crate::words::figures::time;

pub(super) static LINK: LinkRule = LinkRule {
    cause: "MEM001",
    effect: "JOB001",
    meet,
};

/// A program that lost a process notices within this time, or for another reason: as long as a
/// pod gets to end (terminationGracePeriodSeconds).
const WITHIN: Duration = Duration::from_secs(30);

fn meet(_: &Case<'_>, cause: &Finding, effect: &Finding) -> Meeting {
    let places = effect
        .touched
        .iter()
        .filter(|touched| matches!(touched.kind, SubjectKind::Container | SubjectKind::Unit));
    let mut shared = places.filter(|place| cause.touches(place));
    let Some(place) = shared.next() else {
        return Meeting::Strangers;
    };
    let delays = effect.episodes.iter().filter_map(|death| {
        let kills = cause.episodes.iter().filter(|kill| kill.to <= death.from);
        kills.map(|kill| death.from.since(kill.to)).min()
    });
    match delays.min() {
        Some(delay) if delay <= WITHIN => {
            let text = format!(
                "the kernel OOM-killed a process of {} {} before it failed",
                place.name,
                time(delay)
            );
            let evidence = Evidence::speaks_for("klog, exits", text);
            Meeting::Joined(Confidence::LIKELY, vec![evidence])
        }
        Some(delay) => {
            let text = format!(
                "the last OOM kill in {} was {} before",
                place.name,
                time(delay)
            );
            Meeting::Apart(vec![Evidence::against("klog, exits", text)])
        }
        None => Meeting::Strangers,
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::subject::Subject;
    use sexton_model::timeline::Records;

    use super::super::tests::found;
    use super::*;
    use crate::policy::Policy;

    fn met(killed: (&str, u64), failed: (&str, u64)) -> Meeting {
        let (records, policy) = (Records::new(Vec::new()), Policy::default());
        let case = Case::new(&records, &policy);
        let of = |code, (container, second): (&str, u64)| {
            let subject = Subject::new(SubjectKind::Container, container);
            found(code, subject, second, second)
        };
        meet(&case, &of("MEM001", killed), &of("JOB001", failed))
    }

    #[test]
    fn the_same_container_a_moment_before_is_the_cause() {
        assert!(matches!(met(("a", 100), ("a", 102)), Meeting::Joined(..)));
        assert!(matches!(met(("a", 100), ("a", 200)), Meeting::Apart(_)));
        assert!(matches!(met(("b", 100), ("a", 102)), Meeting::Strangers));
        assert!(matches!(met(("a", 103), ("a", 102)), Meeting::Strangers));
    }
}
