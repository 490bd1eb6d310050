//! Says what changed, and now and then everything.
//!
//! Devices have many queues and queues many counters, and most stand still. A value is
//! told when it is new, when it changed, and once in so many polls.

use std::collections::{HashMap, HashSet};

use sexton_host::HostError;
use sexton_model::fact::{EventFact, Fact};
use sexton_model::gap::{Gap, Why};
use sexton_model::payload::{Fields, Payload};
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

/// What was told of whom.
type About = (Subject, &'static str);

/// Remembers what was told.
#[derive(Debug, Default)]
pub(super) struct Teller {
    values: HashMap<About, f64>,
    events: HashMap<(About, String), Fields>,
    gaps: HashSet<String>,
    /// Whether this poll tells everything.
    pub(super) everything: bool,
}

impl Teller {
    /// Tells a value.
    pub(super) fn sample(
        &mut self,
        out: &mut Sink,
        subject: &Subject,
        fact: &'static Fact,
        value: f64,
    ) {
        let before = self.values.insert((subject.clone(), fact.name), value);
        if self.everything || before != Some(value) {
            out.sample(subject, fact, value);
        }
    }

    /// Tells how something is: when it is new and when it changed. `key` tells apart
    /// several of one subject.
    pub(super) fn state<T: Payload>(
        &mut self,
        out: &mut Sink,
        subject: &Subject,
        fact: &'static EventFact<T>,
        key: &str,
        says: T,
    ) {
        let about = ((subject.clone(), fact.name), key.to_owned());
        let fields = says.fields();
        if self.events.get(&about) != Some(&fields) {
            out.event(out.now(), subject, fact, says);
            self.events.insert(about, fields);
        }
    }

    /// Tells a gap, once.
    pub(super) fn gap(&mut self, out: &mut Sink, subject: &Subject, gap: Gap) {
        let key = format!("{subject}: {}", gap.text);
        if self.gaps.insert(key) {
            out.gap(subject, gap);
        }
    }

    /// Tells a gap that an error leaves, once.
    pub(super) fn failed(&mut self, out: &mut Sink, subject: &Subject, error: &HostError) {
        self.gap(
            out,
            subject,
            Gap::new(super::NAME, error.why(), error.chain()),
        );
    }

    /// Tells a value that some kernels do not have: then a gap for the whole node, once.
    pub(super) fn optional(
        &mut self,
        out: &mut Sink,
        subject: &Subject,
        fact: &'static Fact,
        value: Result<f64, HostError>,
    ) {
        match value {
            Ok(value) => self.sample(out, subject, fact, value),
            Err(error) if error.why() == Why::Vanished => {
                let text = format!("this kernel or driver does not tell {}", fact.name);
                let gap = Gap::new(super::NAME, Why::Unsupported, text);
                self.gap(out, &Subject::node(), gap);
            }
            Err(error) => self.failed(out, subject, &error),
        }
    }

    /// Forgets a device that is gone, and its queues.
    pub(super) fn forget(&mut self, device: &str) {
        let queues = format!("{device}/");
        let stays = |subject: &Subject| {
            *subject.name != *device && !subject.name.starts_with(queues.as_str())
        };
        self.values.retain(|(subject, _), _| stays(subject));
        self.events.retain(|((subject, _), _), _| stays(subject));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::fact::nic::{NIC_GONE, NIC_RESETS, NicGone};
    use sexton_model::moment::Moment;
    use sexton_model::subject::SubjectKind;

    fn check(everything: bool, values: &[f64], expected: usize) {
        let mut teller = Teller {
            everything,
            ..Teller::default()
        };
        let mut out = Sink::new("nics", Moment::default());
        let device = Subject::new(SubjectKind::Device, "eth0");
        for value in values {
            teller.sample(&mut out, &device, &NIC_RESETS, *value);
        }
        assert_eq!(out.into_records().len(), expected, "{values:?}");
    }

    #[test]
    fn only_changes_are_told_unless_all_is_asked_for() {
        check(false, &[0.0, 0.0, 1.0, 1.0], 2);
        check(true, &[0.0, 0.0, 1.0, 1.0], 4);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut teller = Teller::default();
        let mut out = Sink::new("nics", Moment::default());
        let device = Subject::new(SubjectKind::Device, "eth0");
        let other = Subject::new(SubjectKind::Device, "eth01");
        for _ in 0..2 {
            for subject in [&device, &other] {
                teller.state(&mut out, subject, &NIC_GONE, "", NicGone::default());
            }
            teller.forget("eth0");
        }
        assert_eq!(out.into_records().len(), 3);
    }
}
