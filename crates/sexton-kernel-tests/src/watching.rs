//! Runs one sensor by hand, as the agent would.

use std::thread;
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_model::fact::{EventFact, Fact};
use sexton_model::gap::Gap;
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Event, Record, Sink};
use sexton_model::stack::StackBatch;
use sexton_sensors::{SENSORS, Sensor, stacks};

/// A sensor, and all it has said.
pub struct Watching {
    host: Host,
    name: &'static str,
    sensor: Box<dyn Sensor>,
    records: Vec<Record>,
    stacks: Vec<StackBatch>,
}

impl Watching {
    /// Opens the sensor of that name; fails if it cannot see here.
    pub fn open(name: &str) -> Self {
        let host = Host::live().expect("a mount table");
        let spec = SENSORS.iter().find(|spec| spec.name == name);
        let spec = spec.expect("a sensor of that name");
        Self::opened(spec.name, (spec.open)(&host), host)
    }

    /// Samples stacks as its user has set.
    pub fn stacks_as(settings: stacks::Settings) -> Self {
        let host = Host::live().expect("a mount table");
        Self::opened(stacks::NAME, settings.opener()(&host), host)
    }

    fn opened(name: &'static str, opened: Result<Box<dyn Sensor>, Gap>, host: Host) -> Self {
        let sensor = match opened {
            Ok(sensor) => sensor,
            Err(gap) => panic!("{name} cannot see here: {}", gap.text),
        };
        Self {
            host,
            name,
            sensor,
            records: Vec::new(),
            stacks: Vec::new(),
        }
    }

    /// Samples stacks this number of times a second.
    pub fn stacks_at(hz: u32) -> Self {
        Self::stacks_as(stacks::Settings {
            hz,
            ..stacks::Settings::default()
        })
    }

    /// Polls every quarter of a second for so long.
    pub fn poll_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let mut sink = Sink::new(self.name, clock::now());
            self.sensor.poll(&self.host, &mut sink);
            self.stacks.extend(sink.take_stacks());
            self.records.extend(sink.into_records());
            thread::sleep(Duration::from_millis(250));
        }
    }

    /// Polls until that is so, and a second longer: what it has led to is told by then.
    pub fn poll_until(&mut self, mut is_so: impl FnMut() -> bool) {
        while !is_so() {
            self.poll_for(Duration::from_millis(1));
        }
        self.poll_for(Duration::from_secs(1));
    }

    /// What it said of one fact.
    pub fn of(&self, fact: &'static Fact) -> Vec<&Record> {
        let records = self.records.iter();
        records
            .filter(|record| record.fact() == Some(fact))
            .collect()
    }

    /// The events of a fact.
    pub fn events<T: Payload>(&self, fact: &'static EventFact<T>) -> Vec<Event<'_, T>> {
        let records = self.records.iter();
        records
            .filter_map(|record| Event::of(record, fact))
            .collect()
    }

    /// The samples of stacks it has taken.
    pub fn stacks(&self) -> &[StackBatch] {
        &self.stacks
    }

    /// What it could not see.
    pub fn gaps(&self) -> Vec<&Record> {
        let is_gap = |record: &&Record| matches!(record.body, Body::Gap(_));
        self.records.iter().filter(is_gap).collect()
    }
}
