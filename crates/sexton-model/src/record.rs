//! Records: what sensors say. A sample, an event, or a gap where there should be one.

use std::borrow::Cow;
use std::sync::Arc;

use crate::fact::{EventFact, Fact};
use crate::gap::Gap;
use crate::moment::Moment;
use crate::payload::{Fields, Malformed, Payload};
use crate::stack::StackBatch;
use crate::subject::Subject;

/// One thing that a sensor saw, or could not see.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// When it was so.
    pub at: Moment,
    /// The sensor that says it.
    pub sensor: Cow<'static, str>,
    /// What it is about.
    pub subject: Subject,
    /// What it says.
    pub body: Body,
}

/// What a record says.
#[derive(Debug, Clone)]
pub enum Body {
    /// A value of a fact, in the fact's unit.
    Sample {
        /// What was measured.
        fact: &'static Fact,
        /// How much.
        value: f64,
    },
    /// Something happened.
    Event {
        /// What happened.
        fact: &'static Fact,
        /// What it says: the struct of its fact.
        payload: Arc<dyn Payload>,
    },
    /// Something could not be seen.
    /// Boxed: it is rare, and would make every record twice as large.
    Gap(Box<Gap>),
}

impl Record {
    /// The fact it is about; a gap has none.
    pub fn fact(&self) -> Option<&'static Fact> {
        match &self.body {
            Body::Sample { fact, .. } | Body::Event { fact, .. } => Some(fact),
            Body::Gap(_) => None,
        }
    }

    /// The value of a sample.
    pub fn value(&self) -> Option<f64> {
        match self.body {
            Body::Sample { value, .. } => Some(value),
            _ => None,
        }
    }

    /// What an event of this fact says; none if it is anything else.
    pub fn says<T: Payload>(&self, of: &'static EventFact<T>) -> Option<&T> {
        match &self.body {
            Body::Event { fact, payload } if **fact == of.fact => payload.as_any().downcast_ref(),
            _ => None,
        }
    }
}

impl Body {
    /// An event of a fact as it was stored; a fact of values has none.
    pub fn read_event(fact: &'static Fact, fields: &Fields) -> Result<Self, Malformed> {
        let spec = fact.payload.ok_or(Malformed { field: "payload" })?;
        let payload = (spec.read)(fields)?;
        Ok(Body::Event { fact, payload })
    }
}

/// Events are equal when what is stored of them is.
impl PartialEq for Body {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Body::Sample { fact, value },
                Body::Sample {
                    fact: other_fact,
                    value: other,
                },
            ) => fact == other_fact && value == other,
            (
                Body::Event { fact, payload },
                Body::Event {
                    fact: other_fact,
                    payload: other,
                },
            ) => fact == other_fact && payload.fields() == other.fields(),
            (Body::Gap(gap), Body::Gap(other)) => gap == other,
            _ => false,
        }
    }
}

/// An event and what it says.
#[derive(Debug)]
pub struct Event<'a, T> {
    /// When it happened.
    pub at: Moment,
    /// To what.
    pub subject: &'a Subject,
    /// What it says.
    pub says: &'a T,
}

impl<T> Clone for Event<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Event<'_, T> {}

impl<'a, T: Payload> Event<'a, T> {
    /// The record as an event of this fact; none if it is anything else.
    pub fn of(record: &'a Record, fact: &'static EventFact<T>) -> Option<Self> {
        Some(Self {
            at: record.at,
            subject: &record.subject,
            says: record.says(fact)?,
        })
    }
}

/// Where a sensor puts its records.
#[derive(Debug)]
pub struct Sink {
    sensor: &'static str,
    now: Moment,
    records: Vec<Record>,
    stacks: Vec<StackBatch>,
}

impl Sink {
    /// For one poll of one sensor that begins now.
    pub fn new(sensor: &'static str, now: Moment) -> Self {
        Self {
            sensor,
            now,
            records: Vec::new(),
            stacks: Vec::new(),
        }
    }

    /// When this poll began.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Takes down a value that holds now.
    pub fn sample(&mut self, subject: &Subject, fact: &'static Fact, value: f64) {
        self.push(self.now, subject, Body::Sample { fact, value });
    }

    /// Takes down a value that held at an earlier moment.
    pub fn sample_at(&mut self, at: Moment, subject: &Subject, fact: &'static Fact, value: f64) {
        self.push(at, subject, Body::Sample { fact, value });
    }

    /// Takes down something that happened at another moment than now.
    pub fn event<T: Payload>(
        &mut self,
        at: Moment,
        subject: &Subject,
        fact: &'static EventFact<T>,
        says: T,
    ) {
        let body = Body::Event {
            fact: &fact.fact,
            payload: Arc::new(says),
        };
        self.push(at, subject, body);
    }

    /// Takes down that something could not be seen.
    pub fn gap(&mut self, subject: &Subject, gap: Gap) {
        self.push(self.now, subject, Body::Gap(Box::new(gap)));
    }

    /// Takes down samples of stacks, which have tables of their own.
    pub fn stacks(&mut self, batch: StackBatch) {
        self.stacks.push(batch);
    }

    /// The samples of stacks that have been taken down; they are gone from here then.
    pub fn take_stacks(&mut self) -> Vec<StackBatch> {
        std::mem::take(&mut self.stacks)
    }

    /// What has been taken down, in the order it came.
    pub fn into_records(self) -> Vec<Record> {
        self.records
    }

    fn push(&mut self, at: Moment, subject: &Subject, body: Body) {
        let sensor = Cow::Borrowed(self.sensor);
        self.records.push(Record {
            at,
            sensor,
            subject: subject.clone(),
            body,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An agent has up to a hundred thousand of them in memory.
    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Record>() <= 88, "{}", size_of::<Record>());
    }
}
