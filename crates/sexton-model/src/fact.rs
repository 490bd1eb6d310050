//! Facts: the names of everything that can be known of a node. Each is defined
//! once, here, and every surface reads that definition.

pub mod cgroup;
pub mod container;
pub mod core;
pub mod exit;
pub mod host;
pub mod klog;
pub mod memcg;
pub mod napi;
pub mod nic;
pub mod pressure;
pub mod runq;
pub mod sexton;
pub mod stack;
pub mod unit;

/// All facts, by area.
static AREAS: &[&[&Fact]] = &[
    cgroup::ALL,
    container::ALL,
    core::ALL,
    exit::ALL,
    host::ALL,
    klog::ALL,
    memcg::ALL,
    napi::ALL,
    nic::ALL,
    pressure::ALL,
    runq::ALL,
    sexton::ALL,
    stack::ALL,
    unit::ALL,
];

/// The fact of that name.
pub fn by_name(name: &str) -> Option<&'static Fact> {
    all().find(|fact| fact.name == name)
}

/// Every fact there is.
pub fn all() -> impl Iterator<Item = &'static Fact> {
    AREAS.iter().flat_map(|area| area.iter().copied())
}

/// How a value behaves over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// Goes up and down.
    Gauge,
    /// Only grows, until it is reset.
    Counter,
    /// Happens.
    Event,
}

/// The unit of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things, counted.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Seconds.
    Seconds,
    /// A part of a whole, from 0 to 1.
    Ratio,
    /// None: an event.
    None,
}

/// One thing that can be known.
#[derive(Debug, PartialEq, Eq)]
pub struct Fact {
    /// Its name, which is also its name in recordings and metrics.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// How its values behave.
    pub kind: FactKind,
    /// What it means, in one line.
    pub help: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_speak_for_themselves() {
        let mut names: Vec<&str> = all().map(|fact| fact.name).collect();
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n, "two facts of one name");
        for fact in all() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(fact.name.chars().all(plain), "{}", fact.name);
            assert_eq!(
                fact.unit == Unit::None,
                fact.kind == FactKind::Event,
                "{}",
                fact.name
            );
        }
    }
}
