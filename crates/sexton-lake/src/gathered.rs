//! What a report tells of records, gathered as they pass: what the node is, its units and
//! software by their last word, and one number for each fact of the reported time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sexton_model::fact::host::HOST_DESCRIPTION;
use sexton_model::fact::nic::NIC_IDENTITY;
use sexton_model::fact::unit::{
    UNIT_CHANGED, UNIT_CONTEXT, UNIT_FAILED, UNIT_FILE, UNIT_SEEN, UNIT_SHAPE, UNIT_STARTED,
    UNIT_STOPPED,
};
use sexton_model::fact::{Fact, FactKind};
use sexton_model::moment::Moment;
use sexton_model::record::{Body, Record};
use sexton_model::subject::Subject;

use crate::set::{Kind, Set};

/// Names that are kept of one sort: units, files of units, devices, parts of a look.
const MAX_NAMES: usize = 8192;
/// Counters of one fact that are followed from one reported time to the next.
const MAX_COUNTERS: usize = 8192;

/// Facts that say what a node is. A reader that joins late has to see all of them.
pub fn identity_facts() -> Vec<&'static Fact> {
    vec![
        &HOST_DESCRIPTION.fact,
        &NIC_IDENTITY.fact,
        &UNIT_CHANGED.fact,
        &UNIT_CONTEXT.fact,
        &UNIT_FAILED.fact,
        &UNIT_FILE.fact,
        &UNIT_SEEN.fact,
        &UNIT_SHAPE.fact,
        &UNIT_STARTED.fact,
        &UNIT_STOPPED.fact,
    ]
}

/// What was gathered.
#[derive(Debug, Default)]
pub struct Gathered {
    description: BTreeMap<String, String>,
    drivers: BTreeMap<Arc<str>, String>,
    profile: Option<String>,
    units: BTreeMap<Arc<str>, String>,
    unit_files: BTreeMap<Arc<str>, String>,
    /// By the part of the look that told them, so that a later look replaces them.
    contexts: BTreeMap<Arc<str>, Vec<(Kind, String, String)>>,
    facts: BTreeMap<&'static str, Summary>,
    span: Option<(Moment, Moment)>,
}

impl Gathered {
    /// Takes a record; they come in the order of time.
    pub fn take(&mut self, record: &Record) {
        self.take_identity(record);
        let (fact, value) = match &record.body {
            Body::Sample { fact, value } => (*fact, Some(*value)),
            Body::Event { fact, .. } => (*fact, None),
            Body::Gap(_) => return,
        };
        let (first, last) = self.span.unwrap_or((record.at, record.at));
        self.span = Some((first.min(record.at), last.max(record.at)));
        let summary = self
            .facts
            .entry(fact.name)
            .or_insert_with(|| Summary::of(fact));
        summary.add(&record.subject, value);
    }

    /// Takes what a record says of the node, and nothing else of it.
    pub fn take_identity(&mut self, record: &Record) {
        if let Some(says) = record.says(&HOST_DESCRIPTION) {
            self.description.clone_from(&says.entries);
        } else if let Some(says) = record.says(&NIC_IDENTITY) {
            let driver = says.driver.clone().unwrap_or_default();
            keep(&mut self.drivers, &record.subject.name, driver);
        } else if let Some(says) = record.says(&UNIT_SHAPE) {
            self.profile.clone_from(&says.shape);
        } else if let Some(file) = record.says(&UNIT_FILE) {
            let state = file.state.clone().unwrap_or_default();
            if is_common(&record.subject.name) {
                keep(&mut self.unit_files, &record.subject.name, state);
            }
        } else if let Some(context) = record.says(&UNIT_CONTEXT) {
            let units = context.units.iter().filter(|unit| is_common(&unit.name));
            let units = units.map(|unit| (Kind::UnitFile, unit.name.clone(), unit.state.clone()));
            let packages = context.packages.iter();
            let packages = packages.map(|name| (Kind::Package, name.clone(), String::new()));
            let members = units.chain(packages).take(MAX_NAMES).collect();
            keep(&mut self.contexts, &record.subject.name, members);
        } else if let Some(state) = unit_state(record)
            && is_common(&record.subject.name)
        {
            keep(&mut self.units, &record.subject.name, state);
        }
    }

