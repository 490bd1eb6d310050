//! Facts: everything that can be known of a node. Each is one definition: name, kind,
//! measure, help, what an event of it says, how it is shown and how it is exported. Every
//! surface reads that definition and nothing else: the store, the page, the terminal view,
//! exporters, documents.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use crate::payload::{PayloadSpec, Structure};
use metric::Metric;
use show::Show;

/// Declares the facts of an area, and the list of them. The documentation of a fact is its
/// help; `shown` is how the time line shows it, `metric` how it is exported.
macro_rules! facts {
    ($(
        $(#[doc = $help:literal])+
        $kind:ident $name:ident = $id:literal $(in $measure:ident)? $(of $payload:ty)?
        $(, shown: $show:expr)? $(, metric: $metric:expr)?;
    )+) => {
        $( facts! {
            @$kind $name, $id, concat!($($help),+), ($($measure)?), ($($payload)?), ($($show)?),
            ($($metric)?)
        } )+

        /// All of this area.
        pub(super) static ALL: &[&$crate::fact::Fact] = &[ $( facts!(@ref $kind $name), )+ ];
    };
    (@ref event $name:ident) => { &$name.fact };
    (@ref $kind:ident $name:ident) => { &$name };
    (@show) => { $crate::fact::show::Show::Not };
    (@show $show:expr) => { $show };
    (@metric) => { None };
    (@metric $metric:expr) => { Some($metric) };
    (@gauge $name:ident, $id:literal, $help:expr, ($measure:ident), (), ($($show:expr)?),
     ($($metric:expr)?)) => {
        #[doc = $help]
        pub static $name: $crate::fact::Fact = $crate::fact::Fact::sampled(
            $id, $crate::fact::FactKind::Gauge, $crate::fact::Measure::$measure, $help,
            facts!(@show $($show)?), facts!(@metric $($metric)?),
        );
    };
    (@counter $name:ident, $id:literal, $help:expr, ($measure:ident), (), ($($show:expr)?),
     ($($metric:expr)?)) => {
        #[doc = $help]
        pub static $name: $crate::fact::Fact = $crate::fact::Fact::sampled(
            $id, $crate::fact::FactKind::Counter, $crate::fact::Measure::$measure, $help,
            facts!(@show $($show)?), facts!(@metric $($metric)?),
        );
    };
    (@event $name:ident, $id:literal, $help:expr, (), ($payload:ty), ($($show:expr)?),
     ($($metric:expr)?)) => {
        #[doc = $help]
        pub static $name: $crate::fact::EventFact<$payload> =
            $crate::fact::EventFact::new(
                $id, $help, facts!(@show $($show)?), facts!(@metric $($metric)?),
            );
    };
}

/// How the time line shows an event, by a function of its payload.
macro_rules! marks {
    ($payload:ty, $mark:path) => {
        $crate::fact::show::Show::Marks(|subject, payload| {
            let payload: &$payload = payload.as_any().downcast_ref()?;
            $mark(subject, payload)
        })
    };
}

#[cfg(feature = "test-build")]
pub mod added;
pub mod cgroup;
pub mod container;
pub mod core;
pub mod disk;
pub mod exit;
pub mod filesystem;
pub mod finding;
pub mod host;
pub mod klog;
pub mod limit;
pub mod memcg;
pub mod memory;
pub mod metric;
pub mod napi;
pub mod network;
pub mod nic;
pub mod pressure;
pub mod process;
pub mod runq;
pub mod sexton;
pub mod show;
pub mod stack;
pub mod task;
pub mod unit;

/// Facts that belong together.
#[derive(Debug)]
pub struct Area {
    /// Its heading in documents.
    pub title: &'static str,
    /// Its facts.
    pub facts: &'static [&'static Fact],
}

