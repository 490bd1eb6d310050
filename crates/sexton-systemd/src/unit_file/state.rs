//! Whether a unit is enabled, as `systemctl list-unit-files` tells.
//!
//! The order of the questions is that of systemd's `unit_file_lookup_state` (252 and
//! later agree on it): follow links to the file, see whether it is masked, an alias,
//! generated, then look for links that enable it, in every folder of the search path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sexton_host::Kind;

use crate::unit_file::alias;
use crate::unit_file::file::{self, Assignment};
use crate::unit_file::folder::Folder;
use crate::unit_file::name::{self, Form};
use crate::unit_file::tree::{Tree, Unread};
use crate::unit_file::version::Version;

/// Where units lie, strongest first.
pub const SEARCH: &[&str] = &[
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// Where `systemctl enable` puts its links.
pub(crate) const CONFIG: &str = "/etc/systemd/system";

/// As many links as systemd follows.
const N_LINKS_MAX: usize = 64;

/// The states of a unit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Links start it.
    Enabled,
    /// Links start it until the next boot.
    EnabledRuntime,
    /// Its file lies elsewhere and is linked.
    Linked,
    /// The same until the next boot.
    LinkedRuntime,
    /// Another name of a unit.
    Alias,
    /// It cannot be started by anyone.
    Masked,
    /// The same until the next boot.
    MaskedRuntime,
    /// Nothing in it says how to enable it.
    Static,
    /// It could be enabled.
    Disabled,
    /// It is enabled through others, or under another name.
    Indirect,
    /// A generator made it at boot.
    Generated,
    /// A program made it while running.
    Transient,
    /// Its file cannot be used.
    Bad,
}

impl State {
    /// As `systemctl` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::EnabledRuntime => "enabled-runtime",
            Self::Linked => "linked",
            Self::LinkedRuntime => "linked-runtime",
            Self::Alias => "alias",
            Self::Masked => "masked",
            Self::MaskedRuntime => "masked-runtime",
            Self::Static => "static",
            Self::Disabled => "disabled",
            Self::Indirect => "indirect",
            Self::Generated => "generated",
            Self::Transient => "transient",
            Self::Bad => "bad",
        }
    }

    /// Whether `systemctl` shows a preset beside it.
    pub fn has_preset(self) -> bool {
        !matches!(
            self,
            Self::Alias | Self::Static | Self::Generated | Self::Transient
        )
    }

    /// Whether links start it.
    pub fn is_enabled(self) -> bool {
        matches!(self, Self::Enabled | Self::EnabledRuntime)
    }

    /// Whether nobody can start it.
    pub fn is_masked(self) -> bool {
        matches!(self, Self::Masked | Self::MaskedRuntime)
    }
}

/// What systemd knows of a unit when it wants to tell its state.
#[derive(Debug, Clone)]
pub(crate) struct Info {
    /// The name after aliases were followed.
    pub(crate) name: String,
    /// The file that was read, or the mask.
    pub(crate) path: PathBuf,
    pub(crate) is_masked: bool,
    /// The file and its drop-ins, as far as `[Install]` goes.
    pub(crate) aliases: Vec<String>,
    /// Whether `WantedBy=`, `RequiredBy=` and `UpheldBy=` name anything.
    rules: [bool; 3],
    has_also: bool,
    default_instance: Option<String>,
    /// `systemctl` cannot follow it, though the service manager can.
    is_odd: bool,
}

impl Info {
    pub(crate) fn is_known_as(&self, link: &str) -> bool {
        let default = || {
            let instance = self.default_instance.as_deref()?;
            (name::form(&self.name) == Some(Form::Template))
                .then(|| name::with_instance(&self.name, instance))?
        };
        link == self.name
            || self.aliases.iter().any(|alias| alias == link)
            || default().as_deref() == Some(link)
    }

