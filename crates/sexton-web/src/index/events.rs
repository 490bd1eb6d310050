//! Things that happened, in the order of time.

use std::sync::Arc;

use sexton_model::subject::Subject;

/// More are counted and not kept.
const MAX_EVENTS: usize = 200_000;

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) struct Happening {
    /// When.
    pub(crate) at_ns: u64,
    /// What sort of thing: the name of a fact, or the class of a line of the log.
    pub(crate) kind: Arc<str>,
    /// In one line.
    pub(crate) text: Arc<str>,
    /// To whom.
    pub(crate) subject: Subject,
    /// How many at once.
    pub(crate) n: u64,
}

/// Events of a lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventList {
    sorted: Vec<Happening>,
    /// That were not kept.
    n_dropped: u64,
}

/// Events of a window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// How many in each column.
    pub(crate) counts: Vec<u64>,
    /// At most so many as were asked for; alike ones of a column are one.
    pub(crate) events: Vec<Happening>,
    /// That are in neither, or only in the counts.
    pub(crate) n_left_out: u64,
}

impl EventList {
    /// Puts an event in its place. Most come in order.
    pub(crate) fn add(&mut self, event: Happening) {
        if self.sorted.len() >= MAX_EVENTS {
            self.n_dropped += event.n;
            return;
        }
        let at = self
            .sorted
            .partition_point(|known| known.at_ns <= event.at_ns);
        self.sorted.insert(at, event);
    }

    /// Forgets what happened from a moment on: it is read again.
    pub(crate) fn cut(&mut self, from_ns: u64) {
        let at = self.sorted.partition_point(|event| event.at_ns < from_ns);
        self.sorted.truncate(at);
    }

    /// Those of a window.
    pub(crate) fn within(&self, from_ns: u64, to_ns: u64) -> &[Happening] {
        let first = self.sorted.partition_point(|event| event.at_ns < from_ns);
        let last = self.sorted.partition_point(|event| event.at_ns < to_ns);
        self.sorted.get(first..last).unwrap_or_default()
    }

    /// Those of a window by column.
    pub(crate) fn told(&self, from_ns: u64, step_ns: u64, n: usize, most: usize) -> Told {
        let step_ns = step_ns.max(1);
        let to_ns = from_ns.saturating_add(step_ns.saturating_mul(n as u64));
        let found = self.within(from_ns, to_ns);
        let column = |event: &Happening| {
            usize::try_from((event.at_ns - from_ns) / step_ns).unwrap_or(usize::MAX)
        };
        let mut told = Told {
            counts: vec![0; n],
            n_left_out: self.n_dropped,
            ..Told::default()
        };
        for event in found {
            if let Some(count) = told.counts.get_mut(column(event)) {
                *count += event.n;
            }
        }
        // When they are too many, those of one kind and column are put together; otherwise
        // only what was told twice.
        let puts_together = found.len() > most;
        for event in found {
            let is_alike = |known: &Happening| {
                let is_again = known.at_ns == event.at_ns && known.text == event.text;
                known.kind == event.kind
                    && column(known) == column(event)
                    && (puts_together || is_again)
            };
            // Events of one column lie together, so what is alike is near.
            let from = told.events.len().saturating_sub(8);
            let known = told.events[from..].iter().position(is_alike);
            match known {
                Some(at) => told.events[from + at].n += event.n,
                None if told.events.len() < most => told.events.push(event.clone()),
                None => told.n_left_out += event.n,
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, kind: &str) -> Happening {
        Happening {
            at_ns,
            kind: kind.into(),
            text: format!("{kind} at {at_ns}").into(),
            subject: Subject::node(),
            n: 1,
        }
    }

    fn list(times: &[u64]) -> EventList {
        let mut list = EventList::default();
        for at in times {
            list.add(event(*at, "reset"));
        }
        list
    }

    #[test]
    fn columns_count_what_is_in_them() {
        let told = list(&[5, 1, 12, 19, 30]).told(0, 10, 3, 10);
        assert_eq!(told.counts, [2, 2, 0]);
        let times: Vec<u64> = told.events.iter().map(|event| event.at_ns).collect();
        assert_eq!(times, [1, 5, 12, 19]);
        assert_eq!(told.n_left_out, 0);
    }

    #[test]
    fn too_many_are_put_together() {
        let many: Vec<u64> = (0..100).collect();
        let told = list(&many).told(0, 10, 10, 20);
        let counts: Vec<u64> = told.events.iter().map(|event| event.n).collect();
        assert_eq!(counts, [10; 10]);
        let told = list(&many).told(0, 10, 10, 4);
        assert_eq!((told.events.len(), told.n_left_out), (4, 60));
        assert_eq!(told.counts, [10; 10]);
    }
}