    /// The next reported time begins: what the node is stays, facts begin anew. Counters go
    /// on from where they were, so that no growth is lost between two reports.
    pub fn begin(&mut self) {
        self.span = None;
        self.facts.retain(|_, summary| summary.begin());
    }

    /// The first and the last moment of the reported time.
    pub fn span(&self) -> Option<(Moment, Moment)> {
        self.span
    }

    /// What the node says of itself.
    pub fn description(&self) -> &BTreeMap<String, String> {
        &self.description
    }

    /// The deployment profile.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    /// The drivers of the network devices, each once.
    pub fn nic_driver(&self) -> Option<String> {
        let is_real =
            |driver: &&String| !matches!(&***driver, "" | "bridge" | "veth" | "tun" | "dummy");
        let mut drivers: Vec<&str> = self
            .drivers
            .values()
            .filter(is_real)
            .map(String::as_str)
            .collect();
        drivers.sort_unstable();
        drivers.dedup();
        (!drivers.is_empty()).then(|| drivers.join("+"))
    }

    /// Units and the state that each was in last.
    pub fn units(&self) -> Option<Set> {
        let mut set = Set::default();
        for (unit, state) in &self.units {
            set.add(Kind::Unit, unit, state);
        }
        (!set.is_empty()).then_some(set)
    }

    /// Packages, and files of units with their states.
    pub fn software(&self) -> Option<Set> {
        let mut set = Set::default();
        for (unit, state) in &self.unit_files {
            set.add(Kind::UnitFile, unit, state);
        }
        for (kind, item, value) in self.contexts.values().flatten() {
            let is_told = *kind == Kind::UnitFile && self.unit_files.contains_key(&**item);
            if !is_told {
                set.add(*kind, item, value);
            }
        }
        (!set.is_empty()).then_some(set)
    }

    /// One number for each fact that was seen: the mean of a gauge, and its largest value as
    /// `_max`; how much counters grew; how many events there were.
    pub fn facts(&self) -> BTreeMap<String, f64> {
        let mut columns = BTreeMap::new();
        for (name, summary) in self.facts.iter().filter(|(_, summary)| summary.n > 0) {
            match summary.fact.kind {
                FactKind::Gauge if summary.n_values > 0 => {
                    let mean = summary.sum / summary.n_values as f64;
                    columns.insert((*name).to_owned(), rounded(mean));
                    columns.insert(format!("{name}_max"), rounded(summary.max));
                }
                FactKind::Gauge => {}
                FactKind::Counter => {
                    columns.insert((*name).to_owned(), rounded(summary.grown));
                }
                FactKind::Event => {
                    columns.insert((*name).to_owned(), summary.n as f64);
                }
            }
        }
        columns
    }
}

fn keep<T>(map: &mut BTreeMap<Arc<str>, T>, name: &Arc<str>, value: T) {
    if map.len() < MAX_NAMES || map.contains_key(name) {
        map.insert(name.clone(), value);
    }
}

fn unit_state(record: &Record) -> Option<String> {
    let seen = record
        .says(&UNIT_SEEN)
        .or_else(|| record.says(&UNIT_CHANGED));
    if let Some(seen) = seen {
        seen.active.clone()
    } else if record.says(&UNIT_STARTED).is_some() {
        Some("active".to_owned())
    } else if record.fact() == Some(&UNIT_FAILED.fact) {
        Some("failed".to_owned())
    } else if record.says(&UNIT_STOPPED).is_some() {
        Some("inactive".to_owned())
    } else {
        None
    }
}

/// Whether other nodes may have a unit of that name too: units that are made at run time are
/// of this node alone.
fn is_common(unit: &str) -> bool {
    let of_the_image = [".service", ".socket", ".timer", ".path", ".target"];
    let is_transient = ["run-", "user@", "user-runtime-dir@", "session-", "krun-"];
    of_the_image.iter().any(|suffix| unit.ends_with(suffix))
        && !is_transient.iter().any(|prefix| unit.starts_with(prefix))
}

#[derive(Debug)]
struct Summary {
    fact: &'static Fact,
    n: u64,
    n_values: u64,
    sum: f64,
    max: f64,
    grown: f64,
    counters: HashMap<Subject, Counter>,
}

