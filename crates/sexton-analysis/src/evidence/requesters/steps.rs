//! What units do in step with births: they are started each time, or write to the journal
//! each time.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::unit as fact;
use sexton_model::moment::Moment;

use crate::case::Case;
use crate::evidence::known;

/// A start of a unit so shortly before a birth is in step with it: docker takes a quarter
/// of a second to run a container, a loaded one some seconds.
const IN_STEP: Duration = Duration::from_secs(3);

/// A supervisor writes when it tries and when it gave up; no further from a birth than this,
/// and no further than a sixth of the time between births.
const LOG_IN_STEP: Duration = Duration::from_secs(2);

/// Of the births so many must be in step.
const SHARE: f64 = 0.8;

/// A unit that is at work for more of the time would be in step with anything.
const MOST_COVERED: f64 = 0.5;

/// Fewer births are a coincidence.
const LEAST: usize = 3;

/// A daemon that is loaded takes its time, so that what was written is not near any more; then
/// it counts that there is one or two between each birth and the next. Of fewer pauses one
/// that writes as often by chance could have one in each: at random, one in a hundred of
/// eight.
const LEAST_PAUSES: usize = 8;
const MOST_IN_A_PAUSE: usize = 2;
const PAUSES_SHARE: f64 = 0.9;

/// When units were started, and when they wrote.
#[derive(Debug, Default)]
pub(super) struct Steps<'a> {
    starts: BTreeMap<&'a str, Vec<Moment>>,
    logs: BTreeMap<&'a str, Vec<Moment>>,
}

/// In which way a unit is in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// It was started each time.
    Starts,
    /// It wrote each time.
    Writes,
}

impl<'a> Steps<'a> {
    pub(super) fn of(case: &Case<'a>) -> Self {
        let by_unit = |fact| {
            let mut moments: BTreeMap<&'a str, Vec<Moment>> = BTreeMap::new();
            for record in case.of(fact) {
                moments
                    .entry(&record.subject.name)
                    .or_default()
                    .push(record.at);
            }
            moments.retain(|unit, _| !known::is_between(unit) && unit.ends_with(".service"));
            moments
        };
        let mut logs = by_unit(&fact::UNIT_LOGGED);
        logs.retain(|unit, _| !known::is_follower(unit));
        Self {
            starts: by_unit(&fact::UNIT_STARTED),
            logs,
        }
    }

    /// The units that are in step with births at these moments.
    pub(super) fn with(&self, times: &[Moment]) -> Vec<(&'a str, Step)> {
        let mut times = times.to_vec();
        times.sort_unstable();
        if times.len() < LEAST {
            return Vec::new();
        }
        let started = self.started(&times).map(|unit| (unit, Step::Starts));
        let wrote = self.wrote(&times).map(|unit| (unit, Step::Writes));
        started.into_iter().chain(wrote).collect()
    }

    /// The unit that was started each time something was born.
    fn started(&self, times: &[Moment]) -> Option<&'a str> {
        let share = |starts: &[Moment]| {
            let is_near = |at: &&Moment| {
                let last = starts.partition_point(|start| start <= *at);
                last > 0 && at.since(starts[last - 1]) <= IN_STEP
            };
            times.iter().filter(is_near).count() as f64 / times.len() as f64
        };
        let fitting = self
            .starts
            .iter()
            .filter(|(_, starts)| starts.len() >= LEAST && starts.len() <= 2 * times.len() + 1);
        fitting
            .map(|(unit, starts)| (share(starts), *unit))
            .filter(|(share, _)| *share >= SHARE)
            .max_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(a.1)))
            .map(|(_, unit)| unit)
    }

    /// The one unit that wrote each time something was born, and was silent otherwise. Of
    /// two nobody can say which.
    fn wrote(&self, times: &[Moment]) -> Option<&'a str> {
        let (first, last) = (*times.first()?, *times.last()?);
        let span = last.since(first);
        let pace = span / u32::try_from(times.len() - 1).ok()?.max(1);
        let near = LOG_IN_STEP.min(pace / 6);
        let is_one = |logs: &[Moment]| {
            let is_near = |at: &&Moment| {
                let next = logs.partition_point(|log| log < *at);
                let around = logs[next.saturating_sub(1)..].iter().take(2);
                around.into_iter().any(|log| distance(*log, **at) <= near)
            };
            let share = times.iter().filter(is_near).count() as f64 / times.len() as f64;
            let is_near = share >= SHARE && covered(logs, (first, last), near) <= MOST_COVERED;
            is_near || takes_turns(logs, times)
        };
        let mut fitting = self.logs.iter().filter(|(_, logs)| is_one(logs));
        match (fitting.next(), fitting.next()) {
            (Some((unit, _)), None) => Some(unit),
            _ => None,
        }
    }
}

