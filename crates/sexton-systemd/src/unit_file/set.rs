//! All units of a root.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use sexton_host::Root;

use sexton_signatures::units::grammar;

use crate::unit_file::accounts::Accounts;
use crate::unit_file::boot::{self, Boot, Unseen};
use crate::unit_file::file::Assignment;
use crate::unit_file::folder::Want;
use crate::unit_file::graph;
use crate::unit_file::interpreter::Kernel;
use crate::unit_file::mounts;
use crate::unit_file::name::{self, Form};
use crate::unit_file::os::Os;
use crate::unit_file::preset::{Preset, Presets};
use crate::unit_file::restart::{self, Defaults, Restart};
use crate::unit_file::settings::Settings;
use crate::unit_file::start::{self, Hindrance};
use crate::unit_file::state::{CONFIG, SEARCH, Search, State, Trouble};
use crate::unit_file::sysv;
use crate::unit_file::tree::{Tree, Unread};
use crate::unit_file::udev::{self, Trigger};

/// One unit.
#[derive(Debug, Clone)]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: State,
    /// What presets say of it, where `systemctl` would show that.
    pub preset: Option<Preset>,
    /// The file of presets that says so; `None` when it is only the default.
    pub preset_file: Option<PathBuf>,
    /// Where its name was found.
    pub path: PathBuf,
    /// The file that is read for it, links followed.
    pub file: PathBuf,
    /// The unit's own name; another one for an alias.
    pub own_name: String,
    /// Other names that links give it.
    pub aliases: Vec<String>,
    /// Why its file cannot be used.
    pub bad: Option<String>,
    /// Why its file or one of its drop-ins could not be read: what it does is not known.
    pub unread: Option<String>,
    /// Whether the only links that enable it for `systemctl` lead to `/dev/null`: then the service
    /// manager does not start it.
    pub is_turned_off: bool,
    /// Whether `systemctl list-unit-files` lists it: instances that links name and units that
    /// generators will make have no file.
    pub is_listed: bool,
    /// What it is set to do.
    pub settings: Settings,
}

impl Unit {
    /// Whether links start it.
    pub fn is_enabled(&self) -> bool {
        self.state.is_enabled() && !self.is_turned_off
    }
}

/// All units of a root, and what belongs to all of them.
#[derive(Debug)]
pub struct UnitSet {
    units: BTreeMap<String, Unit>,
    pub(crate) wants: Vec<Want>,
    pub(crate) triggers: Vec<Trigger>,
    /// What holds for units that say nothing else.
    pub defaults: Defaults,
    /// What all units give their programs, `KEY=value`.
    pub(crate) environment: Vec<String>,
    /// Which system it is.
    pub os: Os,
    accounts: Accounts,
    boot: Boot,
    /// What `.requires` folders say, by the unit whose folder it is.
    required: HashMap<String, Vec<String>>,
    /// Whether a folder has more units or links than were looked at.
    is_cut: bool,
    /// Whether there are more units than are looked at.
    is_full: bool,
}

/// So many units are looked at: a full desktop has 700, and each takes about 10 KiB.
const N_UNITS_MAX: usize = 10_000;

impl UnitSet {
    /// Reads all of them.
    pub fn read(tree: &mut Tree<'_>) -> Self {
        let search = Search::read(tree);
        let presets = Presets::read(tree, search.version);
        let manager = restart::manager(tree);
        let mut set = Self {
            units: BTreeMap::new(),
            wants: search
                .folders
                .iter()
                .flat_map(|folder| folder.wants.clone())
                .collect(),
            triggers: udev::triggers(tree),
            defaults: Defaults::of(&manager),
            environment: manager.words("Manager", "DefaultEnvironment"),
            os: Os::read(tree),
            accounts: Accounts::read(tree),
            boot: Boot::default(),
            required: HashMap::new(),
            is_full: false,
            is_cut: search.folders.iter().any(|folder| folder.is_cut),
        };
        for folder in &search.folders {
            for (name, _) in &folder.units {
                if !set.units.contains_key(name) && set.has_room(tree, &folder.path) {
                    let path = folder.path.join(name);
                    let unit = unit(tree, &search, &presets, name, path, true);
                    set.units.insert(name.clone(), unit);
                }
            }
        }
        set.add_instances(tree, &search, &presets);
        set.add_generated(tree);
        set.note_aliases();
        set.add_drop_ins_of_aliases(tree, &search);
        set.note_files_elsewhere(tree);
        set.note_requires();
        set.note_turned_off();
        set
    }