    fn install(&mut self, assignments: &[Assignment], version: Version) {
        for assignment in assignments.iter().filter(|a| a.section == "Install") {
            let words = file::words(&assignment.value);
            match assignment.key.as_str() {
                "Alias" if !name::may_alias(name::sort(&self.name)) => {}
                "Alias" if words.is_empty() => self.aliases.clear(),
                "Alias" => self.aliases.extend(words),
                "UpheldBy" if !version.knows_upholds() => {}
                // An empty one begins the list anew.
                "WantedBy" => self.rules[0] = !words.is_empty(),
                "RequiredBy" => self.rules[1] = !words.is_empty(),
                "UpheldBy" => self.rules[2] = !words.is_empty(),
                "Also" => self.has_also |= !words.is_empty(),
                "DefaultInstance" => self.default_instance = words.into_iter().next(),
                _ => {}
            }
        }
    }
}

/// Why a unit could not be followed to its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// systemd cannot use it either.
    Bad(String),
    /// It is there, and this program cannot read it.
    Unread(String),
}

impl Trouble {
    fn bad(why: impl Into<String>) -> Self {
        Self::Bad(why.into())
    }

    /// What is not there is bad; what cannot be looked at is not known.
    fn of(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                Self::Bad(error.to_string())
            }
            _ => Self::Unread(format!("its file cannot be read: {error}")),
        }
    }
}

/// The folders of the search path, and the way through them.
pub(crate) struct Search {
    pub(crate) folders: Vec<Folder>,
    /// The same folders, links followed: `/lib` may be `/usr/lib`.
    real: Vec<PathBuf>,
    pub(crate) version: Version,
}

/// What a path of the search turned out to be.
enum Step {
    Masked,
    File,
    /// Another place: a path, and whether it is in the search path.
    Link(PathBuf, bool),
}

impl Search {
    pub(crate) fn read(tree: &mut Tree<'_>) -> Self {
        let mut real: Vec<PathBuf> = Vec::new();
        let mut folders = Vec::new();
        let version = Version::read(tree);
        let mut search = SEARCH.to_vec();
        // A systemd of before the merge of `/usr` has its own units in `/lib`.
        let is_split = tree
            .link_meta(Path::new("/lib"))
            .is_ok_and(|meta| meta.kind == Kind::Dir);
        if is_split {
            let at = |wanted: &str| SEARCH.iter().position(|path| *path == wanted);
            let (Some(usr), Some(lib)) = (at("/usr/lib/systemd/system"), at("/lib/systemd/system"))
            else {
                unreachable!("both are in the search path");
            };
            search.swap(usr, lib);
        }
        for path in search {
            let folder = tree.simplify(&Path::new(path).join("x"));
            let folder = folder.parent().unwrap_or(Path::new("/")).to_owned();
            // The same folder by two names is read once.
            if !real.contains(&folder) {
                real.push(folder);
                folders.push(Folder::read(tree, path, version));
            }
        }
        Self {
            folders,
            real,
            version,
        }
    }

    fn first(&self, name: &str) -> Option<PathBuf> {
        let folder = self.folders.iter().find(|folder| {
            folder
                .units
                .binary_search_by(|(unit, _)| unit.as_str().cmp(name))
                .is_ok()
        });
        folder.map(|folder| folder.path.join(name))
    }

    /// Follows a name to its file. `Err` is what makes a unit `bad`.
    pub(crate) fn discover(&self, tree: &mut Tree<'_>, name: &str) -> Result<Info, Trouble> {
        let mut unit = name.to_owned();
        let mut path = self
            .find(&unit)
            .ok_or_else(|| Trouble::bad("there is no such unit"))?;
        let mut is_odd = self.is_odd(&unit, &path);
        for _ in 0..N_LINKS_MAX {
            match self.step(tree, &unit, &path)? {
                Step::Masked => {
                    return Ok(Info {
                        is_odd,
                        ..Info::new(unit, path, true)
                    });
                }
                Step::File => {
                    let mut info = self.load(tree, unit, path)?;
                    info.is_odd |= is_odd;
                    return Ok(info);
                }
                Step::Link(target, is_inside) => {
                    let last = target
                        .file_name()
                        .map(|name| name.to_string_lossy().into_owned());
                    let last = last.unwrap_or_default();
                    if !is_inside || last == unit {
                        is_odd |= is_inside && self.version.refuses_own_name();
                        path = target;
                        continue;
                    }
                    let filled = match (name::instance(&unit), name::form(&last)) {
                        (Some(instance), Some(Form::Template)) => {
                            name::with_instance(&last, instance)
                        }
                        _ => None,
                    };
                    let next = filled.unwrap_or(last);
                    if next == unit {
                        path = target;
                        continue;
                    }
                    path = self
                        .find(&next)
                        .ok_or_else(|| Trouble::bad("it leads to a unit that is not there"))?;
                    unit = next;
                    is_odd |= self.is_odd(&unit, &path);
                }
            }
        }
        Err(Trouble::bad("its links loop"))
    }

