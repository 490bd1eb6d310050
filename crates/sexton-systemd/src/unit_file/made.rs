//! Files and folders that commands of units make: `mkdir -p /srv/data` in one unit is why the
//! working directory of another one is there when it starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::unit_file::file;
use crate::unit_file::set::Unit;

/// Programs that make what their arguments name.
const MAKERS: &[&str] = &[
    "mkdir",
    "install",
    "mount",
    "cp",
    "rsync",
    "tar",
    "ln",
    "touch",
    "git",
    "unzip",
    "mktemp",
    "tee",
    "mkfifo",
    "dd",
    "fallocate",
];

/// Paths, and the unit that makes each; none if several do.
#[derive(Debug, Default)]
pub(crate) struct Made(BTreeMap<PathBuf, Option<String>>);

impl Made {
    pub(crate) fn by<'a>(units: impl Iterator<Item = &'a Unit>) -> Self {
        let mut made = Self::default();
        for unit in units {
            for (_, command) in unit.settings.starting_with("Service", "Exec") {
                made.add(&unit.name, command);
            }
        }
        made
    }

    fn add(&mut self, unit: &str, command: &str) {
        let words = file::words(command);
        let parts = |c: char| c.is_whitespace() || "'\"`;&|()>".contains(c);
        let mut words = words.iter().flat_map(|word| word.split(parts));
        let names_maker = |word: &str| {
            let program = word.trim_start_matches(['@', '-', ':', '+', '!']);
            MAKERS.contains(&program.rsplit('/').next().unwrap_or(program))
        };
        if !words.clone().any(names_maker) && !command.contains('>') {
            return;
        }
        for word in words.by_ref().filter(|word| word.starts_with('/')) {
            let makers = self.0.entry(PathBuf::from(word));
            let by = makers.or_insert_with(|| Some(unit.to_owned()));
            if by.as_deref() != Some(unit) {
                *by = None;
            }
        }
    }

    /// Whether a unit that is not this one makes a path or something below it.
    pub(crate) fn is_made_by_other(&self, path: &Path, unit: &str) -> bool {
        let from = self.0.range(path.to_owned()..);
        let mut below = from.take_while(|(made, _)| made.starts_with(path));
        below.any(|(_, by)| by.as_deref() != Some(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_units_make() {
        let mut made = Made::default();
        made.add("a.service", "+/bin/mkdir -p /srv/data/x");
        made.add("a.service", "/usr/bin/serve /srv/served");
        made.add("b.service", "/bin/sh -c 'echo x > /srv/out'");
        let check = |path: &str, unit: &str, expected| {
            let is_made = made.is_made_by_other(Path::new(path), unit);
            assert_eq!(is_made, expected, "{path} {unit}");
        };
        check("/srv/data", "c.service", true);
        check("/srv/data/x", "c.service", true);
        check("/srv/data", "a.service", false);
        check("/srv/dat", "c.service", false);
        check("/srv/served", "c.service", false);
        check("/srv/out", "c.service", true);
    }
}
