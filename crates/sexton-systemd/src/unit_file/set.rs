//! All units of a root.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sexton_host::Root;

use sexton_signatures::units::grammar;

use crate::unit_file::boot::{self, Boot};
use crate::unit_file::folder::Want;
use crate::unit_file::interpreter::Kernel;
use crate::unit_file::name::{self, Form};
use crate::unit_file::os::Os;
use crate::unit_file::preset::{Preset, Presets};
use crate::unit_file::restart::{Defaults, Restart};
use crate::unit_file::settings::Settings;
use crate::unit_file::start::{self, Accounts, Hindrance};
use crate::unit_file::state::{Info, Search, State, Trouble};
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
    /// Whether `systemctl list-unit-files` lists it: instances that links name and units that
    /// generators will make have no file.
    pub is_listed: bool,
    /// What it is set to do.
    pub settings: Settings,
}

/// All units of a root, and what belongs to all of them.
#[derive(Debug)]
pub struct UnitSet {
    units: BTreeMap<String, Unit>,
    pub(crate) wants: Vec<Want>,
    pub(crate) triggers: Vec<Trigger>,
    /// What holds for units that say nothing else.
    pub defaults: Defaults,
    /// Which system it is.
    pub os: Os,
    accounts: Accounts,
    boot: Boot,
}

impl UnitSet {
    /// Reads all of them.
    pub fn read(tree: &mut Tree<'_>) -> Self {
        let search = Search::read(tree);
        let presets = Presets::read(tree, search.version);
        let mut set = Self {
            units: BTreeMap::new(),
            wants: search
                .folders
                .iter()
                .flat_map(|folder| folder.wants.clone())
                .collect(),
            triggers: udev::triggers(tree),
            defaults: Defaults::read(tree),
            os: Os::read(tree),
            accounts: Accounts::read(tree),
            boot: Boot::default(),
        };
        for folder in &search.folders {
            for (name, _) in &folder.units {
                if !set.units.contains_key(name) {
                    let path = folder.path.join(name);
                    let unit = unit(tree, &search, &presets, name, path, true);
                    set.units.insert(name.clone(), unit);
                }
            }
        }
        set.add_instances(tree, &search, &presets);
        set.add_generated(tree);
        set.note_aliases();
        set
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

    pub(crate) fn kernel(&self, tree: &Tree<'_>) -> Kernel {
        self.boot.kernel(tree)
    }

    /// The filesystem that a text about a missing file speaks of, if it is one that is not here.
    pub(crate) fn unseen(&self, text: &str) -> Option<&Path> {
        let path = text
            .split(['=', ':', ' ', ','])
            .find(|word| word.starts_with('/'));
        let unseen = &self.boot.unseen;
        // Without `/usr` there are no units and no libraries either.
        let usr = unseen
            .iter()
            .find(|unseen| unseen.place == Path::new("/usr"));
        let own = unseen
            .iter()
            .find(|unseen| path.is_some_and(|path| Path::new(path).starts_with(&unseen.place)));
        own.or(usr).map(|unseen| unseen.place.as_path())
    }

    /// What a boot mounts and this image does not hold: place and device.
    pub fn unseen_mounts(&self) -> impl Iterator<Item = (&Path, &str)> {
        let unseen = self.boot.unseen.iter();
        unseen.map(|unseen| (unseen.place.as_path(), unseen.what.as_str()))
    }

    /// Units that links start and that have no file of their own.
    fn add_instances(&mut self, tree: &mut Tree<'_>, search: &Search, presets: &Presets) {
        let names: BTreeSet<String> = self.wants.iter().map(|want| want.unit.clone()).collect();
        for name in names {
            let is_instance = name::form(&name) == Some(Form::Instance);
            let template = name::template(&name).and_then(|template| self.units.get(&template));
            let Some(path) = template
                .filter(|_| is_instance)
                .map(|template| template.path.clone())
            else {
                continue;
            };
            self.units
                .entry(name)
                .or_insert_with_key(|name| unit(tree, search, presets, name, path, false));
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
                });
            }
            self.add_made(script.unit, script.path);
        }
        let table = tree.text(Path::new("/etc/fstab")).unwrap_or_default();
        let listed = grammar::fstab(&table).into_iter();
        let mut all: Vec<_> = listed
            .map(|mount| (mount, "/etc/fstab".to_owned()))
            .collect();
        all.extend(self.iter().filter_map(mount_of));
        self.boot = Boot::new(boot::unseen(tree, all));
        for name in mounts(&table) {
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
            settings(tree, search, info, &mut unread)
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
        is_listed,
        settings,
    }
}

