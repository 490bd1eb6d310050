//! What the recording sexton did itself: the one who looks must not accuse itself.

use std::collections::BTreeMap;

use sexton_model::fact::core::{CORE_OWN_RATIO, CORE_SYSTEM_RATIO};
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::span;

/// Where sexton had more of a core than this, nothing is said of the rest: counters are too
/// coarse for it.
const TOO_MUCH: f64 = 0.5;

/// The kernel's work for us, by core. A sample covers the time since the core was last told.
#[derive(Debug)]
pub(crate) struct OwnWork<'a> {
    by_core: BTreeMap<&'a Subject, BTreeMap<Moment, f64>>,
}

impl<'a> OwnWork<'a> {
    pub(crate) fn new(case: &Case<'a>) -> Self {
        let mut by_core: BTreeMap<&Subject, BTreeMap<Moment, f64>> = BTreeMap::new();
        for record in case.of(&CORE_OWN_RATIO) {
            if let Some(value) = record.value() {
                let of_core = by_core.entry(&record.subject).or_default();
                of_core.insert(record.at, value);
            }
        }
        Self { by_core }
    }

    /// Whether anything of it was recorded; recordings of older versions have none.
    pub(crate) fn is_known(&self) -> bool {
        !self.by_core.is_empty()
    }

    /// The kernel's part of the time that was not ours, of an interval that ends at a moment
    /// and of which the kernel had this part in all.
    pub(crate) fn without(&self, core: &Subject, at: Moment, ratio: f64) -> f64 {
        let own = self.by_core.get(core).and_then(|own| own.get(&at));
        match own {
            None => ratio,
            Some(own) if *own > TOO_MUCH => (ratio - own).max(0.0),
            Some(own) => ((ratio - own) / (1.0 - own)).max(0.0),
        }
    }

    /// Whether we had most of a core in this time.
    pub(crate) fn explains(
        &self,
        case: &Case<'_>,
        core: &Subject,
        from: Moment,
        to: Moment,
    ) -> bool {
        let Some(own) = self.by_core.get(core) else {
            return false;
        };
        let looks = case.samples(&CORE_SYSTEM_RATIO, core);
        let parts: Vec<(Moment, f64)> = looks
            .map(|(at, _)| (at, own.get(&at).copied().unwrap_or(0.0)))
            .collect();
        span::mean(&parts, &[(from, to)]).is_some_and(|part| part > TOO_MUCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;
    use crate::testing::story::{Story, at};
    use sexton_model::timeline::Records;

    /// A core of which we had this part from 12 s to 15 s.
    fn story(own: f64) -> Story {
        let mut story = Story::default().core(1, (10.0, 20.0), (0.97, 0.01));
        let told: Vec<Moment> = story
            .records()
            .iter()
            .map(|record| record.at)
            .filter(|told| at(12.0) < *told && *told <= at(15.0))
            .collect();
        for told in told {
            let seconds = told.as_ns() as f64 / 1e9;
            story = story.sample("cores", seconds, &Subject::cpu(1), &CORE_OWN_RATIO, own);
        }
        story
    }

    fn check(own: f64, wait: (f64, f64), expected: bool) {
        let records = Records::new(story(own).records().to_vec());
        let policy = Policy::default();
        let case = Case::new(&records, &policy);
        let explains =
            OwnWork::new(&case).explains(&case, &Subject::cpu(1), at(wait.0), at(wait.1));
        assert_eq!(explains, expected, "{own} {wait:?}");
    }

    #[test]
    fn our_work_explains_what_waited_meanwhile() {
        check(0.9, (12.2, 14.0), true);
        check(0.9, (12.0, 19.0), false);
        check(0.9, (16.0, 18.0), false);
        check(0.3, (12.2, 14.0), false);
    }

    #[test]
    fn what_others_had_is_left() {
        let records = Records::new(story(0.2).records().to_vec());
        let policy = Policy::default();
        let own = OwnWork::new(&Case::new(&records, &policy));
        let when = own.by_core[&Subject::cpu(1)].keys().next().copied();
        let when = when.unwrap_or_default();
        let left = own.without(&Subject::cpu(1), when, 0.96);
        assert!((left - 0.95).abs() < 1e-9, "{left}");
        assert!(own.without(&Subject::cpu(0), when, 0.96) > 0.95);
        assert!(own.is_known());
    }
}
