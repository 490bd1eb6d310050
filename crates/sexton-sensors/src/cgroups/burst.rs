//! What happened in a burst, when there is too much to tell one by one.

use std::collections::HashMap;

use sexton_bpf::prog::cgroups::{Event, What};
use sexton_model::fact::cgroup as fact;
use sexton_model::moment::Moment;
use sexton_model::origin::Origin;
use sexton_model::record::{Detail, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use super::fact_of;
use crate::details::detail;

/// Patterns of one poll that are kept apart in a burst.
pub(super) const MAX_PATTERNS: usize = 256;

/// What came after the events that are told one by one: how many of what pattern, and of
/// births also by whom.
#[derive(Debug, Default)]
pub(super) struct Burst {
    /// In the order they came.
    rows: Vec<BurstRow>,
    at: HashMap<BurstKey, usize>,
}

/// What is alike: what happened, the pattern (`None`: any other), and of births the name
/// of the creator.
type BurstKey = (What, Option<Vec<u8>>, Vec<u8>);

#[derive(Debug)]
struct BurstRow {
    what: What,
    pattern: Option<Vec<u8>>,
    /// When the first was.
    at_ns: u64,
    n: u64,
    /// Who made the first.
    creator: Vec<Detail>,
}

impl Burst {
    /// Counts an event. Says whether it is the first of its like.
    pub(super) fn add(&mut self, event: &Event) -> bool {
        let comm = match event.what {
            What::Born => event.comm.clone(),
            _ => Vec::new(),
        };
        let mut key = (event.what, Some(Origin::of(&event.path).pattern()), comm);
        if self.rows.len() >= MAX_PATTERNS && !self.at.contains_key(&key) {
            key = (event.what, None, Vec::new());
        }
        if let Some(at) = self.at.get(&key) {
            self.rows[*at].n += 1;
            return false;
        }
        self.rows.push(BurstRow {
            what: event.what,
            pattern: key.1.clone(),
            at_ns: event.at_ns,
            n: 1,
            creator: Vec::new(),
        });
        self.at.insert(key, self.rows.len() - 1);
        true
    }

    /// Who made the one that was counted last, if it was the first of its like.
    pub(super) fn name_last(&mut self, creator: Vec<Detail>) {
        if let Some(row) = self.rows.last_mut()
            && row.pattern.is_some()
        {
            row.creator = creator;
        }
    }

    pub(super) fn tell(self, out: &mut Sink) {
        for row in self.rows {
            let pattern = row
                .pattern
                .map_or_else(|| "(others)".to_owned(), |pattern| escape(&pattern));
            let mut details = vec![
                detail("what", fact_of(row.what).name),
                detail("pattern", &pattern),
                detail("n", row.n),
            ];
            details.extend(row.creator);
            let subject = Subject::new(SubjectKind::Cgroup, pattern);
            out.event(
                Moment::from_ns(row.at_ns),
                &subject,
                &fact::CGROUP_BURST,
                details,
            );
        }
    }
}
