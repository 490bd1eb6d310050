//! Records: what sensors say. A sample, an event, or a gap where there should be one.

use std::borrow::Cow;

use crate::fact::Fact;
use crate::gap::Gap;
use crate::moment::Moment;
use crate::stack::StackBatch;
use crate::subject::Subject;

/// More about an event: `("exit_code", "137")`. Keys are in snake case.
pub type Detail = (Cow<'static, str>, String);

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
#[derive(Debug, Clone, PartialEq)]
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
        /// More about it, in a fixed order for each fact.
        details: Vec<Detail>,
    },
    /// Something could not be seen.
    Gap(Gap),
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

    /// A detail of an event.
    pub fn detail(&self, key: &str) -> Option<&str> {
        match &self.body {
            Body::Event { details, .. } => details
                .iter()
                .find(|(known, _)| known == key)
                .map(|(_, value)| value.as_str()),
            _ => None,
        }
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
    pub fn event(
        &mut self,
        at: Moment,
        subject: &Subject,
        fact: &'static Fact,
        details: Vec<Detail>,
    ) {
        self.push(at, subject, Body::Event { fact, details });
    }

    /// Takes down that something could not be seen.
    pub fn gap(&mut self, subject: &Subject, gap: Gap) {
        self.push(self.now, subject, Body::Gap(gap));
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