/// Whether something was written between each birth and the next, and little.
fn takes_turns(logs: &[Moment], times: &[Moment]) -> bool {
    let is_one = |pause: &&[Moment]| {
        let first = logs.partition_point(|log| *log <= pause[0]);
        let last = logs.partition_point(|log| *log <= pause[1]);
        (1..=MOST_IN_A_PAUSE).contains(&(last - first))
    };
    let n_pauses = times.len().saturating_sub(1);
    let n = times.windows(2).filter(is_one).count();
    n_pauses >= LEAST_PAUSES && n as f64 >= PAUSES_SHARE * n_pauses as f64
}

fn distance(a: Moment, b: Moment) -> Duration {
    a.since(b).max(b.since(a))
}

/// The part of a span that is near some moment.
fn covered(moments: &[Moment], (first, last): (Moment, Moment), near: Duration) -> f64 {
    let mut total = Duration::ZERO;
    let mut until = first;
    for at in moments {
        let ns = u64::try_from(near.as_nanos()).unwrap_or(u64::MAX);
        let from = Moment::from_ns(at.as_ns().saturating_sub(ns)).max(until);
        let to = at.after(near).min(last);
        if to > from {
            total += to.since(from);
            until = to;
        }
    }
    total.as_secs_f64() / last.since(first).as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use sexton_model::record::Sink;
    use sexton_model::subject::{Subject, SubjectKind};
    use sexton_model::timeline::Records;

    use super::*;
    use crate::policy::Policy;
    use crate::testing::at;

    /// At which seconds a unit wrote, of one birth.
    type Wrote<'a> = (&'a str, &'a dyn Fn(u64) -> Vec<u64>);

    /// Births each 25 s for ten minutes, and units that wrote.
    fn in_step(units: &[Wrote<'_>]) -> Vec<(String, Step)> {
        let creations: Vec<u64> = (0..24).map(|i| 1_000 + 25 * i).collect();
        let mut out = Sink::new("journal", at(1_600));
        for (unit, wrote) in units {
            let subject = Subject::new(SubjectKind::Unit, *unit);
            for moment in creations.iter().flat_map(|creation| wrote(*creation)) {
                out.event(
                    at(moment),
                    &subject,
                    &fact::UNIT_LOGGED,
                    fact::UnitLogged { n: 1 },
                );
            }
        }
        let records = Records::new(out.into_records());
        let policy = Policy::default();
        let case = Case::new(&records, &policy);
        let times: Vec<Moment> = creations.iter().map(|creation| at(*creation)).collect();
        let found = Steps::of(&case).with(&times);
        let owned = found
            .into_iter()
            .map(|(unit, step)| (unit.to_owned(), step));
        owned.collect()
    }

    #[test]
    fn who_writes_at_each_birth_is_in_step() {
        // It says that it tries, and ten seconds later that it failed.
        let supervisor = |creation| vec![creation - 1, creation + 10];
        let once = |creation| {
            if creation < 1_030 {
                vec![creation]
            } else {
                vec![]
            }
        };
        let found = in_step(&[("own.service", &supervisor), ("other.service", &once)]);
        assert_eq!(found, [("own.service".to_owned(), Step::Writes)]);
    }

    /// The engine is loaded, and takes seconds to do what it was asked.
    #[test]
    fn who_writes_once_before_each_birth_is_in_step() {
        let slow = |creation: u64| vec![creation - 4 - creation % 7];
        let found = in_step(&[("own.service", &slow)]);
        assert_eq!(found, [("own.service".to_owned(), Step::Writes)]);
        let seldom = |creation: u64| vec![creation - 4; usize::from(creation.is_multiple_of(50))];
        assert_eq!(in_step(&[("own.service", &seldom)]), []);
    }

    #[test]
    fn who_writes_all_the_time_or_follows_is_not() {
        let chatty = |creation| (creation..creation + 25).collect();
        let follows = |creation| vec![creation];
        assert_eq!(in_step(&[("chatty.service", &chatty)]), []);
        assert_eq!(in_step(&[("systemd-networkd.service", &follows)]), []);
        assert_eq!(in_step(&[("docker.service", &follows)]), []);
        // Of two that fit nobody can say which.
        let two: [Wrote<'_>; 2] = [("a.service", &follows), ("b.service", &follows)];
        assert_eq!(in_step(&two), []);
    }
}
