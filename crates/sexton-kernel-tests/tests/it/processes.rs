//! Defunct processes that the test makes are the ones that are told.

use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::process::{self as fact, DefunctChildren};
use sexton_model::record::{Event, Sink};
use sexton_sensors::{SENSORS, Sensor, SensorSpec};

const N: u64 = 211;

/// A process that has children and waits for none of them; ended when the test is.
struct Neglect(Child);

impl Neglect {
    /// The children outlive the shell, which becomes a program that knows nothing of them.
    fn start() -> Self {
        let script = format!("for i in $(seq {N}); do sleep 2 & done; exec sleep 120");
        let mut command = Command::new("sh");
        Self(command.args(["-c", &script]).spawn().expect("it starts"))
    }

    fn end(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for Neglect {
    fn drop(&mut self) {
        self.end();
    }
}

fn look(
    spec: &SensorSpec,
    sensor: &mut dyn Sensor,
    host: &Host,
    parent: u32,
) -> Option<DefunctChildren> {
    let mut out = Sink::new(spec.name, clock::now());
    sensor.poll(host, &mut out);
    let records = out.into_records();
    let events = records.iter();
    let mut events = events.filter_map(|record| Event::of(record, &fact::DEFUNCT_CHILDREN));
    let found = events.find(|event| event.says.pid == parent);
    found.map(|event| event.says.clone())
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn every_defunct_child_of_a_parent_is_counted() {
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let spec = SENSORS.iter().find(|spec| spec.name == "processes");
    let spec = spec.expect("there is one");
    let mut neglect = Neglect::start();
    let parent = neglect.0.id();
    let deadline = Instant::now() + Duration::from_secs(60);
    // Opened anew until all have exited, so that every poll is a first one, which scans.
    let (mut sensor, first) = loop {
        assert!(Instant::now() < deadline, "{N} children never exited");
        thread::sleep(Duration::from_millis(500));
        let mut sensor = (spec.open)(&host).expect("procfs is there");
        match look(spec, sensor.as_mut(), &host, parent) {
            Some(found) if found.n == N => break (sensor, found),
            _ => {}
        }
    };
    assert_eq!(first.comm.as_deref(), Some("sleep"));
    assert_eq!(first.n_lasting, 0);
    assert!(first.pid_max.is_some_and(|most| most > N));
    thread::sleep(spec.every);
    let second = look(spec, sensor.as_mut(), &host, parent).expect("they are still there");
    assert_eq!((second.n, second.n_lasting), (N, N));
    neglect.end();
    thread::sleep(spec.every * 2);
    let third = look(spec, sensor.as_mut(), &host, parent).expect("told that they are gone");
    assert_eq!(third.n, 0);
}