    /// The strongest file of that name, or of its template.
    fn find(&self, name: &str) -> Option<PathBuf> {
        let template = || name::template(name).and_then(|template| self.first(&template));
        self.first(name).or_else(template)
    }

    /// Whether a folder of that name is in front of the file.
    fn is_odd(&self, name: &str, path: &Path) -> bool {
        let template = name::template(name);
        let is_named = |odd: &String| odd == name || template.as_ref() == Some(odd);
        self.folders
            .iter()
            .take_while(|folder| !path.starts_with(&folder.path))
            .any(|folder| folder.odd.iter().any(is_named))
    }

    fn step(&self, tree: &mut Tree<'_>, unit: &str, path: &Path) -> Result<Step, Trouble> {
        let sort = name::sort(unit);
        if name::form(unit) != Some(Form::Plain) && !name::may_template(sort) {
            return Err(Trouble::Bad(format!("a {sort} cannot be a template")));
        }
        let meta = tree.link_meta(path).map_err(|error| {
            tree.gap(path, &error);
            Trouble::of(&error)
        })?;
        match meta.kind {
            Kind::Dir => Err(Trouble::bad("it is a folder")),
            Kind::Other => Ok(Step::Masked),
            Kind::File if meta.size_bytes == 0 => Ok(Step::Masked),
            Kind::File => Ok(Step::File),
            Kind::Link => {
                let target = tree.link(path).map_err(|error| Trouble::of(&error))?;
                let folder = path.parent().unwrap_or(Path::new("/"));
                let target = tree.simplify(&folder.join(target));
                if is_null(tree, &target) {
                    return Ok(Step::Masked);
                }
                let is_inside = self.is_inside(&target);
                if is_inside {
                    alias::validate(path, &target).map_err(Trouble::Bad)?;
                }
                let is_unit = target
                    .file_name()
                    .is_some_and(|last| name::form(&last.to_string_lossy()).is_some());
                let is_by_name = is_unit && self.version.follows_names();
                let last = target.file_name().unwrap_or_default().to_string_lossy();
                if is_by_name && name::sort(&last) != sort {
                    return Err(Trouble::Bad(format!(
                        "it leads to {last}, which is no {sort}"
                    )));
                }
                Ok(Step::Link(target, is_inside || is_by_name))
            }
        }
    }

    fn is_inside(&self, path: &Path) -> bool {
        self.real.iter().any(|folder| path.starts_with(folder))
    }

    fn load(&self, tree: &mut Tree<'_>, unit: String, path: PathBuf) -> Result<Info, Trouble> {
        let mut info = Info::new(unit, path, false);
        let file = tree.settings(&info.path).map_err(|unread| match unread {
            Unread::Missing => Trouble::bad("its file cannot be read"),
            Unread::Hidden => Trouble::Unread("its file cannot be read".into()),
        })?;
        if let Some(line) = tree.bad_line(&info.path) {
            return Err(Trouble::Bad(format!("{line} does not end: no section")));
        }
        info.install(&file, self.version);
        let mut names = vec![info.name.clone()];
        names.extend(name::template(&info.name));
        for drop_in in self.drop_ins(tree, &names) {
            if let Ok(file) = tree.settings(&drop_in) {
                info.install(&file, self.version);
                info.is_odd |= tree.bad_line(&drop_in).is_some();
            }
        }
        Ok(info)
    }

