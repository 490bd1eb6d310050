//! A node as a recording has it: its units, and what else signatures of units ask for.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use sexton_model::fact::unit::{BootMount, UnitContext, UnitFile};
use sexton_model::glob;
use sexton_model::unit_name;

use super::sign::{Observed, Sign};

/// Whether links start a unit whose file has this state.
fn is_enabled(state: &str) -> bool {
    matches!(state, "enabled" | "enabled-runtime")
}

/// What the files of a node say, for signatures to be matched with.
#[derive(Debug, Default)]
pub struct Node<'a> {
    /// The unit that a boot starts with.
    pub(super) start: &'a str,
    /// Units that are on.
    pub(super) units: BTreeMap<&'a str, &'a UnitFile>,
    /// States of units that are off.
    off: HashMap<&'a str, &'a str>,
    /// Other names of units.
    aliases: HashMap<&'a str, &'a str>,
    packages: Vec<&'a str>,
    mounts: Vec<&'a BootMount>,
    answers: HashMap<&'a str, bool>,
    folders: HashMap<&'a Path, Vec<&'a str>>,
    /// The shape of the deployment, and those it builds on.
    pub(super) family: Vec<String>,
}

/// A unit of a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    state: &'a str,
}

impl Known<'_> {
    pub(super) fn is_enabled(self) -> bool {
        is_enabled(self.state)
    }

    pub(super) fn is_masked(self) -> bool {
        matches!(self.state, "masked" | "masked-runtime")
    }
}

impl<'a> Node<'a> {
    /// Of the units that are on, by name, and of all parts of the rest.
    pub fn new(
        start: &'a str,
        units: BTreeMap<&'a str, &'a UnitFile>,
        context: impl IntoIterator<Item = &'a UnitContext>,
    ) -> Self {
        let mut node = Self {
            start,
            units,
            ..Self::default()
        };
        for part in context {
            for unit in &part.units {
                node.off.insert(&unit.name, &unit.state);
                if let Some(own) = &unit.alias_of {
                    node.aliases.insert(&unit.name, own);
                }
            }
            node.packages
                .extend(part.packages.iter().map(String::as_str));
            node.mounts.extend(&part.mounts);
            let answers = part.answers.iter();
            node.answers
                .extend(answers.map(|answer| (answer.asked.as_str(), answer.holds)));
            for folder in &part.folders {
                let names = node.folders.entry(Path::new(&folder.path)).or_default();
                names.extend(folder.names.iter().map(String::as_str));
            }
        }
        node
    }

    /// A unit by any of its names; an instance by its template if nothing else is known.
    pub(super) fn find(&self, name: &str) -> Option<Known<'a>> {
        let state = |name: &str| {
            let on = self.units.get(name);
            let on = on.map(|file| file.state.as_deref().unwrap_or_default());
            on.or_else(|| self.off.get(name).copied())
        };
        let own = |name: &str| {
            let found = state(name)?;
            let target = self.aliases.get(name).and_then(|target| state(target));
            Some(target.unwrap_or(found))
        };
        let state = own(name).or_else(|| own(&unit_name::template(name)?))?;
        Some(Known { state })
    }

    /// Units of a pattern that a boot starts. A link in a folder of the vendor starts one, too,
    /// though `systemctl` calls it disabled.
    fn starts(&self, pattern: &str) -> impl Iterator<Item = &'a UnitFile> {
        let units = self.units.iter();
        let fitting = units.filter(move |(name, _)| glob::matches(pattern, name));
        fitting.map(|(_, file)| *file).filter(|file| {
            let by = file.reached_by.last();
            let is_by_target = by.is_some_and(|by| unit_name::sort(by) == "target");
            is_by_target || file.state.as_deref().is_some_and(is_enabled)
        })
    }

    /// What folders say that were listed: the nearest one above the path. `None` if what it
    /// holds was not listed.
    fn is_listed(&self, path: &str) -> Option<bool> {
        let path = Path::new(path);
        for folder in path.ancestors().skip(1) {
            let Some(names) = self.folders.get(folder) else {
                continue;
            };
            let below = path.strip_prefix(folder).ok()?;
            let first = below.components().next()?.as_os_str().to_string_lossy();
            let is_there = names.iter().any(|name| glob::matches(&first, name));
            let is_last = below.components().nth(1).is_none();
            return (is_last || !is_there).then_some(is_there);
        }
        None
    }
}

impl Observed for Node<'_> {
    fn is_enabled(&self, pattern: &str) -> bool {
        self.starts(pattern).next().is_some()
    }

    fn is_working(&self, pattern: &str) -> bool {
        self.starts(pattern)
            .any(|file| file.fails.is_none() && file.skipped.is_none())
    }

    fn has_package(&self, pattern: &str) -> bool {
        let mut packages = self.packages.iter();
        packages.any(|package| glob::matches(pattern, package))
    }

    fn mounts(&self, fits: &dyn Fn(&str, &str) -> bool) -> bool {
        let mut mounts = self.mounts.iter();
        mounts.any(|mount| fits(&mount.kind, &mount.options))
    }

    fn answer(&self, question: &Sign) -> Option<bool> {
        let asked = question.question()?;
        let answer = self.answers.get(asked.as_str()).copied();
        answer.or_else(|| match question {
            Sign::Path(path) => self.is_listed(path),
            // Where there is no file, nothing is in it.
            Sign::Text { path, .. } | Sign::Setting { path, .. } => {
                self.is_listed(path).filter(|is_there| !is_there)
            }
            _ => None,
        })
    }

    fn is_shape(&self, name: &str) -> bool {
        self.family.iter().any(|known| known == name)
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::unit::{Answer, Folder};

    use super::*;

    fn folder(path: &str, names: &[&str]) -> Folder {
        Folder {
            path: path.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    /// What was not looked at is not "no".
    #[test]
    fn an_answer_comes_from_what_was_asked_or_listed() {
        let context = UnitContext {
            answers: vec![Answer {
                asked: "path /srv/x".to_owned(),
                holds: true,
            }],
            folders: vec![
                folder("/etc", &["a.conf", "frob"]),
                folder("/etc/frob", &["b"]),
            ],
            ..UnitContext::default()
        };
        let node = Node::new("", BTreeMap::new(), [&context]);
        let check = |path: &str, expected: Option<bool>| {
            let sign = Sign::Path(path.to_owned());
            assert_eq!(sign.holds(&node), expected, "{path}");
            let not = Sign::Not(Box::new(sign));
            assert_eq!(not.holds(&node), expected.map(|is| !is), "not {path}");
        };
        check("/srv/x", Some(true));
        check("/srv/y", None);
        check("/etc/a.conf", Some(true));
        check("/etc/*.conf", Some(true));
        check("/etc/c.conf", Some(false));
        check("/etc/frob/b", Some(true));
        check("/etc/frob/c", Some(false));
        check("/etc/none/c/d", Some(false));
        check("/etc/frob/b/c", None);
        let text = |path: &str| Sign::Text {
            path: path.to_owned(),
            has: "x".to_owned(),
        };
        assert_eq!(text("/etc/none").holds(&node), Some(false));
        assert_eq!(text("/etc/a.conf").holds(&node), None);
        let any = |paths: &[&str]| {
            let signs = paths.iter().map(|path| Sign::Path((*path).to_owned()));
            Sign::Any(signs.collect()).holds(&node)
        };
        assert_eq!(any(&["/srv/y", "/srv/x"]), Some(true));
        assert_eq!(any(&["/srv/y", "/etc/c.conf"]), None);
        assert_eq!(any(&["/etc/none", "/etc/c.conf"]), Some(false));
    }
}
