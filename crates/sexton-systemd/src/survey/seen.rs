//! What recordings hold of the units of a root: what was read, and what signatures ask for.
//!
//! Most of what signatures ask for is known in full: units, packages, mounts. What they ask of
//! files is open. Recordings hold the answers to the questions of the signatures of their time
//! and the names in some folders, but no content of files, which may be secret. What a later
//! signature asks beyond that stays unknown.

use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sexton_host::{Entry, Root};
use sexton_model::fact::unit::{Answer, BootMount, Folder, UnitContext, UnitFile, UnitState};
use sexton_model::text;
use sexton_signatures::units::node::Node;
use sexton_signatures::units::{Signatures, grammar};

use super::{Depth, Site, Surveyed};
use crate::unit_file::name;
use crate::unit_file::start::Hindrance;
use crate::unit_file::{Edge, Unit, start_of};

/// Folders whose names are recorded, and whether those of the folders in them are.
const FOLDERS: [(&str, bool); 7] = [
    ("/etc", true),
    ("/", false),
    ("/boot", false),
    ("/opt", false),
    ("/usr/lib/modules", false),
    ("/usr/local/bin", false),
    ("/var/lib", false),
];

/// The most names of all folders together. A folder that does not fit is left out as a whole,
/// so that what it lacks is never said to be missing.
///
/// Chosen: five times those of a Debian 12 with 774 packages.
const N_NAMES_MAX: usize = 4_096;

/// What was seen of the units of a root.
#[derive(Debug, Default)]
pub struct Seen {
    /// The unit that a boot starts with.
    pub start: String,
    /// Units that are on, by name.
    pub units: BTreeMap<String, UnitFile>,
    /// What else signatures ask for.
    pub context: UnitContext,
}

impl Seen {
    pub(super) fn of(site: &Site<'_>, signatures: &Signatures, units: &[Surveyed]) -> Self {
        let mut edges: HashMap<&str, Vec<&Edge>> = HashMap::new();
        for edge in site.graph.edges() {
            edges.entry(&edge.from).or_default().push(edge);
        }
        let mut seen = Self {
            start: start_of(site.set).to_owned(),
            ..Self::default()
        };
        for unit in units {
            let name = &unit.unit.name;
            if unit.is_on() {
                let links = edges.get(name.as_str()).map_or(&[][..], Vec::as_slice);
                seen.units.insert(name.clone(), describe(unit, links));
            } else {
                seen.context.units.push(state(&unit.unit));
            }
        }
        let context = &mut seen.context;
        context.packages = site.packages.versions.keys().cloned().collect();
        context.mounts = site.mounts();
        let questions = signatures.questions().into_iter();
        // What cannot be seen stays without an answer.
        let answers = questions.filter_map(|(asked, sign)| {
            let holds = sign.ask(site)?;
            Some(Answer { asked, holds })
        });
        context.answers = answers.collect();
        if site.depth == Depth::Recorded {
            context.folders = folders(site.root);
        }
        seen
    }

    /// As signatures are matched with it.
    pub fn node(&self) -> Node<'_> {
        let units = self.units.iter();
        let units = units.map(|(name, file)| (name.as_str(), file));
        Node::new(&self.start, units.collect(), [&self.context])
    }
}

fn state(unit: &Unit) -> UnitState {
    UnitState {
        name: unit.name.clone(),
        state: unit.state.name().to_owned(),
        alias_of: Some(unit.own_name.clone()).filter(|own| *own != unit.name),
    }
}

/// A text, unless there is none.
fn said(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

fn describe(unit: &Surveyed, links: &[&Edge]) -> UnitFile {
    let linked = |hows: &[&str]| {
        let links = links.iter().filter(|edge| hows.contains(&edge.how));
        links.map(|edge| edge.to.clone()).collect()
    };
    let mut file = UnitFile {
        state: said(unit.unit.state.name()),
        preset: unit.unit.preset.and_then(|preset| said(preset.name())),
        package: unit.package.as_deref().and_then(said),
        file: said(&unit.unit.file.display().to_string()),
        reached_by: unit.reached_by.clone(),
        wants: linked(&["wants"]),
        requires: linked(&["requires"]),
        requisite: linked(&["needs"]),
        binds_to: linked(&["binds to"]),
        upholds: linked(&["upholds"]),
        triggers: linked(&["socket", "timer", "path"]),
        ..UnitFile::default()
    };
    add_start(&mut file, unit);
    file
}

/// How it is restarted, and what keeps it from starting.
fn add_start(file: &mut UnitFile, unit: &Surveyed) {
    let restart = unit.restart.as_ref();
    if let Some(restart) = restart.filter(|restart| restart.is_on_failure()) {
        file.restart = said(&restart.when);
        file.arithmetic = said(&restart.arithmetic());
        file.endless = restart.is_endless().then_some(true);
        file.runs_per_day = Some(restart.runs_per_day());
        file.prevented_by = restart.prevented_by.clone();
    }
    if let Some(rate) = &unit.rate {
        file.starts_per_day = Some(rate.per_day.ceil());
        file.starts_by = said(&rate.by);
    }
    file.fails = unit.unit.bad.as_deref().and_then(said);
    match &unit.hindrance {
        Some(Hindrance::Fails(why)) => file.fails = said(why),
        Some(Hindrance::Skipped(why)) => file.skipped = said(why),
        Some(Hindrance::Unknown(_)) | None => {}
    }
}

/// Names in folders that later signatures may ask for. What cannot be listed is left out.
fn folders(root: &dyn Root) -> Vec<Folder> {
    let mut found = Vec::new();
    let mut n_names = 0;
    for (path, is_deep) in FOLDERS {
        let mut waiting = vec![(path.to_owned(), is_deep)];
        while let Some((path, is_deep)) = waiting.pop() {
            let Ok(mut entries) = root.list(Path::new(&path)) else {
                continue;
            };
            if n_names + entries.len() > N_NAMES_MAX {
                continue;
            }
            n_names += entries.len();
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            let name = |entry: &Entry| text::escape(entry.name.as_bytes());
            let below = entries.iter().filter(|entry| entry.is_dir && is_deep);
            waiting.extend(below.map(|entry| (format!("{path}/{}", name(entry)), false)));
            let names = entries.iter().map(name).collect();
            found.push(Folder { path, names });
        }
    }
    found
}

impl Site<'_> {
    /// What a boot mounts, by `/etc/fstab` or by a unit.
    fn mounts(&self) -> Vec<BootMount> {
        let table = self
            .text(Path::new("/etc/fstab"))
            .flatten()
            .unwrap_or_default();
        let by_table = grammar::fstab(&table).into_iter().map(|mount| BootMount {
            kind: mount.sort,
            options: mount.options.join(","),
        });
        let is_mount = |unit: &&Unit| matches!(name::sort(&unit.name), "mount" | "automount");
        let is_on = |unit: &&Unit| unit.state.is_enabled() || self.graph.is_reached(&unit.own_name);
        let units = self.set.iter().filter(is_mount).filter(is_on);
        let by_unit = units.filter_map(|unit| {
            let options = unit.settings.last("Mount", "Options").unwrap_or_default();
            let kind = unit.settings.last("Mount", "Type");
            // mount(8) takes a source of this form for one of NFS.
            let is_remote = |what: &&str| what.contains(":/") && !what.starts_with('/');
            let of_source = || {
                let what = unit.settings.last("Mount", "What").filter(is_remote);
                what.map(|_| "nfs")
            };
            Some(BootMount {
                kind: kind.or_else(of_source)?.to_owned(),
                options: options.to_owned(),
            })
        });
        by_table.chain(by_unit).collect()
    }
}
