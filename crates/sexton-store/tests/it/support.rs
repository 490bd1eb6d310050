//! Records and bundles for tests.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sexton_model::fact::sexton::{
    ClockJump, SEXTON_CLOCK_JUMP, SEXTON_POLL_NS, SEXTON_WALL_CLOCK_NS,
};
use sexton_model::fact::{EventFact, Fact};
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::payload::Payload;
use sexton_model::record::{Body, Record};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_store::{BundleWriter, Limits, Node, StoreError};

pub(crate) static POLL: &Fact = &SEXTON_POLL_NS;
pub(crate) static WALL: &Fact = &SEXTON_WALL_CLOCK_NS;
pub(crate) static JUMP: &Fact = &SEXTON_CLOCK_JUMP.fact;

pub(crate) fn node() -> Node {
    Node {
        name: "node-1".into(),
        kernel: "6.8.0".into(),
        boot_id: "0f".into(),
    }
}

pub(crate) fn limits(max_bytes: u64) -> Limits {
    Limits {
        max_bytes,
        max_age: Duration::from_secs(1 << 40),
        segment_bytes: Limits::MIN_SEGMENT_BYTES,
        segment_age: Duration::from_secs(1 << 40),
    }
}

pub(crate) fn at(ns: u64) -> Moment {
    Moment::from_ns(ns)
}

pub(crate) fn create(dir: &Path, limits: Limits, now: u64) -> Result<BundleWriter, StoreError> {
    BundleWriter::create(dir, limits, node(), at(now))
}

pub(crate) fn sample(ns: u64, subject: &str, fact: &'static Fact, value: f64) -> Record {
    Record {
        at: at(ns),
        sensor: "test".into(),
        subject: Subject::new(SubjectKind::Cgroup, subject),
        body: Body::Sample { fact, value },
    }
}

pub(crate) fn event(ns: u64, says: ClockJump) -> Record {
    happened(ns, &SEXTON_CLOCK_JUMP, says)
}

pub(crate) fn happened<T: Payload>(ns: u64, fact: &'static EventFact<T>, says: T) -> Record {
    Record {
        at: at(ns),
        sensor: "test".into(),
        subject: Subject::node(),
        body: Body::Event {
            fact: &fact.fact,
            payload: Arc::new(says),
        },
    }
}

pub(crate) fn gap(ns: u64, blind: &'static str, why: Why) -> Record {
    Record {
        at: at(ns),
        sensor: "test".into(),
        subject: Subject::node(),
        body: Body::Gap(Box::new(
            Gap::new(blind, why, "nothing to see").with_remedy("look again"),
        )),
    }
}

/// Values of a few cgroups that wander, so that segments fill with something.
pub(crate) fn busy(seed: u64, n: u64) -> Vec<Record> {
    (seed..seed + n)
        .map(|i| {
            let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let name = format!("/kubepods/pod{}", mixed >> 60);
            sample(i * 1000, &name, POLL, (mixed >> 20) as f64 / 7.0)
        })
        .collect()
}

/// The sizes of all files of a bundle.
pub(crate) fn bytes_under(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.metadata() {
            Ok(file) if file.is_dir() => bytes_under(&entry.path()),
            // What is being sealed may be done and go meanwhile.
            file => file.map_or(0, |file| file.len()),
        })
        .sum()
}

/// Waits until no closed log is being sealed. Only the writer's own calls begin that, so
/// what is quiet stays so.
pub(crate) fn until_quiet(dir: &Path) {
    while dir.join("records/sealing.wal").exists() {
        std::thread::yield_now();
    }
}