    /// Whether another unit is looked at; that there are too many is said once.
    fn has_room(&mut self, tree: &mut Tree<'_>, folder: &Path) -> bool {
        let has_room = self.units.len() < N_UNITS_MAX;
        if !has_room && !self.is_full {
            self.is_full = true;
            let what = format!("only {N_UNITS_MAX} units are looked at, and there are more");
            tree.gap(folder, &io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        has_room
    }

    /// Whether a unit that is not known may be among those that were not looked at.
    pub(crate) fn may_be_unseen(&self, tree: &Tree<'_>, name: &str) -> bool {
        let is_there = |name: &str| {
            let mut folders = SEARCH.iter();
            folders.any(|folder| tree.link_meta(&Path::new(folder).join(name)).is_ok())
        };
        let template = || name::template(name).is_some_and(|template| is_there(&template));
        (self.is_cut || self.is_full) && (is_there(name) || template())
    }

    /// All units by name.
    pub fn iter(&self) -> impl Iterator<Item = &Unit> {
        self.units.values()
    }

    /// A unit by any of its names; an instance by its template if nothing else is known.
    pub fn find(&self, name: &str) -> Option<&Unit> {
        let found = self.units.get(name).or_else(|| {
            let template = name::template(name)?;
            self.units.get(&template)
        })?;
        match found.state {
            State::Alias => self.units.get(&found.own_name).or(Some(found)),
            _ => Some(found),
        }
    }

    /// Links that start units.
    pub fn wants(&self) -> &[Want] {
        &self.wants
    }

    /// The same, without those that a link to `/dev/null` in the same or a stronger folder of
    /// the path turns off.
    pub(crate) fn effective_wants(&self) -> impl Iterator<Item = &Want> {
        let key = |want: &Want| (want.by.clone(), want.how, want.unit.clone());
        // There are few of them, and of the others many.
        let mut off: HashMap<(String, &str, String), bool> = HashMap::new();
        for want in self.wants.iter().filter(|want| want.is_null) {
            off.insert(key(want), false);
        }
        self.wants.iter().filter(move |want| {
            if off.is_empty() {
                return true;
            }
            match off.get_mut(&key(want)) {
                None => true,
                Some(is_decided) if *is_decided => false,
                Some(is_decided) => {
                    *is_decided = true;
                    !want.is_null
                }
            }
        })
    }

    /// What links in `NAME.requires` of a unit name.
    pub(crate) fn required_by_links(&self, name: &str) -> &[String] {
        let found = self.required.get(name);
        found.map_or(&[][..], Vec::as_slice)
    }

    /// How a service is restarted; `None` for other sorts.
    pub fn restart(&self, unit: &Unit) -> Option<Restart> {
        (name::sort(&unit.name) == "service" && unit.bad.is_none())
            .then(|| Restart::of(&unit.settings, &self.defaults))
    }

    /// What keeps a unit from starting here.
    pub fn hindrance(&self, root: &dyn Root, unit: &Unit) -> Option<Hindrance> {
        // Of what could not be read nothing is missed.
        if unit.unread.is_some() {
            return None;
        }
        start::hindrance(&Tree::new(root), self, &self.accounts, unit)
    }

    pub(crate) fn may_be_generated(&self, tree: &Tree<'_>, unit: &str) -> bool {
        self.boot.may_make_unit(tree, unit)
    }

    pub(crate) fn makes_folder(&self, tree: &Tree<'_>, path: &Path) -> bool {
        self.boot.makes_folder(tree, path)
    }

    /// Whether a path is on a filesystem that is not here.
    pub(crate) fn is_elsewhere(&self, path: &Path) -> bool {
        self.boot.unseen_at(path).is_some()
    }

    /// Whether a command of another unit names a path, or one below it, to make it.
    pub(crate) fn other_makes(&self, unit: &Unit, path: &Path) -> bool {
        let made = self.boot.made(self.iter());
        made.is_made_by_other(path, &unit.name)
    }

    pub(crate) fn kernel(&self, tree: &Tree<'_>) -> Kernel {
        self.boot.kernel(tree)
    }

    /// What a text about a missing file comes to if it speaks of a filesystem that is not here.
    pub(crate) fn doubt(&self, text: &str) -> Option<String> {
        let path = text
            .split(['=', ':', ' ', ','])
            .map(|word| word.trim_start_matches(['|', '!']))
            .find(|word| word.starts_with('/'));
        let own = path.and_then(|path| self.boot.unseen_at(Path::new(path)));
        // Without `/usr` there are no units and no libraries either.
        let unseen = own.or_else(|| self.boot.unseen_at(Path::new("/usr")))?;
        Some(unseen.doubt(text))
    }

    /// What a boot mounts and this image does not hold, as gaps, where that matters: it holds
    /// units or packages, or one of these texts about what is not known speaks of it.
    pub fn unseen_mounts<'a>(&self, unknown: impl Iterator<Item = &'a str>) -> Vec<String> {
        let end = |text: &'a str| text.rfind(", and ").map(|at| &text[at..]);
        let ends: HashSet<&str> = unknown.filter_map(end).collect();
        let is_needed = |place: &Path, unseen: &Unseen| {
            ["/usr", "/var"].iter().any(|it| place == Path::new(it))
                || ends.contains(unseen.doubt("").as_str())
        };
        let unseen = self.boot.unseen.iter();
        let needed = unseen.filter(|(place, unseen)| is_needed(place, unseen));
        needed.map(|(_, unseen)| unseen.gap()).collect()
    }

    /// Instances that links start or that settings name, and that have no file of their own.
    fn add_instances(&mut self, tree: &mut Tree<'_>, search: &Search, presets: &Presets) {
        let mut names: BTreeSet<String> = self.wants.iter().map(|want| want.unit.clone()).collect();
        names.extend(self.iter().flat_map(graph::all_named));
        while let Some(name) = names.pop_first() {
            let is_instance = name::form(&name) == Some(Form::Instance);
            let template = name::template(&name).and_then(|template| self.units.get(&template));
            let Some(path) = template
                .filter(|_| is_instance)
                .map(|template| template.path.clone())
            else {
                continue;
            };
            if !self.units.contains_key(&name) && self.has_room(tree, Path::new(CONFIG)) {
                let found = unit(tree, search, presets, &name, path, false);
                names.extend(graph::all_named(&found));
                self.units.insert(name, found);
            }
        }
    }

    /// Units that generators will make at boot: of SysV scripts and of the table of mounts.
    fn add_generated(&mut self, tree: &mut Tree<'_>) {
        let scripts = sysv::read(tree, |name| self.units.contains_key(name));
        for script in scripts {
            if script.is_started {
                self.wants.push(Want {
                    by: "multi-user.target".into(),
                    how: "wants",
                    unit: script.unit.clone(),
                    link: script.path.clone(),
                    is_null: false,
                });
            }
            self.add_made(script.unit, script.path);
        }
        let table = tree.text(Path::new("/etc/fstab")).unwrap_or_default();
        let listed = grammar::fstab(&table).into_iter();
        let mut all: Vec<_> = listed
            .map(|mount| (mount, "/etc/fstab".to_owned()))
            .collect();
        all.extend(self.iter().filter_map(mounts::of_unit));
        self.boot = Boot::new(boot::unseen(tree, all));
        for name in mounts::names(&table) {
            if !self.units.contains_key(&name) {
                self.add_made(name, "/etc/fstab".into());
            }
        }
    }

    fn add_made(&mut self, name: String, file: PathBuf) {
        let made = Unit {
            own_name: name.clone(),
            state: State::Generated,
            preset: None,
            preset_file: None,
            path: file.clone(),
            file,
            aliases: Vec::new(),
            bad: None,
            unread: None,
            is_turned_off: false,
            is_listed: false,
            settings: Settings::default(),
            name: name.clone(),
        };
        self.units.insert(name, made);
    }

    fn note_aliases(&mut self) {
        let links: Vec<(String, String)> = self
            .iter()
            .filter(|unit| unit.state == State::Alias)
            .map(|unit| (unit.own_name.clone(), unit.name.clone()))
            .collect();
        for (own, alias) in links {
            if let Some(unit) = self.units.get_mut(&own) {
                unit.aliases.push(alias);
            }
        }
    }

    /// Drop-ins may be in the folder of any name of a unit.
    fn add_drop_ins_of_aliases(&mut self, tree: &mut Tree<'_>, search: &Search) {
        let has_drop_in = |alias: &String| {
            let mut folders = search.folders.iter();
            folders.any(|folder| folder.drop_ins.contains(alias))
        };
        for unit in self.units.values_mut() {
            if unit.settings.is_empty() || !unit.aliases.iter().any(has_drop_in) {
                continue;
            }
            let names = std::iter::once(&unit.own_name).chain(&unit.aliases);
            let names = names.map(String::as_str).collect::<Vec<_>>();
            unit.settings = settings(tree, search, &unit.file, &names, &mut unit.unread);
        }
    }

    /// A link to a file on a filesystem that is not here is not broken: it was not seen.
    fn note_files_elsewhere(&mut self, tree: &Tree<'_>) {
        let boot = &self.boot;
        for unit in self.units.values_mut().filter(|unit| unit.bad.is_some()) {
            let Ok(target) = tree.link(&unit.path) else {
                continue;
            };
            let folder = unit.path.parent().unwrap_or(Path::new("/"));
            let target = folder.join(target);
            if let Some(unseen) = boot.unseen_at(&target) {
                let target = target.display();
                unit.bad = None;
                unit.unread = Some(unseen.doubt(&format!("its file is {target}")));
            }
        }
    }

    fn note_requires(&mut self) {
        let mut required: HashMap<String, Vec<String>> = HashMap::new();
        for want in self.effective_wants().filter(|want| want.how == "requires") {
            let own = self.units.get(&want.by).map(|unit| &unit.own_name);
            let units = required.entry(own.unwrap_or(&want.by).clone()).or_default();
            units.push(want.unit.clone());
        }
        self.required = required;
    }

    fn note_turned_off(&mut self) {
        let on = self.effective_wants().map(|want| want.unit.as_str());
        let on: HashSet<&str> = on.collect();
        let off = self.wants.iter().filter(|want| want.is_null);
        let off = off.filter(|want| !on.contains(want.unit.as_str()));
        let off: Vec<String> = off.map(|want| want.unit.clone()).collect();
        for name in off {
            if let Some(unit) = self.units.get_mut(&name) {
                unit.is_turned_off = true;
            }
        }
    }
}

fn unit(
    tree: &mut Tree<'_>,
    search: &Search,
    presets: &Presets,
    name: &str,
    path: PathBuf,
    is_listed: bool,
) -> Unit {
    let discovered = search.discover(tree, name);
    let (state, info, bad, mut unread) = match discovered {
        Ok(info) => (search.state(name, &info), Some(info), None, None),
        Err(Trouble::Bad(why)) => (State::Bad, None, Some(why), None),
        Err(Trouble::Unread(why)) => (State::Bad, None, None, Some(why)),
    };
    let (preset, rule) = presets.of(name);
    let settings = match &info {
        Some(info) if !info.is_masked && state != State::Alias => {
            settings(tree, search, &info.path, &[&info.name], &mut unread)
        }
        _ => Settings::default(),
    };
    Unit {
        name: name.to_owned(),
        state,
        preset: state.has_preset().then_some(preset),
        preset_file: rule
            .filter(|_| state.has_preset())
            .map(|rule| rule.file.clone()),
        file: info
            .as_ref()
            .map_or_else(|| path.clone(), |info| info.path.clone()),
        own_name: info.map_or_else(|| name.to_owned(), |info| info.name),
        path,
        aliases: Vec::new(),
        bad,
        unread,
        is_turned_off: false,
        is_listed,
        settings,
    }
}

/// The file and its drop-ins, of all names of the unit, its template, its prefixes and its sort.
fn settings(
    tree: &mut Tree<'_>,
    search: &Search,
    file: &PathBuf,
    names: &[&str],
    unread: &mut Option<String>,
) -> Settings {
    let mut settings = Settings::default();
    let drop_ins = search.drop_ins(tree, &drop_in_names(names));
    for path in std::iter::once(file).chain(&drop_ins) {
        match tree.settings(path) {
            Ok(file) if tree.has_room_for(weight(&file), path) => settings.add_file(file),
            Ok(_) => *unread = Some("there are too many settings to judge it".to_owned()),
            Err(Unread::Missing) => {}
            Err(Unread::Hidden) => {
                *unread = Some(format!("{} cannot be read", path.display()));
            }
        }
    }
    settings
}

/// What it costs to judge a unit by a file: its settings, and four bytes of a value as one.
fn weight(file: &[Assignment]) -> usize {
    let settings = file.iter().map(|setting| 1 + setting.value.len() / 4);
    1 + settings.sum::<usize>()
}

/// `a-b.service`, `a-.service`, `service`.
fn drop_in_names(of: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for name in of {
        names.push((*name).to_owned());
        names.extend(name::template(name));
        let sort = name::sort(name);
        let mut stem = name::stem(name);
        while let Some((prefix, _)) = stem.trim_end_matches('-').rsplit_once('-') {
            names.push(format!("{prefix}-.{sort}"));
            stem = prefix;
        }
    }
    names.extend(of.first().map(|name| name::sort(name).to_owned()));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_ins_of_prefixes() {
        let names = drop_in_names(&["a-b-c@x.service"]);
        assert_eq!(
            names,
            [
                "a-b-c@x.service",
                "a-b-c@.service",
                "a-b-.service",
                "a-.service",
                "service"
            ]
        );
    }
}
