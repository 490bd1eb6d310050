//! What happened in a burst, when there is too much to tell one by one.

use std::collections::HashMap;

use sexton_bpf::prog::cgroups::{Event, What};
use sexton_model::fact::cgroup::{self as fact, CgroupBurst, CgroupChange};
use sexton_model::moment::Moment;
use sexton_model::origin::Origin;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use super::creator::Creator;

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
    creator: Option<Creator>,
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
            creator: None,
        });
        self.at.insert(key, self.rows.len() - 1);
        true
    }

    /// Who made the one that was counted last, if it was the first of its like.
    pub(super) fn name_last(&mut self, creator: Creator) {
        if let Some(row) = self.rows.last_mut()
            && row.pattern.is_some()
        {
            row.creator = Some(creator);
        }
    }

    pub(super) fn tell(self, out: &mut Sink) {
        for row in self.rows {
            let pattern = row
                .pattern
                .map_or_else(|| "(others)".to_owned(), |pattern| escape(&pattern));
            let subject = Subject::new(SubjectKind::Cgroup, pattern.as_str());
            let burst = CgroupBurst {
                what: Some(change(row.what)),
                pattern,
                n: row.n,
                ..row.creator.map(first_by).unwrap_or_default()
            };
            let at = Moment::from_ns(row.at_ns);
            out.event(at, &subject, &fact::CGROUP_BURST, burst);
        }
    }
}

fn first_by(creator: Creator) -> CgroupBurst {
    CgroupBurst {
        creator_pid: Some(creator.pid),
        creator_comm: Some(creator.comm),
        creator_cgroup: creator.cgroup,
        creator_unit: creator.unit,
        creator_ancestry: creator.ancestry,
        ..CgroupBurst::default()
    }
}

fn change(what: What) -> CgroupChange {
    match what {
        What::Born => CgroupChange::Created,
        What::Removed => CgroupChange::Removed,
        What::Released => CgroupChange::Released,
    }
}
