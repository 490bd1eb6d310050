//! A sensor that is open, and what it has said.

use std::thread;
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::{EventFact, Fact};
use sexton_model::gap::Why;
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Event, Record, Sink};
use sexton_sensors::{SENSORS, Sensor};

pub(crate) struct Open {
    name: &'static str,
    host: Host,
    sensor: Box<dyn Sensor>,
    pub(crate) said: Vec<Record>,
}

impl Open {
    /// Opens a sensor, which must see.
    pub(crate) fn new(name: &'static str) -> Self {
        require(Need::Root);
        require(Need::Bpf);
        let host = Host::live().expect("a mount table");
        let spec = SENSORS.iter().find(|spec| spec.name == name);
        let sensor = (spec.expect("it is listed").open)(&host).expect("it sees");
        let said = Vec::new();
        Self {
            name,
            host,
            sensor,
            said,
        }
    }

    /// Polls once and keeps what it says.
    pub(crate) fn poll(&mut self) {
        let mut sink = Sink::new(self.name, clock::now());
        self.sensor.poll(&self.host, &mut sink);
        self.said.extend(sink.into_records());
    }

    /// Polls until it has said what is waited for, or five seconds have gone.
    pub(crate) fn poll_until(&mut self, enough: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(5);
        self.poll();
        while !enough(self) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
            self.poll();
        }
    }

    /// Events of a fact.
    pub(crate) fn events<T: Payload>(
        &self,
        fact: &'static EventFact<T>,
    ) -> impl Iterator<Item = Event<'_, T>> {
        let said = self.said.iter();
        said.filter_map(move |record| Event::of(record, fact))
    }

    /// The last value of a fact.
    pub(crate) fn last(&self, fact: &Fact) -> Option<u64> {
        let mut records = self.said.iter().rev();
        let record = records.find(|record| record.fact() == Some(fact))?;
        record.value().map(|value| value as u64)
    }

    /// How many it says it lost.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.said.iter().map(|record| match &record.body {
            Body::Gap(gap) => match gap.why {
                Why::Lost(n) => n,
                _ => panic!("a gap of another kind: {gap:?}"),
            },
            _ => 0,
        });
        lost.sum()
    }
}
