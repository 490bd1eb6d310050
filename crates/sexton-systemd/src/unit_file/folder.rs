//! One folder of the search path: its units, its links, and what they enable.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use sexton_host::Kind;

use crate::unit_file::name;
use crate::unit_file::state::Info;
use crate::unit_file::tree::{Entry, Tree};
use crate::unit_file::version::Version;

/// A folder of units with more is a trap; a full desktop has 700.
const N_ENTRIES_MAX: usize = 10_000;

/// A link in a `.wants`, `.requires` or `.upholds` folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// The unit whose folder it is: `multi-user.target`.
    pub by: String,
    /// `wants`, `requires` or `upholds`.
    pub how: &'static str,
    /// The unit it names.
    pub unit: String,
    /// The link itself.
    pub link: PathBuf,
    /// Whether it leads to `/dev/null`: then it says that nothing is to be started, whatever
    /// weaker folders say.
    pub is_null: bool,
}

/// One folder of the search path.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// Units: their names, and for links the last part of where they lead.
    pub(crate) units: Vec<(String, Option<String>)>,
    /// Folders that are called as units are.
    pub(crate) odd: HashSet<String>,
    /// Links, by the last part of where they lead.
    by_target: HashMap<String, Vec<String>>,
    own_links: HashSet<String>,
    /// Names in its `.wants` folders, and by template.
    wanted: HashSet<String>,
    wanted_by_template: HashMap<String, Vec<String>>,
    /// `NAME.d` folders.
    pub(crate) drop_ins: HashSet<String>,
    pub(crate) wants: Vec<Want>,
    /// Whether it or a folder in it has more than was looked at.
    pub(crate) is_cut: bool,
}

impl Folder {
    pub(crate) fn read(tree: &mut Tree<'_>, path: &str, version: Version) -> Self {
        let path = Path::new(path);
        let mut folder = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        for entry in folder.some(tree, path) {
            if entry.is_dir {
                folder.read_sub(tree, &entry.name, version);
                continue;
            }
            let target = tree.link(&path.join(&entry.name)).ok();
            let target = target.as_deref().map(|target| {
                target
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
            });
            let is_unit = name::form(&entry.name).is_some();
            match target {
                Some(target) => {
                    let target = target.unwrap_or_default();
                    folder.own_links.insert(entry.name.clone());
                    folder
                        .by_target
                        .entry(target.clone())
                        .or_default()
                        .push(entry.name.clone());
                    if is_unit {
                        folder.units.push((entry.name, Some(target)));
                    }
                }
                None if is_unit => folder.units.push((entry.name, None)),
                None => {}
            }
        }
        folder
    }

    fn some(&mut self, tree: &mut Tree<'_>, folder: &Path) -> Vec<Entry> {
        let (entries, is_cut) = tree.list_some(folder, N_ENTRIES_MAX);
        self.is_cut |= is_cut;
        entries
    }

    fn read_sub(&mut self, tree: &mut Tree<'_>, sub: &str, version: Version) {
        let (by, how) = match sub.rsplit_once('.') {
            Some((by, "wants")) => (by, "wants"),
            Some((by, "requires")) => (by, "requires"),
            Some((by, "upholds")) if version.knows_upholds() => (by, "upholds"),
            Some((by, "d")) => {
                self.drop_ins.insert(by.to_owned());
                return;
            }
            _ => {
                if name::form(sub).is_some() {
                    self.odd.insert(sub.to_owned());
                }
                if version.follows_names() {
                    self.note_links(tree, sub);
                }
                return;
            }
        };
        let path = self.path.join(sub);
        for entry in self.some(tree, &path) {
            let link = path.join(&entry.name);
            let is_link = tree
                .link_meta(&link)
                .is_ok_and(|meta| meta.kind == Kind::Link);
            if entry.is_dir || !is_link {
                continue;
            }
            self.wanted.insert(entry.name.clone());
            if let Some(template) = name::template(&entry.name) {
                self.wanted_by_template
                    .entry(template)
                    .or_default()
                    .push(entry.name.clone());
            }
            let is_null = tree
                .link(&link)
                .is_ok_and(|target| target == Path::new("/dev/null"));
            self.wants.push(Want {
                by: by.to_owned(),
                how,
                unit: entry.name,
                link,
                is_null,
            });
        }
    }

    /// Links that enable for `systemctl`, and start nothing.
    fn note_links(&mut self, tree: &mut Tree<'_>, sub: &str) {
        let path = self.path.join(sub);
        for entry in self.some(tree, &path) {
            if tree.link(&path.join(&entry.name)).is_err() {
                continue;
            }
            if let Some(template) = name::template(&entry.name) {
                let instances = self.wanted_by_template.entry(template).or_default();
                instances.push(entry.name.clone());
            }
            self.wanted.insert(entry.name);
        }
    }

    /// Whether links here enable the unit, and whether one only has its own name.
    pub(crate) fn finds(
        &self,
        info: &Info,
        by_known_name: bool,
        ignore_same_name: bool,
    ) -> (bool, bool) {
        let accepts = |link: &String| !by_known_name || info.is_known_as(link);
        let none = Vec::new();
        if self.wanted.contains(&info.name) {
            return (true, false);
        }
        let instances = self.wanted_by_template.get(&info.name).unwrap_or(&none);
        if instances.iter().any(accepts) {
            return (true, false);
        }
        let mut same_name = false;
        for link in self.by_target.get(&info.name).unwrap_or(&none) {
            if *link == info.name && !ignore_same_name {
                same_name = true;
            } else if accepts(link) {
                return (true, same_name);
            }
        }
        let has_own = !ignore_same_name && self.own_links.contains(&info.name);
        (has_own && !same_name, same_name)
    }
}
