//! All that is known of the units of a root, put together: state, settings, what starts
//! them, who owns them, and what signatures say of them.
//!
//! What was seen (`seen`) is what recordings hold, and all that signatures are matched with;
//! `asked` are the answers of files to what they ask.

mod asked;
mod seen;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::PathBuf;

use sexton_host::Root;
use sexton_signatures::units::Role;
use sexton_signatures::units::Signatures;
use sexton_signatures::units::assessed::{self, Offender};
use sexton_signatures::units::need::Need;

use crate::packages::Packages;
use crate::unit_file::Tree;
use crate::unit_file::name;
use crate::unit_file::restart::Restart;
use crate::unit_file::start::Hindrance;
use crate::unit_file::state::State;
use crate::unit_file::timer::{self, Rate};
use crate::unit_file::{Edge, Graph, Unit, UnitSet, start_of};

use asked::Scripts;
pub use seen::Seen;

/// One unit, with all that is known of it.
#[derive(Debug, Clone)]
pub struct Surveyed {
    /// The unit.
    pub unit: Unit,
    /// Whether a boot starts it, or something that a boot starts may.
    pub is_reached: bool,
    /// The way to it, from `default.target`; of a long one its end.
    pub reached_by: Vec<String>,
    /// The package that owns its file.
    pub package: Option<String>,
    /// How it is restarted.
    pub restart: Option<Restart>,
    /// How often a timer starts it, or it starts another as a timer.
    pub rate: Option<Rate>,
    /// What keeps it from starting.
    pub hindrance: Option<Hindrance>,
    /// What signatures say.
    pub offender: Option<Offender>,
    /// The unit that stays on and fails without it, of a unit that would be unwanted.
    pub withheld: Option<Need>,
}

impl Surveyed {
    /// It and what is masked with it.
    pub fn masked_together(&self, set: &UnitSet) -> Vec<String> {
        let is_there = |name: &str| set.find(name).is_some_and(|unit| !unit.state.is_masked());
        assessed::masked_together(&self.unit.name, self.offender.as_ref(), is_there)
    }

    /// Why nothing certain can be said of it: its file, or what it needs, could not be seen.
    pub fn unknown(&self) -> Option<&str> {
        match &self.hindrance {
            Some(Hindrance::Unknown(why)) => Some(why),
            _ => self.unit.unread.as_deref(),
        }
    }

    /// What would tell whether it is of use, and could not be seen.
    fn unseen_sign(&self) -> Option<String> {
        let offender = self.offender.as_ref().filter(|_| self.is_on())?;
        let unknown = offender.unknown.as_ref()?;
        let is_suspect = offender.veto.is_none() && !offender.is_unsure;
        let name = &self.unit.name;
        is_suspect.then(|| format!("{name}: sexton could not see whether {unknown}"))
    }

    /// Whether it runs or may run after a boot. What a boot begins with counts though it is masked.
    pub fn is_on(&self) -> bool {
        if self.unit.state.is_masked() {
            return matches!(self.hindrance, Some(Hindrance::Fails(_)));
        }
        self.unit.state != State::Alias && (self.unit.is_enabled() || self.is_reached)
    }
}

/// All units.
#[derive(Debug)]
pub struct Survey {
    /// The units, by name.
    pub units: Vec<Surveyed>,
    /// The sets they come from: system, defaults.
    pub set: UnitSet,
    /// What starts what.
    pub graph: Graph,
    /// What is installed.
    pub packages: Packages,
    /// What recordings hold of it.
    pub seen: Seen,
    /// The shape of the deployment, and why it is thought to be that.
    pub shape: Option<(String, String)>,
    /// Why no shape is named though one seems to fit.
    pub doubt: Option<String>,
    /// Units that the shape needs and that are not on.
    pub missing: Vec<String>,
    /// What could not be read.
    pub gaps: Vec<String>,
}

/// Longer ways are cut: thousands of units, each started by the one before, would need gigabytes.
const N_WAY_MAX: usize = 16;

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// At everything, and at what later signatures may ask for.
    Recorded,
    /// At everything.
    All,
    /// At what tells whether units are of use.
    Use,
}

impl Survey {
    /// Looks at everything and asks the signatures. A shape that is given is not detected.
    pub fn take(root: &dyn Root, signatures: &Signatures, given: Option<&str>) -> Self {
        let mut survey = Self::look(root, signatures, Depth::All);
        survey.assess(signatures, given);
        survey
    }

    /// Looks at everything that a recording should hold; nothing is said of it.
    pub fn observe(root: &dyn Root, signatures: &Signatures) -> Self {
        Self::look(root, signatures, Depth::Recorded)
    }

    /// Looks only at what tells whether units are of use. Who owns their files and what keeps
    /// them from starting stays unknown: that takes a thousand files more.
    pub fn of_use(root: &dyn Root, signatures: &Signatures) -> Self {
        Self::look(root, signatures, Depth::Use)
    }

