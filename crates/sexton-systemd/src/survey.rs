//! All that is known of the units of a root, put together: state, settings, what starts
//! them, who owns them, what they are to this shape, and whether they are known offenders.
//!
//! It gathers; what that means is for rules to say.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sexton_host::Root;

use crate::packages::Packages;
use crate::unit_file::Tree;
use crate::unit_file::name;
use crate::unit_file::restart::Restart;
use crate::unit_file::start::Hindrance;
use crate::unit_file::state::State;
use crate::unit_file::timer::{self, Rate};
use crate::unit_file::{self, Edge, Graph, Need, Unit, UnitSet};
use sexton_model::glob;
use sexton_signatures::units::{Action, Detected, Observed, Risk, Role, Signatures};

/// A file that a sign asks for is small.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// What a signature says of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offender {
    /// The name of the signature's file.
    pub slug: String,
    /// What the unit does where it has no use.
    pub why: String,
    /// What speaks for it here.
    pub evidence: Vec<String>,
    /// What forbids to call it unwanted.
    pub veto: Option<String>,
    /// What masking may cost.
    pub risk: Risk,
    /// What to do.
    pub action: Action,
    /// Whether it is only suspected, because nobody knows what the machine is for.
    pub is_unsure: bool,
    /// What is to be masked with it, of what is there.
    pub triggers: Vec<String>,
    /// Where it is known from.
    pub source: String,
}

/// One unit, with all that is known of it.
#[derive(Debug, Clone)]
pub struct Surveyed {
    /// The unit.
    pub unit: Unit,
    /// Whether a boot starts it, or something that a boot starts may.
    pub is_reached: bool,
    /// The way to it, from `default.target`.
    pub reached_by: Vec<String>,
    /// The package that owns its file.
    pub package: Option<String>,
    /// How it is restarted.
    pub restart: Option<Restart>,
    /// How often a timer starts it, or it starts another as a timer.
    pub rate: Option<Rate>,
    /// What keeps it from starting.
    pub hindrance: Option<Hindrance>,
    /// What it is to the deployment profile, which of its profiles says so, and why.
    pub role: Option<(Role, String, String)>,
    /// What signatures say.
    pub offender: Option<Offender>,
    /// The unit that stays on and fails without it, of a unit that would be unwanted.
    pub withheld: Option<Need>,
}

impl Surveyed {
    /// Whether it is to be turned off: a signature or the profile says so and nothing forbids.
    fn is_unwanted(&self) -> bool {
        let is_mask = |offender: &Offender| {
            offender.veto.is_none() && offender.action == Action::Mask && !offender.is_unsure
        };
        let role = self.role.as_ref();
        // What every system has, a signature may still accuse; what the profile needs, not.
        let is_must = role.is_some_and(|(role, shape, _)| *role == Role::Must && shape != "base");
        let by_profile = role.is_some_and(|(role, ..)| *role == Role::Unwanted);
        by_profile || !is_must && self.offender.as_ref().is_some_and(is_mask)
    }

    /// It and what is masked with it: what its signature names, and a socket, timer or path of
    /// the same name, which fails without it.
    pub fn masked_together(&self, set: &UnitSet) -> Vec<String> {
        let name = &self.unit.name;
        let mut names = vec![name.clone()];
        names.extend(
            self.offender
                .iter()
                .flat_map(|known| known.triggers.clone()),
        );
        if name::sort(name) == "service" {
            let stem = name::stem(name);
            let triggers = ["socket", "timer", "path"].map(|sort| format!("{stem}.{sort}"));
            let is_there = |trigger: &String| {
                let found = set.find(trigger);
                found.is_some_and(|unit| !unit.state.is_masked()) && !names.contains(trigger)
            };
            let new: Vec<String> = triggers.into_iter().filter(is_there).collect();
            names.extend(new);
        }
        names
    }

    /// Protects it: what a unit that stays on needs is not unwanted.
    fn withhold(&mut self, need: Need) {
        if let Some(offender) = &mut self.offender {
            offender.veto = Some(need.text());
        }
        if let Some((role, _, why)) = &mut self.role
            && *role == Role::Unwanted
        {
            *role = Role::May;
            *why = format!("often unwanted, but {}", need.text());
        }
        self.withheld = Some(need);
    }

    /// Why nothing certain can be said of it: its file, or what it needs, could not be seen.
    pub fn unknown(&self) -> Option<&str> {
        match &self.hindrance {
            Some(Hindrance::Unknown(why)) => Some(why),
            _ => self.unit.unread.as_deref(),
        }
    }