/// The file and its drop-ins, of the unit, its template, its prefixes and its sort.
fn settings(
    tree: &mut Tree<'_>,
    search: &Search,
    info: &Info,
    unread: &mut Option<String>,
) -> Settings {
    let mut settings = Settings::default();
    let drop_ins = search.drop_ins(tree, &drop_in_names(&info.name));
    for path in std::iter::once(&info.path).chain(&drop_ins) {
        match tree.settings(path) {
            Ok(file) => settings.add_file(file),
            Err(Unread::Missing) => {}
            Err(Unread::Hidden) => {
                *unread = Some(format!("{} cannot be read", path.display()));
            }
        }
    }
    settings
}

/// `a-b.service`, `a-.service`, `service`.
fn drop_in_names(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    names.extend(name::template(name));
    let sort = name::sort(name);
    let mut stem = name::stem(name);
    while let Some((prefix, _)) = stem.trim_end_matches('-').rsplit_once('-') {
        names.push(format!("{prefix}-.{sort}"));
        stem = prefix;
    }
    names.push(sort.to_owned());
    names
}

/// What a mount unit mounts, unless it is masked.
fn mount_of(unit: &Unit) -> Option<(grammar::Mount, String)> {
    let said = |key| unit.settings.last("Mount", key).unwrap_or_default();
    let is_mount = name::sort(&unit.name) == "mount" && !unit.state.is_masked();
    let mount = grammar::Mount {
        what: said("What").to_owned(),
        place: said("Where").to_owned(),
        sort: said("Type").to_owned(),
        options: Vec::new(),
    };
    (is_mount && !mount.what.is_empty()).then(|| (mount, unit.name.clone()))
}

/// Names of the mounts and swaps in `/etc/fstab`.
fn mounts(table: &str) -> Vec<String> {
    let name = |mount: grammar::Mount| match mount.sort.as_str() {
        "swap" => Some(format!("{}.swap", escape(&device(&mount.what)?))),
        _ if mount.place.starts_with('/') => Some(format!("{}.mount", escape(&mount.place))),
        _ => None,
    };
    let mounts = grammar::fstab(table).into_iter();
    mounts.filter_map(name).collect()
}

/// The device that `UUID=` and its kin name, as `systemd-fstab-generator` looks for it.
fn device(what: &str) -> Option<String> {
    let (tag, value) = match what.split_once('=') {
        None => return what.starts_with('/').then(|| what.to_owned()),
        Some(found) => found,
    };
    let folder = match tag {
        "UUID" => "by-uuid",
        "LABEL" => "by-label",
        "PARTUUID" => "by-partuuid",
        "PARTLABEL" => "by-partlabel",
        _ => return None,
    };
    Some(format!("/dev/disk/{folder}/{value}"))
}

/// A path as systemd writes it in names: `/dev/disk/by-id` is `dev-disk-by\x2did`.
fn escape(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return "-".into();
    }
    let mut name = String::new();
    for (n, b) in parts.join("/").bytes().enumerate() {
        match b {
            b'/' => name.push('-'),
            b'.' if n == 0 => name.push_str("\\x2e"),
            b if b.is_ascii_alphanumeric() || b == b':' || b == b'_' || b == b'.' => {
                name.push(b.into())
            }
            b => name.push_str(&format!("\\x{b:02x}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_a_table() {
        let table = "# c\n/dev/sda1 / ext4 defaults 0 1\nUUID=1 /srv/my-data xfs x\n/swap.img none swap sw 0 0\nproc\n\
            x /a\\040b ext4\nUUID=1-2 none swap\n";
        assert_eq!(
            mounts(table),
            [
                "-.mount",
                r"srv-my\x2ddata.mount",
                "swap.img.swap",
                r"a\x20b.mount",
                r"dev-disk-by\x2duuid-1\x2d2.swap"
            ]
        );
    }

    #[test]
    fn drop_ins_of_prefixes() {
        let names = drop_in_names("a-b-c@x.service");
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
