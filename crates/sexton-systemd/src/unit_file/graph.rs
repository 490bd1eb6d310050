//! What starts what, from `default.target` on.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;

use crate::unit_file::name;
use crate::unit_file::set::{Unit, UnitSet};
use crate::unit_file::settings::Settings;
use crate::unit_file::state::State;

/// Where a boot begins.
const START: &str = "default.target";

/// How an edge is called that starts nothing.
const NEEDS: &str = "needs";

/// Settings that name units, and what their edges are called.
const STARTS: [(&str, &str); 5] = [
    ("Wants", "wants"),
    ("Requires", "requires"),
    ("BindsTo", "binds to"),
    ("Upholds", "upholds"),
    ("Requisite", NEEDS),
];

/// One thing that starts another, or needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The unit that starts it; for what comes from outside, what that is.
    pub from: String,
    /// The unit that is started.
    pub to: String,
    /// `wants`, `requires`, `binds to`, `socket`, `timer`, `path`, `D-Bus`, `udev`; `needs` of
    /// one that starts nothing and fails where the other is not active.
    pub how: &'static str,
    /// The link or file that says so.
    pub file: PathBuf,
}

/// All of them.
#[derive(Debug, Default)]
pub struct Graph {
    edges: Vec<Edge>,
    /// Indexes of edges by what they start.
    into: HashMap<String, Vec<usize>>,
    /// The edge by which each unit is reached first from the start.
    reached: BTreeMap<String, Option<usize>>,
}

impl Graph {
    /// Of all units.
    pub fn of(set: &UnitSet) -> Self {
        let mut graph = Self::default();
        for unit in set.iter().filter(|unit| unit.state != State::Alias) {
            graph.add_settings(set, unit);
        }
        for want in set.effective_wants() {
            let by = set.find(&want.by).map_or(&want.by, |unit| &unit.own_name);
            graph.add(set, by, &want.unit, want.how, want.link.clone());
        }
        for trigger in &set.triggers {
            let how = if trigger.by.starts_with("D-Bus") {
                "D-Bus"
            } else {
                "udev"
            };
            graph.add(set, &trigger.by, &trigger.unit, how, trigger.file.clone());
        }
        graph.reached = graph.reach(set);
        graph
    }

    fn add_settings(&mut self, set: &UnitSet, unit: &Unit) {
        let settings = &unit.settings;
        for (key, how) in STARTS {
            for to in named(unit, key) {
                self.add(set, &unit.name, &to, how, unit.file.clone());
            }
        }
        let how = match name::sort(&unit.name) {
            "socket" => "socket",
            "timer" => "timer",
            "path" => "path",
            _ => return,
        };
        if let Some(to) = triggered(&unit.name, settings) {
            self.add(set, &unit.name, &to, how, unit.file.clone());
        }
    }

    fn add(&mut self, set: &UnitSet, from: &str, to: &str, how: &'static str, file: PathBuf) {
        // By its own name, so that aliases are no dead ends; an instance keeps its name.
        let to = match set.find(to) {
            Some(unit) if name::template(to).as_deref() != Some(unit.name.as_str()) => {
                &unit.own_name
            }
            _ => to,
        };
        self.into
            .entry(to.to_owned())
            .or_default()
            .push(self.edges.len());
        self.edges.push(Edge {
            from: from.to_owned(),
            to: to.to_owned(),
            how,
            file,
        });
    }

    /// The edge by which each unit is reached first.
    fn reach(&self, set: &UnitSet) -> BTreeMap<String, Option<usize>> {
        let mut out: HashMap<&str, Vec<usize>> = HashMap::new();
        for (n, edge) in self.edges.iter().enumerate() {
            if edge.how != NEEDS {
                out.entry(&edge.from).or_default().push(n);
            }
        }
        let start = start_of(set).to_owned();
        let mut reached = BTreeMap::from([(start.clone(), None)]);
        let mut queue = VecDeque::from([start]);
        while let Some(name) = queue.pop_front() {
            let is_off = set.find(&name).is_none_or(|unit| unit.state.is_masked());
            if is_off {
                continue;
            }
            for &n in out.get(name.as_str()).map_or(&[][..], Vec::as_slice) {
                let to = &self.edges[n].to;
                if !reached.contains_key(to) {
                    reached.insert(to.clone(), Some(n));
                    queue.push_back(to.clone());
                }
            }
        }
        reached
    }