    /// Whether it runs or may run after a boot.
    pub fn is_on(&self) -> bool {
        !self.unit.state.is_masked()
            && self.unit.state != State::Alias
            && (self.unit.state.is_enabled() || self.is_reached)
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
    /// The shape of the deployment, and why it is thought to be that.
    pub shape: Option<(String, String)>,
    /// Why no shape is named though one seems to fit.
    pub doubt: Option<String>,
    /// Units that the shape needs and that are not on.
    pub missing: Vec<String>,
    /// What could not be read.
    pub gaps: Vec<String>,
}

/// How closely to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// At everything.
    All,
    /// At what tells whether units are of use.
    Use,
}

impl Survey {
    /// Looks at everything. A shape that is given is not detected.
    pub fn take(root: &dyn Root, signatures: &Signatures, given: Option<&str>) -> Self {
        Self::look(root, signatures, given, Depth::All)
    }

    /// Looks only at what tells whether units are of use. Who owns their files and what keeps
    /// them from starting stays unknown: that takes a thousand files more.
    pub fn of_use(root: &dyn Root, signatures: &Signatures, given: Option<&str>) -> Self {
        Self::look(root, signatures, given, Depth::Use)
    }

    fn look(root: &dyn Root, signatures: &Signatures, given: Option<&str>, depth: Depth) -> Self {
        let mut tree = Tree::new(root);
        let set = UnitSet::read(&mut tree);
        let graph = Graph::of(&set);
        let files: BTreeSet<PathBuf> = match depth {
            Depth::All => set
                .iter()
                .flat_map(|unit| [unit.file.clone(), unit.path.clone()])
                .collect(),
            Depth::Use => BTreeSet::new(),
        };
        let files: Vec<PathBuf> = files.into_iter().collect();
        let packages = Packages::read(&mut tree, &files);
        let mut site = Site {
            root,
            set: &set,
            graph: &graph,
            packages: &packages,
            family: Vec::new(),
            depth,
        };
        let (shape, doubt) = match given {
            Some(name) => (Some((name.to_owned(), "it was given".to_owned())), None),
            None => match signatures.detect(&site) {
                Detected::Shape(shape, why) => (Some((shape.name.clone(), why)), None),
                Detected::Doubt(why) => (None, Some(why)),
                Detected::None => (None, None),
            },
        };
        let name = shape.as_ref().map(|(name, _)| name.as_str());
        site.family = name.map_or_else(Vec::new, |name| signatures.family(name));
        let mut units: Vec<Surveyed> = Vec::new();
        for unit in set.iter() {
            units.push(site.survey(signatures, name, unit));
        }
        withhold(&set, &graph, &mut units);
        let missing = missing(signatures, name, &units);
        let mut gaps = tree.into_gaps();
        gaps.extend(unseen(&set, &units));
        Self {
            units,
            shape,
            doubt,
            missing,
            gaps,
            packages,
            graph,
            set,
        }
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

/// Protects what would be unwanted and is needed by a unit that stays on.
fn withhold(set: &UnitSet, graph: &Graph, units: &mut [Surveyed]) {
    let mut unwanted = BTreeSet::new();
    for unit in units.iter().filter(|unit| unit.is_unwanted()) {
        unwanted.extend(unit.masked_together(set));
    }
    if unwanted.is_empty() {
        return;
    }
    let is_must = |unit: &&Surveyed| unit.is_on() && matches!(unit.role, Some((Role::Must, ..)));
    let needed: BTreeSet<String> = units
        .iter()
        .filter(is_must)
        .map(|unit| unit.unit.name.clone())
        .collect();
    let found = unit_file::withheld(set, graph, &unwanted, |name| needed.contains(name));
    for unit in units {
        if let Some(need) = found.get(&unit.unit.name) {
            unit.withhold(need.clone());
        }
    }
}

/// Filesystems that a boot mounts and the image does not hold, where that matters: they hold
/// units, packages, or what units need.
fn unseen(set: &UnitSet, units: &[Surveyed]) -> Vec<String> {
    let is_needed = |place: &Path| {
        let said = format!("and {} is another filesystem", place.display());
        let is_about = |unit: &Surveyed| match &unit.hindrance {
            Some(Hindrance::Unknown(why)) => why.contains(&said),
            _ => false,
        };
        ["/usr", "/var"].contains(&place.to_string_lossy().as_ref()) || units.iter().any(is_about)
    };
    set.unseen_mounts()
        .filter(|(place, _)| is_needed(place))
        .map(|(place, what)| {
            let place = place.display();
            format!(
                "{place}: another filesystem ({what} in /etc/fstab) that is not part of this image"
            )
        })
        .collect()
}

/// Of which of the shape's groups none is on, of itself and of those it builds on.
fn missing(signatures: &Signatures, shape: Option<&str>, units: &[Surveyed]) -> Vec<String> {
    let family = shape.map_or_else(Vec::new, |shape| signatures.family(shape));
    let groups = family.iter().filter_map(|name| signatures.shape(name));
    let is_on = |pattern: &String| {
        let fits = |unit: &&Surveyed| glob::matches(pattern, &unit.unit.name);
        units.iter().filter(fits).any(Surveyed::is_on)
    };
    groups
        .flat_map(|shape| &shape.one_of)
        .filter(|group| !group.iter().any(is_on))
        .map(|group| group.join(" or "))
        .collect()
}

/// A root as signs look at it.
struct Site<'a> {
    root: &'a dyn Root,
    set: &'a UnitSet,
    graph: &'a Graph,
    packages: &'a Packages,
    family: Vec<String>,
    depth: Depth,
}

impl Site<'_> {
    fn survey(&self, signatures: &Signatures, shape: Option<&str>, unit: &Unit) -> Surveyed {
        let graph = self.graph;
        let own = &unit.own_name;
        let is_reached = graph.is_reached(own);
        let way = graph.way(own);
        let package = self
            .packages
            .owner(&unit.file)
            .or_else(|| self.packages.owner(&unit.path));
        let is_on = is_reached || unit.state.is_enabled();
        // Looking for programs costs, and of what is off nobody asks.
        let is_asked = is_on && self.depth == Depth::All;
        let hindrance = is_asked
            .then(|| self.set.hindrance(self.root, unit))
            .flatten();
        let role = shape.and_then(|shape| signatures.role(shape, &unit.name));
        let role = role.or_else(|| signatures.role("base", &unit.name));
        Surveyed {
            is_reached,
            reached_by: way.iter().map(|edge| edge.from.clone()).collect(),
            package: package.map(str::to_owned),
            restart: self.set.restart(unit),
            rate: self.rate(unit),
            hindrance,
            role: role.map(|(role, shape, why)| (role, shape.name.clone(), why)),
            offender: self.offender(signatures, unit),
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

    /// The first signature that fits, one without a veto before one with.
    fn offender(&self, signatures: &Signatures, unit: &Unit) -> Option<Offender> {
        let mut found: Vec<Offender> = Vec::new();
        for signature in signatures
            .units
            .iter()
            .filter(|signature| signature.is_about(&unit.name))
        {
            let is_unsure = self.family.is_empty() && !signature.shapes.is_empty();
            let weighed = match is_unsure {
                true => signature.suspect(self),
                false => signature.weigh(self),
            };
            let Some(weighed) = weighed else {
                continue;
            };
            let triggers = signature
                .triggers
                .iter()
                .filter(|name| self.set.find(name).is_some());
            found.push(Offender {
                slug: signature.slug.clone(),
                why: signature.why.clone(),
                evidence: weighed.evidence,
                veto: weighed.veto,
                risk: signature.risk,
                action: if is_unsure {
                    Action::Bound
                } else {
                    signature.action
                },
                is_unsure,
                triggers: triggers.cloned().collect(),
                source: signature.source.join("; "),
            });
        }
        found.sort_by_key(|offender| offender.veto.is_some());
        found.into_iter().next()
    }
}

impl Observed for Site<'_> {
    fn is_enabled(&self, pattern: &str) -> bool {
        let fits = |unit: &&Unit| glob::matches(pattern, &unit.name);
        self.set
            .iter()
            .filter(fits)
            .any(|unit| unit.state.is_enabled())
    }

    fn has_package(&self, pattern: &str) -> bool {
        self.packages
            .versions
            .keys()
            .any(|name| glob::matches(pattern, name))
    }

    fn has_path(&self, path: &str) -> bool {
        let path = Path::new(path);
        match path.to_string_lossy().contains(['*', '?', '[']) {
            true => crate::unit_file::condition::any_matches(&Tree::new(self.root), path),
            false => self.root.meta(path).is_ok(),
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        let content = Tree::new(self.root).read(Path::new(path), TEXT_BYTES_MAX);
        Some(String::from_utf8_lossy(&content.ok()?).into_owned())
    }

    fn unit_words(&self, unit: &str, section: &str, key: &str) -> Vec<String> {
        let found = self.set.find(unit);
        found.map_or_else(Vec::new, |unit| unit.settings.words(section, key))
    }

    fn unit_mounts(&self) -> Vec<(String, String)> {
        let is_mount = |unit: &&Unit| matches!(name::sort(&unit.name), "mount" | "automount");
        let is_on = |unit: &&Unit| unit.state.is_enabled() || self.graph.is_reached(&unit.own_name);
        let mounts = self.set.iter().filter(is_mount).filter(is_on);
        mounts
            .filter_map(|unit| {
                let sort = unit.settings.last("Mount", "Type")?.to_owned();
                let options = unit.settings.last("Mount", "Options").unwrap_or_default();
                Some((sort, options.to_owned()))
            })
            .collect()
    }

    fn is_shape(&self, name: &str) -> bool {
        self.family.iter().any(|known| known == name)
    }
}
