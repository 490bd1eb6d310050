//! Reads a story: records written down by hand, for what no machine here can record.

use serde::Deserialize;
use sexton_model::fact::{self, Fact};
use sexton_model::moment::Moment;
use sexton_model::payload::{Fields, Value};
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::timeline::Records;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    poll: Vec<Poll>,
    sample: Vec<Told>,
    event: Vec<Told>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Poll {
    sensors: Vec<String>,
    at: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    sensor: String,
    at: f64,
    subject: String,
    fact: String,
    value: Option<f64>,
    #[serde(default)]
    details: toml::Table,
    repeat: Option<u32>,
    every: Option<f64>,
}

/// The records of a story.
///
/// # Panics
///
/// If it is none.
pub fn read(text: &str) -> Records {
    let story: Story = toml::from_str(text).expect("it is a story");
    let mut records = Vec::new();
    for poll in &story.poll {
        for at in &poll.at {
            records.extend(poll.sensors.iter().map(|sensor| polled(sensor, *at)));
        }
    }
    for told in story.sample.iter().chain(&story.event) {
        let n = told.repeat.unwrap_or(1);
        records.extend((0..n).map(|i| told.record(i)));
    }
    Records::new(records)
}

fn polled(sensor: &str, at: f64) -> Record {
    Record {
        at: moment(at),
        sensor: "sexton".into(),
        subject: Subject::new(SubjectKind::Sensor, sensor),
        body: Body::Sample {
            fact: &fact::sexton::SEXTON_POLL_NS,
            value: 1.0,
        },
    }
}

impl Told {
    fn record(&self, i: u32) -> Record {
        let known: &'static Fact =
            fact::by_name(&self.fact).unwrap_or_else(|| panic!("{} is no fact", self.fact));
        Record {
            at: moment(self.at + f64::from(i) * self.every.unwrap_or(0.0)),
            sensor: self.sensor.clone().into(),
            subject: subject(&filled(&self.subject, i)),
            body: match self.value {
                Some(value) => Body::Sample { fact: known, value },
                None => Body::read_event(known, &self.fields(i))
                    .unwrap_or_else(|error| panic!("{} at {}: {error}", self.fact, self.at)),
            },
        }
    }

    fn fields(&self, i: u32) -> Fields {
        let field = |(name, value): (&String, &toml::Value)| {
            let text = value
                .as_str()
                .unwrap_or_else(|| panic!("{name} is no text"));
            (name.clone().into(), Value::Text(filled(text, i)))
        };
        self.details.iter().map(field).collect()
    }
}

/// Puts numbers where `{i:064}` or `{23:064}` stands.
fn filled(text: &str, i: u32) -> String {
    let text = text.replace("{i:064}", &format!("{i:064x}"));
    text.replace("{23:064}", &format!("{:064x}", 23))
}

fn subject(text: &str) -> Subject {
    let (kind, name) = text.split_once(' ').unwrap_or((text, ""));
    let kind = SubjectKind::by_name(kind).unwrap_or_else(|| panic!("{kind} is no kind"));
    Subject::new(kind, name)
}

fn moment(seconds: f64) -> Moment {
    Moment::from_ns((seconds * 1e9).round() as u64)
}
