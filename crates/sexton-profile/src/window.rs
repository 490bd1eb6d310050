//! Samples of a short time, added up for each of their owners: what receivers of profiles take.
//!
//! An owner is a set of labels that the caller makes of a cgroup. There are at most as many owners
//! as the caller allows; those with the fewest samples are folded into one.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use sexton_model::stack::{NameId, StackId, StackSample, StackTables};
use sexton_model::text::unescape;

use crate::filter::{EventChoice, Filter, Matcher};
use crate::import::Sink;
use crate::merge::Merger;
use crate::weight::value_type;

/// The value of the label `unit` of owners that were folded.
pub const OTHER: &str = "other";

/// Name and value of each label, in the order of names.
pub type Labels = Vec<(&'static str, String)>;

/// A stack, and what its samples come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Where.
    pub stack: StackId,
    /// How many samples.
    pub n: u64,
    /// What they stand for, in the unit of the event.
    pub weight: u64,
}

/// The samples of one owner in one window.
#[derive(Debug, Clone)]
pub struct WindowProfile {
    /// Whose.
    pub labels: Arc<Labels>,
    /// What was sampled: `cpu-clock`.
    pub event: Arc<str>,
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// How long the window is.
    pub duration_ns: u64,
    /// The samples, by their stacks.
    pub samples: Vec<Counted>,
    /// What they refer to; shared by all profiles of a window.
    pub tables: Arc<StackTables>,
}

impl WindowProfile {
    /// What the weights are called, and their unit: names that every receiver takes.
    pub fn kind(&self) -> (String, &'static str) {
        let (name, unit) = value_type(&self.event);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        (name.chars().map(plain).collect(), unit)
    }

    /// How many samples there are.
    pub fn n_samples(&self) -> u64 {
        self.samples.iter().map(|sample| sample.n).sum()
    }

    /// Two halves; `None` when there is nothing to split. A part begins a microsecond later for
    /// each stack before it: receivers take two profiles of the same owner and time for one that was
    /// sent twice.
    pub fn split(&self) -> Option<(Self, Self)> {
        if self.samples.len() < 2 {
            return None;
        }
        let (first, second) = self.samples.split_at(self.samples.len() / 2);
        let part = |samples: &[Counted], later_ns: u64| Self {
            samples: samples.to_vec(),
            start_ns: self.start_ns + later_ns,
            ..self.clone()
        };
        Some((part(first, 0), part(second, first.len() as u64 * 1_000)))
    }
}

/// Adds up samples as they come.
pub struct ByOwner<F> {
    labels_of: F,
    matcher: Matcher,
    known: AHashMap<Option<NameId>, Arc<Labels>>,
    /// Events keep apart: they do not add up.
    owners: BTreeMap<(Arc<Labels>, Arc<str>), AHashMap<StackId, Counted>>,
    events: AHashMap<NameId, Arc<str>>,
}

impl<F: FnMut(Option<&[u8]>) -> Labels> ByOwner<F> {
    /// `labels_of` says whose a cgroup is, by its path.
    pub fn new(labels_of: F) -> Self {
        let filter = Filter {
            event: EventChoice::All,
            ..Filter::default()
        };
        Self {
            labels_of,
            matcher: Matcher::new(filter),
            known: AHashMap::new(),
            owners: BTreeMap::new(),
            events: AHashMap::new(),
        }
    }

    /// The profiles of a window that began at this time, and how many samples were folded because
    /// there are more than `most` owners.
    pub fn finish(
        self,
        merger: Merger,
        (start_ns, duration_ns): (u64, u64),
        most: usize,
        other: Labels,
    ) -> (Vec<WindowProfile>, u64) {
        let tables = Arc::new(merger.into_tables());
        let profile = |((labels, event), stacks): (_, AHashMap<StackId, Counted>)| {
            let mut samples: Vec<Counted> = stacks.into_values().collect();
            samples.sort_unstable_by_key(|sample| sample.stack);
            WindowProfile {
                labels,
                event,
                start_ns,
                duration_ns,
                samples,
                tables: Arc::clone(&tables),
            }
        };
        let mut profiles: Vec<WindowProfile> = self.owners.into_iter().map(profile).collect();
        if profiles.len() <= most {
            return (profiles, 0);
        }
        profiles.sort_by_key(|profile| std::cmp::Reverse(profile.n_samples()));
        let rest = profiles.split_off(most.saturating_sub(1));
        let n_folded = rest.iter().map(WindowProfile::n_samples).sum();
        let other = Arc::new(other);
        let mut folded: BTreeMap<Arc<str>, AHashMap<StackId, Counted>> = BTreeMap::new();
        for profile in rest {
            let stacks = folded.entry(profile.event).or_default();
            for sample in profile.samples {
                add(stacks, sample);
            }
        }
        let folded = folded.into_iter();
        profiles
            .extend(folded.map(|(event, stacks)| profile(((Arc::clone(&other), event), stacks))));
        (profiles, n_folded)
    }
}

fn add(stacks: &mut AHashMap<StackId, Counted>, more: Counted) {
    let none = Counted {
        stack: more.stack,
        n: 0,
        weight: 0,
    };
    let counted = stacks.entry(more.stack).or_insert(none);
    counted.n += more.n;
    counted.weight = counted.weight.saturating_add(more.weight);
}

impl<F: FnMut(Option<&[u8]>) -> Labels> Sink for ByOwner<F> {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        if !self.matcher.accepts(sample, tables) {
            return;
        }
        let labels_of = &mut self.labels_of;
        let labels = self.known.entry(sample.cgroup).or_insert_with(|| {
            let path = sample.cgroup.map(|name| unescape(tables.name(name)));
            Arc::new(labels_of(path.as_deref()))
        });
        let event = self.events.entry(sample.event);
        let event = event.or_insert_with(|| tables.name(sample.event).into());
        let key = (Arc::clone(labels), Arc::clone(event));
        let more = Counted {
            stack: sample.stack,
            n: 1,
            weight: sample.weight,
        };
        add(self.owners.entry(key).or_default(), more);
    }
}

#[cfg(test)]
mod tests;