#[derive(Debug)]
struct Counter {
    last: f64,
    is_seen: bool,
}

impl Summary {
    fn of(fact: &'static Fact) -> Self {
        Self {
            fact,
            n: 0,
            n_values: 0,
            sum: 0.0,
            max: f64::NEG_INFINITY,
            grown: 0.0,
            counters: HashMap::new(),
        }
    }

    fn add(&mut self, subject: &Subject, value: Option<f64>) {
        self.n += 1;
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        self.n_values += 1;
        self.sum += value;
        self.max = self.max.max(value);
        if self.fact.kind != FactKind::Counter {
            return;
        }
        if let Some(counter) = self.counters.get_mut(subject) {
            // A counter that fell was reset, and began anew at 0.
            self.grown += match value >= counter.last {
                true => value - counter.last,
                false => value,
            };
            counter.last = value;
            counter.is_seen = true;
        } else if self.counters.len() < MAX_COUNTERS {
            let counter = Counter {
                last: value,
                is_seen: true,
            };
            self.counters.insert(subject.clone(), counter);
        }
    }

    /// Begins anew; whether there is anything to go on from.
    fn begin(&mut self) -> bool {
        self.counters.retain(|_, counter| counter.is_seen);
        for counter in self.counters.values_mut() {
            counter.is_seen = false;
        }
        let counters = std::mem::take(&mut self.counters);
        *self = Self {
            counters,
            ..Self::of(self.fact)
        };
        !self.counters.is_empty()
    }
}

/// To four significant digits: what many nodes say alike is kept once.
pub(crate) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    if digits <= 0 {
        let scale = 10f64.powi(-digits);
        return (value / scale).round() * scale;
    }
    let scale = 10f64.powi(digits.min(300));
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::sexton::SEXTON_CPU_RATIO;
    use sexton_model::record::Sink;

    use super::*;

    fn sample(fact: &'static Fact, value: f64) -> Record {
        let mut out = Sink::new("test", Moment::from_ns(5));
        out.sample(&Subject::node(), fact, value);
        out.into_records().remove(0)
    }

    #[test]
    fn a_counter_goes_on_from_the_report_before() {
        let counter = sexton_model::fact::all()
            .into_iter()
            .find(|fact| fact.kind == FactKind::Counter)
            .unwrap();
        let mut gathered = Gathered::default();
        let grown = |gathered: &Gathered| gathered.facts().get(counter.name).copied();
        gathered.take(&sample(counter, 100.0));
        gathered.take(&sample(counter, 103.0));
        assert_eq!(grown(&gathered), Some(3.0));
        gathered.begin();
        assert_eq!(grown(&gathered), None, "not seen is not zero");
        gathered.take(&sample(counter, 110.0));
        assert_eq!(grown(&gathered), Some(7.0));
        gathered.take(&sample(counter, 2.0));
        assert_eq!(grown(&gathered), Some(9.0), "it was reset");
    }

    #[test]
    fn a_gauge_begins_anew() {
        let mut gathered = Gathered::default();
        gathered.take(&sample(&SEXTON_CPU_RATIO, 4.0));
        gathered.begin();
        gathered.take(&sample(&SEXTON_CPU_RATIO, 1.0));
        gathered.take(&sample(&SEXTON_CPU_RATIO, 2.0));
        let facts = gathered.facts();
        assert_eq!(facts["sexton_cpu_ratio"], 1.5);
        assert_eq!(facts["sexton_cpu_ratio_max"], 2.0);
    }

    #[test]
    fn numbers_keep_four_digits() {
        let check = |value, expected| assert_eq!(rounded(value), expected);
        check(0.0, 0.0);
        check(68_681.0, 68_680.0);
        check(0.123_456, 0.1235);
        check(-3.0, -3.0);
        check(1e15 + 7.0, 1e15);
    }

    #[test]
    fn units_of_one_node_alone_are_left_out() {
        assert!(is_common("ecs.service"));
        assert!(!is_common("run-r12ab.service"));
        assert!(!is_common("docker-0123.scope"));
        assert!(!is_common("user@1000.service"));
    }
}
