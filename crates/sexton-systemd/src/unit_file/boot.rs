//! What a boot will make before units start: units by generators, folders by
//! `systemd-tmpfiles`, and what is mounted over empty folders. Read when first asked for, once.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sexton_signatures::units::grammar;

use crate::unit_file::interpreter::Kernel;
use crate::unit_file::made::Made;
use crate::unit_file::name;
use crate::unit_file::set::Unit;
use crate::unit_file::start::VOLATILE;
use crate::unit_file::tree::Tree;

pub(crate) const GENERATORS: &[&str] = &[
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
    "/lib/systemd/system-generators",
];

/// The largest of systemd's own is 200 kB.
const PROGRAM_BYTES_MAX: u64 = 4 << 20;

const TMPFILES: &[&str] = &[
    "/etc/tmpfiles.d",
    "/usr/local/lib/tmpfiles.d",
    "/usr/lib/tmpfiles.d",
];

/// Filesystems that hold no files of an image.
const VIRTUAL: &[&str] = &[
    "swap",
    "tmpfs",
    "proc",
    "sysfs",
    "devpts",
    "devtmpfs",
    "cgroup",
    "cgroup2",
    "hugetlbfs",
    "debugfs",
    "tracefs",
    "bpf",
    "binfmt_misc",
];

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Boot {
    generators: OnceLock<Generators>,
    folders: OnceLock<HashSet<PathBuf>>,
    kernel: OnceLock<Kernel>,
    made: OnceLock<Made>,
    pub(crate) unseen: BTreeMap<PathBuf, Unseen>,
}

/// A filesystem that a boot mounts and that is not part of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unseen {
    place: PathBuf,
    /// What is mounted there, and what says so.
    what: String,
    /// Whether it is another folder of the same tree.
    is_bound: bool,
}

impl Unseen {
    /// A text about what is missing below it, with the reason why nothing is certain.
    pub(crate) fn doubt(&self, text: &str) -> String {
        let place = self.place.display();
        match self.is_bound {
            true => format!("{text}, and a boot mounts another folder on {place}"),
            false => format!(
                "{text}, and {place} is another filesystem, which is not part of this image"
            ),
        }
    }

    /// The same as a gap.
    pub(crate) fn gap(&self) -> String {
        let (place, what) = (self.place.display(), &self.what);
        match self.is_bound {
            true => format!("{place}: a boot mounts {what} on it, which was not followed"),
            false => format!("{place}: another filesystem ({what}) that is not part of this image"),
        }
    }
}

#[derive(Debug, Default)]
struct Generators {
    names: HashSet<String>,
    /// Names of units that their programs hold.
    units: HashSet<String>,
}

impl Boot {
    pub(crate) fn new(unseen: BTreeMap<PathBuf, Unseen>) -> Self {
        Self {
            unseen,
            ..Self::default()
        }
    }

    /// Whether a generator is named after the unit or knows its name: then it may make the unit
    /// at boot. `rpc-pipefs-generator` makes `rpc_pipefs.target`, and its code holds that name
    /// only in pieces.
    pub(crate) fn may_make_unit(&self, tree: &Tree<'_>, unit: &str) -> bool {
        let generators = self.generators.get_or_init(|| Generators::read(tree));
        let named_after = format!("{}-generator", plain(name::stem(unit)));
        generators.names.contains(&named_after) || generators.units.contains(unit)
    }

    /// Whether `systemd-tmpfiles` makes a folder.
    pub(crate) fn makes_folder(&self, tree: &Tree<'_>, path: &Path) -> bool {
        let folders = self.folders.get_or_init(|| tmpfiles(tree));
        folders.contains(path)
    }

    /// The filesystem that is not here and that a path is on.
    pub(crate) fn unseen_at(&self, path: &Path) -> Option<&Unseen> {
        path.ancestors().find_map(|place| self.unseen.get(place))
    }

    /// What commands of units make.
    pub(crate) fn made<'a>(&self, units: impl Iterator<Item = &'a Unit>) -> &Made {
        self.made.get_or_init(|| Made::by(units))
    }

    pub(crate) fn kernel(&self, tree: &Tree<'_>) -> Kernel {
        *self.kernel.get_or_init(|| Kernel::of(tree))
    }
}

fn plain(name: &str) -> String {
    name.replace('_', "-")
}

impl Generators {
    fn read(tree: &Tree<'_>) -> Self {
        let mut found = Self::default();
        for folder in GENERATORS.iter().map(Path::new) {
            for entry in tree.root().list(folder).unwrap_or_default() {
                found.names.insert(plain(&entry.name.to_string_lossy()));
                let program = tree.read(&folder.join(&entry.name), PROGRAM_BYTES_MAX);
                found.add_units(&program.unwrap_or_default());
            }
        }
        found
    }

    /// Runs of bytes that are the name of a unit.
    fn add_units(&mut self, program: &[u8]) {
        let is_part = |b: &u8| b.is_ascii_alphanumeric() || b"@._:-\\".contains(b);
        for run in program.split(|b| !is_part(b)) {
            let text = String::from_utf8_lossy(run);
            if run.len() < 256 && name::form(&text).is_some() {
                self.units.insert(text.into_owned());
            }
        }
    }
}

fn tmpfiles(tree: &Tree<'_>) -> HashSet<PathBuf> {
    let mut folders = HashSet::new();
    for folder in TMPFILES.iter().map(Path::new) {
        for entry in tree.root().list(folder).unwrap_or_default() {
            let text = tree.read(&folder.join(&entry.name), 1 << 20);
            let text = text.unwrap_or_default();
            for line in String::from_utf8_lossy(&text).lines() {
                let mut words = line.split_whitespace();
                let sort = words.next().unwrap_or_default();
                let makes =
                    sort.starts_with(['d', 'D', 'v', 'q', 'Q', 'C', 'L', 'e', 'f', 'F', 'p']);
                let path = words
                    .next()
                    .map(|path| path.trim_matches('"'))
                    .filter(|_| makes);
                folders.extend(path.map(PathBuf::from));
            }
        }
    }
    folders
}

/// Places that the table of mounts names and that are empty here: what a boot mounts there is
/// not part of the image.
///
/// Mounts come with what names them: `/etc/fstab`, or a unit.
pub(crate) fn unseen(
    tree: &Tree<'_>,
    mounts: Vec<(grammar::Mount, String)>,
) -> BTreeMap<PathBuf, Unseen> {
    if tree.root().is_live() {
        return BTreeMap::new();
    }
    let is_real = |mount: &grammar::Mount| {
        let is_file = mount.place.starts_with('/') && mount.place != "/";
        let is_volatile = VOLATILE
            .iter()
            .any(|at| Path::new(&mount.place).starts_with(at));
        is_file && !is_volatile && !VIRTUAL.contains(&mount.sort.as_str())
    };
    let is_empty = |mount: &grammar::Mount| {
        let entries = tree.root().list(Path::new(&mount.place));
        let is_own = |entry: &sexton_host::Entry| entry.name != "lost+found";
        entries.map_or(true, |entries| !entries.iter().any(is_own))
    };
    let mounts = mounts.into_iter();
    let mounts = mounts.filter(|(mount, _)| is_real(mount) && is_empty(mount));
    mounts
        .map(|(mount, by)| {
            let place = PathBuf::from(mount.place);
            let unseen = Unseen {
                place: place.clone(),
                is_bound: mount.options.iter().any(|o| o == "bind" || o == "rbind"),
                what: format!("{} in {by}", mount.what),
            };
            (place, unseen)
        })
        .collect()
}