    /// All edges, of starting and of needing.
    pub(crate) fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// Whether a boot starts the unit, or a socket, timer or path that a boot starts may.
    pub fn is_reached(&self, unit: &str) -> bool {
        self.reached.contains_key(unit)
    }

    /// The shortest way from the start to a unit: the first edge begins at `default.target`.
    pub fn way(&self, unit: &str) -> Vec<&Edge> {
        self.end_of_way(unit, usize::MAX)
    }

    /// The same, at most so many edges of it, the last ones.
    pub fn end_of_way(&self, unit: &str, n_max: usize) -> Vec<&Edge> {
        let mut way = Vec::new();
        let mut seen = HashSet::new();
        let mut here = unit;
        while let Some(Some(n)) = self.reached.get(here) {
            if way.len() == n_max || !seen.insert(here) {
                break;
            }
            let edge = &self.edges[*n];
            way.push(edge);
            here = &edge.from;
        }
        way.reverse();
        way
    }

    /// Everything that starts a unit directly, reached or not.
    pub fn starters(&self, unit: &str) -> Vec<&Edge> {
        let edges = self.into.get(unit).map_or(&[][..], Vec::as_slice);
        let edges = edges.iter().map(|&n| &self.edges[n]);
        edges.filter(|edge| edge.how != NEEDS).collect()
    }
}

/// The unit that a boot starts with, by its own name.
pub(crate) fn start_of(set: &UnitSet) -> &str {
    set.find(START).map_or(START, |unit| unit.own_name.as_str())
}

/// The units that a setting of a unit names.
fn named(unit: &Unit, key: &str) -> impl Iterator<Item = String> {
    let words = unit.settings.words("Unit", key).into_iter();
    let names = words.filter_map(|word| expand(&unit.name, &word));
    names.filter(|name| name::form(name).is_some())
}

/// All units that the settings of a unit name.
pub(crate) fn all_named(unit: &Unit) -> Vec<String> {
    let keys = STARTS.iter().map(|(key, _)| *key);
    let mut names: Vec<String> = keys.flat_map(|key| named(unit, key)).collect();
    names.extend(triggered(&unit.name, &unit.settings));
    names
}

/// The name of a unit as another one writes it: an instance may hand on what it is called.
/// `None` if only a boot can tell.
pub(crate) fn expand(unit: &str, written: &str) -> Option<String> {
    if !written.contains('%') {
        return Some(written.to_owned());
    }
    let instance = name::instance(unit)?;
    // Unescaped it is the same, where there is nothing to unescape.
    let is_plain = !instance.contains(['-', '\\']);
    let mut name = written.replace("%i", instance);
    if is_plain {
        name = name.replace("%I", instance);
    }
    (!name.contains('%')).then_some(name)
}

/// The unit that a socket, timer or path starts; `None` of other sorts.
pub(crate) fn triggered(name: &str, settings: &Settings) -> Option<String> {
    let stem = name::stem(name);
    let (section, key) = match name::sort(name) {
        "socket" => ("Socket", "Service"),
        "timer" => ("Timer", "Unit"),
        "path" => ("Path", "Unit"),
        _ => return None,
    };
    let accepts = section == "Socket" && settings.is_true("Socket", "Accept");
    Some(match settings.last(section, key) {
        Some(named) => expand(name, named).unwrap_or_else(|| named.to_owned()),
        None if accepts => format!("{stem}@.service"),
        None => format!("{stem}.service"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_instances_hand_on() {
        let check = |unit: &str, written: &str, expected: Option<&str>| {
            assert_eq!(
                expand(unit, written).as_deref(),
                expected,
                "{unit} {written}"
            );
        };
        check("a@x.service", "b@%i.service", Some("b@x.service"));
        check("a@x.service", "b@%I.service", Some("b@x.service"));
        check("a@x-y.service", "b@%I.service", None);
        check("a@x.service", "b.service", Some("b.service"));
        check("a.service", "b@%i.service", None);
        check("a@x.service", "b@%H.service", None);
    }
}
