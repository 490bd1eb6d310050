//! Tells each wait that is too long twice: when it is first seen, and when it has ended.

use std::collections::HashMap;

use super::holder::Holder;

/// What waits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Waiter {
    /// The transmit softirq of a core.
    NetTx,
    /// The receive softirq of a core.
    NetRx,
    /// The softirq thread of a core.
    Ksoftirqd,
    /// A threaded NAPI task: its pid.
    Thread(u32),
}

/// A wait, over or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) waiter: Waiter,
    pub(super) cpu: u32,
    pub(super) since_ns: u64,
    pub(super) ended: Option<Ended>,
}

/// When a wait ended, and who held the core meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) at_ns: u64,
    pub(super) holder: Option<Holder>,
}

/// Something to tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    Starved(Wait),
    Served(Wait),
}

impl Told {
    /// The wait it is about.
    pub(super) fn wait(&self) -> &Wait {
        match self {
            Told::Starved(wait) | Told::Served(wait) => wait,
        }
    }
}

/// Polls that a wait is remembered for after it was last seen. A program clears the stamp
/// a moment before it tells the end, so one poll may see neither.
const REMEMBERED_POLLS: u64 = 4;

/// The waits that were told and have not ended yet.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    open: HashMap<(Waiter, u64), Open>,
    n_polls: u64,
}

#[derive(Debug)]
struct Open {
    since_ns: u64,
    seen: u64,
}

/// Threads move between cores; the others are one per core.
fn key(wait: &Wait) -> (Waiter, u64) {
    let place = match wait.waiter {
        Waiter::Thread(_) => u64::MAX,
        _ => wait.cpu.into(),
    };
    (wait.waiter.clone(), place)
}

impl Stalls {
    /// One poll: waits that go on and are too long, and those that have ended since the
    /// last one.
    pub(super) fn step(&mut self, live: Vec<Wait>, ended: Vec<Wait>) -> Vec<Told> {
        self.n_polls += 1;
        let now = self.n_polls;
        let mut told = Vec::new();
        for wait in live {
            let open = self.open.insert(
                key(&wait),
                Open {
                    since_ns: wait.since_ns,
                    seen: now,
                },
            );
            if open.is_none_or(|open| open.since_ns != wait.since_ns) {
                told.push(Told::Starved(wait));
            }
        }
        for wait in ended {
            let key = key(&wait);
            let is_open = |open: &Open| open.since_ns == wait.since_ns;
            if self.open.get(&key).is_some_and(is_open) {
                self.open.remove(&key);
            } else {
                told.push(Told::Starved(wait.clone()));
            }
            told.push(Told::Served(wait));
        }
        self.open
            .retain(|_, open| now - open.seen < REMEMBERED_POLLS);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(waiter: &Waiter, cpu: u32, since_ns: u64) -> Wait {
        Wait {
            waiter: waiter.clone(),
            cpu,
            since_ns,
            ended: None,
        }
    }

    fn ended(waiter: &Waiter, cpu: u32, since_ns: u64) -> Wait {
        Wait {
            ended: Some(Ended {
                at_ns: since_ns + 7,
                holder: None,
            }),
            ..wait(waiter, cpu, since_ns)
        }
    }

    /// Each poll as waits that go on and waits that ended; told as `+since` and `-since`.
    #[track_caller]
    fn check(polls: &[(Vec<Wait>, Vec<Wait>)], expected: &[&[i64]]) {
        let mut stalls = Stalls::default();
        for ((live, ended), expected) in polls.iter().zip(expected) {
            let told = stalls.step(live.clone(), ended.clone());
            let told: Vec<i64> = told
                .iter()
                .map(|told| match told {
                    Told::Starved(wait) => wait.since_ns as i64,
                    Told::Served(wait) => -(wait.since_ns as i64),
                })
                .collect();
            assert_eq!(told, *expected);
        }
    }

    #[test]
    fn a_wait_is_told_when_it_is_seen_and_when_it_ends() {
        let rx = Waiter::NetRx;
        check(
            &[
                (vec![wait(&rx, 0, 5)], vec![]),
                (vec![wait(&rx, 0, 5), wait(&rx, 1, 6)], vec![]),
                (vec![], vec![]),
                (vec![wait(&rx, 0, 9)], vec![ended(&rx, 1, 6)]),
            ],
            &[&[5], &[6], &[], &[9, -6]],
        );
    }

    #[test]
    fn a_wait_between_two_polls_is_told_whole() {
        let rx = Waiter::NetRx;
        check(
            &[(vec![], vec![ended(&rx, 0, 5)]), (vec![], vec![])],
            &[&[5, -5], &[]],
        );
    }

    #[test]
    fn a_thread_may_be_served_elsewhere() {
        let thread = Waiter::Thread(77);
        check(
            &[
                (vec![wait(&thread, 0, 5)], vec![]),
                (vec![wait(&thread, 1, 5)], vec![]),
                (vec![], vec![ended(&thread, 1, 5)]),
            ],
            &[&[5], &[], &[-5]],
        );
    }

    #[test]
    fn what_is_not_seen_again_is_forgotten() {
        let rx = Waiter::NetRx;
        let mut stalls = Stalls::default();
        stalls.step(vec![wait(&rx, 0, 5)], vec![]);
        for _ in 0..REMEMBERED_POLLS {
            stalls.step(vec![], vec![]);
        }
        assert!(stalls.open.is_empty());
    }
}