    fn look(root: &dyn Root, signatures: &Signatures, depth: Depth) -> Self {
        let mut tree = Tree::new(root);
        let set = UnitSet::read(&mut tree);
        let graph = Graph::of(&set);
        let files: BTreeSet<PathBuf> = match depth {
            Depth::Recorded | Depth::All => set
                .iter()
                .flat_map(|unit| [unit.file.clone(), unit.path.clone()])
                .collect(),
            Depth::Use => BTreeSet::new(),
        };
        let files: Vec<PathBuf> = files.into_iter().collect();
        let packages = Packages::read(&mut tree, &files);
        let site = Site {
            root,
            set: &set,
            graph: &graph,
            packages: &packages,
            depth,
            scripts: OnceCell::new(),
        };
        let units: Vec<Surveyed> = set.iter().map(|unit| site.survey(unit)).collect();
        let seen = Seen::of(&site, signatures, &units);
        let mut gaps = tree.into_gaps();
        gaps.extend(set.unseen_mounts(units.iter().filter_map(Surveyed::unknown)));
        Self {
            units,
            seen,
            shape: None,
            doubt: None,
            missing: Vec::new(),
            gaps,
            packages,
            graph,
            set,
        }
    }

    fn assess(&mut self, signatures: &Signatures, given: Option<&str>) {
        let mut node = self.seen.node();
        let mut assessed = signatures.assess(&mut node, given);
        for unit in &mut self.units {
            let name = &unit.unit.name;
            let found = assessed.units.remove(name);
            let mut found = found.unwrap_or_else(|| signatures.assess_unit(&node, name));
            unit.withheld = assessed.withheld.remove(name);
            if let Some(need) = &unit.withheld {
                found.withhold(need);
            }
            let is_needed = matches!(found.role, Some((Role::Must, ..)));
            unit.offender = found.offender;
            self.gaps.extend(unit.unseen_sign().filter(|_| !is_needed));
        }
        self.shape = assessed.shape;
        self.doubt = assessed.doubt;
        self.missing = assessed.missing;
    }

    /// A unit by name.
    pub fn find(&self, name: &str) -> Option<&Surveyed> {
        let name = self.set.find(name).map_or(name, |unit| unit.name.as_str());
        // They are in the order of their names.
        let by_name = |unit: &Surveyed| unit.unit.name.as_str().cmp(name);
        self.units
            .binary_search_by(by_name)
            .ok()
            .map(|n| &self.units[n])
    }

    /// Every edge of the way to a unit.
    pub fn way(&self, unit: &str) -> Vec<&Edge> {
        self.graph.way(unit)
    }
}

/// What a boot begins with, masked: systemd goes to its rescue shell instead.
fn masked_start(set: &UnitSet, unit: &Unit) -> Option<Hindrance> {
    let fails = "a boot begins with it, and it is masked: it ends in rescue.target";
    (start_of(set) == unit.name).then(|| Hindrance::Fails(fails.to_owned()))
}

/// A root that is looked at.
struct Site<'a> {
    root: &'a dyn Root,
    set: &'a UnitSet,
    graph: &'a Graph,
    packages: &'a Packages,
    depth: Depth,
    /// Read when first asked for.
    scripts: OnceCell<Scripts>,
}

impl Site<'_> {
    fn survey(&self, unit: &Unit) -> Surveyed {
        let graph = self.graph;
        let own = &unit.own_name;
        let is_reached = graph.is_reached(own);
        let way = graph.end_of_way(own, N_WAY_MAX);
        let package = self
            .packages
            .owner(&unit.file)
            .or_else(|| self.packages.owner(&unit.path));
        let is_on = is_reached || unit.is_enabled();
        // Looking for programs costs, and of what is off nobody asks.
        let is_asked = is_on && self.depth != Depth::Use;
        let hindrance = match is_asked {
            true if unit.state.is_masked() => masked_start(self.set, unit),
            true => self.set.hindrance(self.root, unit),
            false => None,
        };
        Surveyed {
            is_reached,
            reached_by: way.iter().map(|edge| edge.from.clone()).collect(),
            package: package.map(str::to_owned),
            restart: self.set.restart(unit),
            rate: self.rate(unit),
            hindrance,
            offender: None,
            withheld: None,
            unit: unit.clone(),
        }
    }

    /// Of a timer its own; of what timers start the sum of those that are on.
    fn rate(&self, unit: &Unit) -> Option<Rate> {
        let graph = self.graph;
        if name::sort(&unit.name) == "timer" {
            return timer::rate(&unit.settings);
        }
        let starters = graph.starters(&unit.own_name).into_iter();
        let timers = starters
            .filter(|edge| edge.how == "timer" && graph.is_reached(&edge.from))
            .filter_map(|edge| timer::rate(&self.set.find(&edge.from)?.settings));
        timers.reduce(|sum, other| Rate {
            per_day: sum.per_day + other.per_day,
            by: format!("{} {}", sum.by, other.by),
        })
    }
}
