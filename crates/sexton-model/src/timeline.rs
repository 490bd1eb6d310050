//! The read view of a recording: what rules and surfaces see, live or replayed.

use std::ops::RangeInclusive;

use crate::fact::Fact;
use crate::fact::sexton::{SEXTON_POLL_NS, SEXTON_WALL_CLOCK_NS};
use crate::gap::Gap;
use crate::moment::Moment;
use crate::record::{Body, Record};
use crate::subject::Subject;

/// Records in the order of time.
pub trait Timeline {
    /// From the first record to the last; `None` when there is none.
    fn span(&self) -> Option<RangeInclusive<Moment>>;

    /// Every record, in the order of time.
    fn all<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Record> + 'a>;

    /// The samples or events of one fact, in the order of time.
    fn of<'a>(&'a self, fact: &'static Fact) -> Box<dyn Iterator<Item = &'a Record> + 'a>;

    /// What could not be seen, in the order of time.
    fn gaps<'a>(&'a self) -> Box<dyn Iterator<Item = (Moment, &'a Subject, &'a Gap)> + 'a>;

    /// The time of the watch: from sexton's own first word to the last record. Where sexton
    /// said nothing of itself, all there is.
    fn watched(&self) -> Option<RangeInclusive<Moment>> {
        let span = self.span()?;
        let own = [&SEXTON_WALL_CLOCK_NS, &SEXTON_POLL_NS];
        let began = own
            .into_iter()
            .filter_map(|fact| self.of(fact).map(|record| record.at).min())
            .min();
        Some(began.unwrap_or(*span.start())..=*span.end())
    }
}

/// A timeline in memory.
#[derive(Debug, Clone, Default)]
pub struct Records {
    sorted: Vec<Record>,
}

impl Records {
    /// These records, in whatever order they come. Records of one moment keep it.
    pub fn new(mut records: Vec<Record>) -> Self {
        records.sort_by_key(|record| record.at);
        Self { sorted: records }
    }

    /// All of them, in the order of time.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.sorted.iter()
    }
}

impl Timeline for Records {
    fn span(&self) -> Option<RangeInclusive<Moment>> {
        Some(self.sorted.first()?.at..=self.sorted.last()?.at)
    }

    fn all<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Record> + 'a> {
        Box::new(self.sorted.iter())
    }

    fn of<'a>(&'a self, fact: &'static Fact) -> Box<dyn Iterator<Item = &'a Record> + 'a> {
        Box::new(
            self.sorted
                .iter()
                .filter(move |record| record.fact() == Some(fact)),
        )
    }

    fn gaps<'a>(&'a self) -> Box<dyn Iterator<Item = (Moment, &'a Subject, &'a Gap)> + 'a> {
        Box::new(self.sorted.iter().filter_map(|record| match &record.body {
            Body::Gap(gap) => Some((record.at, &record.subject, &**gap)),
            _ => None,
        }))
    }
}
