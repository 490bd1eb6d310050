//! Which cgroups were born, and which of the removed are still held by the kernel.

use std::collections::HashMap;
use std::time::Duration;

use sexton_bpf::prog::cgroups::{Event, What};
use sexton_model::moment::Moment;

/// The most births that are remembered, to tell how long a cgroup lived. Those beyond are
/// counted and told all the same.
const MAX_LIVING: usize = 65_536;

/// The most dying cgroups that are kept apart: twice the seventy thousand of the incident
/// that sexton was made for, in less than six mebibytes.
const MAX_DYING: usize = 131_072;

/// What is known of the cgroups that something happened to. A release tells the path once
/// more, so only moments are kept.
#[derive(Debug, Default)]
pub(super) struct Book {
    born: HashMap<u64, Moment>,
    removed: HashMap<u64, Moment>,
    untracked: u64,
}

impl Book {
    /// Notes an event. Returns how long the state that it ended had lasted: the life of a
    /// cgroup that is removed, the dying of one that is released.
    pub(super) fn note(&mut self, event: &Event) -> Option<Duration> {
        let at = Moment::from_ns(event.at_ns);
        match event.what {
            What::Born => {
                if self.born.len() < MAX_LIVING {
                    self.born.insert(event.id, at);
                }
                None
            }
            What::Removed => {
                if self.removed.len() < MAX_DYING {
                    self.removed.insert(event.id, at);
                } else {
                    self.untracked += 1;
                }
                self.born.remove(&event.id).map(|born| at.since(born))
            }
            What::Released => self.removed.remove(&event.id).map(|since| at.since(since)),
        }
    }

    /// Cgroups removed and not released.
    pub(super) fn unreleased(&self) -> usize {
        self.removed.len()
    }

    /// Removed cgroups that there was no room for, so that their release means nothing.
    pub(super) fn untracked(&self) -> u64 {
        self.untracked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: What, id: u64, at_ns: u64) -> Event {
        Event {
            at_ns,
            what,
            id,
            path: b"/a".to_vec(),
            tgid: 1,
            comm: b"a".to_vec(),
            ancestors: Vec::new(),
        }
    }

    fn check(events: &[(What, u64, u64)], lasted: &[Option<u64>], unreleased: usize) {
        let mut book = Book::default();
        let seen: Vec<Option<u64>> = events
            .iter()
            .map(|&(what, id, at)| book.note(&event(what, id, at)))
            .map(|lasted| lasted.map(|time| time.as_nanos() as u64))
            .collect();
        assert_eq!(seen, lasted);
        assert_eq!(book.unreleased(), unreleased);
    }

    #[test]
    fn a_life_and_a_death() {
        use What::{Born, Released, Removed};
        check(
            &[(Born, 1, 10), (Removed, 1, 30), (Released, 1, 37)],
            &[None, Some(20), Some(7)],
            0,
        );
        check(&[(Born, 1, 10), (Removed, 1, 30)], &[None, Some(20)], 1);
    }

    #[test]
    fn what_was_there_before_is_not_ours() {
        use What::{Released, Removed};
        check(&[(Released, 1, 10)], &[None], 0);
        check(&[(Removed, 1, 10)], &[None], 1);
    }

    #[test]
    fn a_full_book_says_what_it_leaves_out() {
        let mut book = Book::default();
        for id in 0..MAX_DYING as u64 + 3 {
            book.note(&event(What::Removed, id, id));
        }
        assert_eq!((book.unreleased(), book.untracked()), (MAX_DYING, 3));
    }
}