    /// Drop-ins of these names, in the order in which they count.
    pub(crate) fn drop_ins(&self, tree: &mut Tree<'_>, names: &[String]) -> Vec<PathBuf> {
        let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
        for name in names {
            for folder in self
                .folders
                .iter()
                .filter(|folder| folder.drop_ins.contains(name))
            {
                let path = folder.path.join(format!("{name}.d"));
                let drop_ins = tree.drop_ins(&path);
                if !tree.has_room_for(drop_ins.len(), &path) {
                    break;
                }
                for drop_in in drop_ins.iter() {
                    let file = files.entry(drop_in.clone());
                    file.or_insert_with(|| path.join(drop_in));
                }
            }
        }
        files.into_values().collect()
    }

    /// The state of a unit that was discovered under a name.
    pub(crate) fn state(&self, name: &str, info: &Info) -> State {
        if info.is_odd {
            return State::Bad;
        }
        let below = |folders: &[&str]| folders.iter().any(|folder| info.path.starts_with(folder));
        if info.is_masked {
            return if below(&["/run"]) {
                State::MaskedRuntime
            } else {
                State::Masked
            };
        }
        let last = info
            .path
            .file_name()
            .map(|last| last.to_string_lossy().into_owned());
        if last.as_deref() != Some(name) && name::form(&info.name) != Some(Form::Instance) {
            return State::Alias;
        }
        if below(&[
            "/run/systemd/generator",
            "/run/systemd/generator.early",
            "/run/systemd/generator.late",
        ]) {
            return State::Generated;
        }
        if below(&["/run/systemd/transient"]) {
            return State::Transient;
        }
        match self.enabled(info, true) {
            Some(state) => state,
            None if self.enabled(info, false).is_some() => State::Indirect,
            None if info.rules.contains(&true) || !info.aliases.is_empty() => State::Disabled,
            None if info.has_also => State::Indirect,
            None => State::Static,
        }
    }

    /// Whether links anywhere enable it, and how.
    fn enabled(&self, info: &Info, by_known_name: bool) -> Option<State> {
        let mut ignore_same_name = false;
        let (mut in_runtime, mut at_all) = (false, false);
        let (mut same_in_config, mut same_in_runtime) = (false, false);
        let path = &info.path;
        for (folder, real) in self.folders.iter().zip(&self.real) {
            let (found, same_name) = folder.finds(info, by_known_name, ignore_same_name);
            let is_config = folder.path == Path::new(CONFIG);
            let is_runtime = folder.path.starts_with("/run");
            match (found, same_name) {
                (true, _) if is_config => return Some(State::Enabled),
                (true, _) if is_runtime => in_runtime = true,
                (true, _) => at_all = true,
                (false, true) if is_config => same_in_config = true,
                (false, true) if is_runtime => same_in_runtime = true,
                _ => {}
            }
            ignore_same_name |= path.starts_with(&folder.path) || path.starts_with(real);
        }
        let is_instance = name::form(&info.name) == Some(Form::Instance);
        match () {
            () if in_runtime => Some(State::EnabledRuntime),
            () if at_all && is_instance => Some(State::Static),
            () if same_in_config => Some(State::Linked),
            () if same_in_runtime => Some(State::LinkedRuntime),
            () => None,
        }
    }
}

impl Info {
    fn new(name: String, path: PathBuf, is_masked: bool) -> Self {
        Self {
            name,
            path,
            is_masked,
            aliases: Vec::new(),
            rules: [false; 3],
            has_also: false,
            default_instance: None,
            is_odd: false,
        }
    }
}

/// An empty file, a device, or the name that means both.
fn is_null(tree: &Tree<'_>, path: &Path) -> bool {
    let is_null = |meta: sexton_host::Meta| match meta.kind {
        Kind::File => meta.size_bytes == 0,
        Kind::Other => true,
        Kind::Dir | Kind::Link => false,
    };
    path == Path::new("/dev/null") || tree.meta(path).is_some_and(is_null)
}