macro_rules! areas {
    ($( $(#[$only:meta])? $title:literal: $area:ident, )+) => {
        &[ $( $(#[$only])? Area { title: $title, facts: $area::ALL }, )+ ]
    };
}

static AREAS: &[Area] = areas! {
    "Cores": core,
    "Waits for a core": runq,
    "Memory cgroups": memcg,
    "Cgroups": cgroup,
    "Units": unit,
    "Containers": container,
    "Network polling": napi,
    "Network devices": nic,
    "Packets that are dropped": network,
    "Kernel log": klog,
    "Processes": process,
    "Processes that exited": exit,
    "Pressure": pressure,
    "Memory": memory,
    "Disks": disk,
    "Filesystems": filesystem,
    "Limits": limit,
    "Stacks": stack,
    "The node itself": host,
    "sexton itself": sexton,
    "Findings": finding,
    #[cfg(feature = "test-build")]
    "Added in test builds": added,
};

/// All areas.
pub fn areas() -> impl Iterator<Item = &'static Area> {
    AREAS.iter()
}

/// The fact of that name.
pub fn by_name(name: &str) -> Option<&'static Fact> {
    all().find(|fact| fact.name == name)
}

/// Every fact there is.
pub fn all() -> impl Iterator<Item = &'static Fact> {
    areas().flat_map(|area| area.facts.iter().copied())
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

impl FactKind {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            FactKind::Gauge => "gauge",
            FactKind::Counter => "counter",
            FactKind::Event => "event",
        }
    }
}

/// What values are measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
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
    /// Nothing: an event.
    None,
}

impl Measure {
    /// Its name in recordings.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Count => "count",
            Measure::Bytes => "bytes",
            Measure::Nanoseconds => "ns",
            Measure::Seconds => "s",
            Measure::Ratio => "ratio",
            Measure::None => "",
        }
    }
}

/// One thing that can be known. Facts are equal when their names are.
#[derive(Debug)]
pub struct Fact {
    /// Its name, which is also its name in recordings and metrics.
    pub name: &'static str,
    /// What its values are measured in.
    pub measure: Measure,
    /// How its values behave.
    pub kind: FactKind,
    /// What it means, in one line.
    pub help: &'static str,
    /// How its events are read; values have none.
    pub payload: Option<PayloadSpec>,
    /// How the time line shows it.
    pub show: Show,
    /// How it is exported; what has none stays in recordings.
    pub metric: Option<Metric>,
}

impl Fact {
    const fn sampled(
        name: &'static str,
        kind: FactKind,
        measure: Measure,
        help: &'static str,
        show: Show,
        metric: Option<Metric>,
    ) -> Self {
        Self {
            name,
            measure,
            kind,
            help: help.trim_ascii(),
            payload: None,
            show,
            metric,
        }
    }
}

impl PartialEq for Fact {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.name == other.name
    }
}

impl Eq for Fact {}

/// Something that happens, and the struct that says more about it.
pub struct EventFact<T> {
    /// The fact, without its type.
    pub fact: Fact,
    payload: PhantomData<fn() -> T>,
}

impl<T: Structure> EventFact<T> {
    const fn new(
        name: &'static str,
        help: &'static str,
        show: Show,
        metric: Option<Metric>,
    ) -> Self {
        Self {
            fact: Fact {
                name,
                measure: Measure::None,
                kind: FactKind::Event,
                help: help.trim_ascii(),
                payload: Some(PayloadSpec::of::<T>()),
                show,
                metric,
            },
            payload: PhantomData,
        }
    }
}

impl<T> Deref for EventFact<T> {
    type Target = Fact;

    fn deref(&self) -> &Fact {
        &self.fact
    }
}

impl<T> fmt::Debug for EventFact<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fact.fmt(f)
    }
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
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        for fact in all() {
            assert!(fact.name.chars().all(plain), "{}", fact.name);
            let is_event = fact.kind == FactKind::Event;
            assert_eq!(fact.measure == Measure::None, is_event, "{}", fact.name);
            assert_eq!(fact.payload.is_some(), is_event, "{}", fact.name);
        }
    }
}
