//! Presets: what a vendor wants to be enabled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::unit_file::name::{self, Form};
use crate::unit_file::tree::Tree;
use crate::unit_file::version::Version;
use sexton_model::glob;

/// Where presets lie, strongest first. systemd before the merge of `/usr` looks below
/// `/lib` too, and after it that is the same folder.
const FOLDERS: &[&str] = &[
    "/etc/systemd/system-preset",
    "/run/systemd/system-preset",
    "/usr/local/lib/systemd/system-preset",
    "/usr/lib/systemd/system-preset",
    "/lib/systemd/system-preset",
];

/// What a preset says of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// To be enabled; also when no rule names the unit.
    Enabled,
    /// To be disabled.
    Disabled,
    /// To be left as it is.
    Ignored,
}

impl Preset {
    /// As `systemctl list-unit-files` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Ignored => "ignored",
        }
    }
}

/// One line of a preset file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it says.
    pub preset: Preset,
    /// Of which units.
    pub pattern: String,
    /// The file it stands in.
    pub file: PathBuf,
}

/// All rules, in the order in which they are asked.
#[derive(Debug, Clone, Default)]
pub struct Presets(Vec<Rule>);

impl Presets {
    /// Reads all of them. Files are sorted by name, whatever folder they are in; of two
    /// with one name the stronger folder's counts, and one that leads to `/dev/null` is
    /// an empty one.
    pub(crate) fn read(tree: &mut Tree<'_>, version: Version) -> Self {
        let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
        for folder in FOLDERS {
            for entry in tree.list(Path::new(folder)) {
                if entry.name.ends_with(".preset") {
                    let path = Path::new(folder).join(&entry.name);
                    files.entry(entry.name).or_insert(path);
                }
            }
        }
        let mut rules = Vec::new();
        for file in files.into_values() {
            if let Some(text) = tree.text(&file) {
                rules.extend(parse(&text, &file));
            }
        }
        if !version.knows_upholds() {
            rules.retain(|rule| rule.preset != Preset::Ignored);
        }
        Self(rules)
    }

    /// What they say of a unit, and the rule that says it.
    pub fn of(&self, unit: &str) -> (Preset, Option<&Rule>) {
        let rule = self
            .0
            .iter()
            .find(|rule| glob::matches(&rule.pattern, unit));
        (rule.map_or(Preset::Enabled, |rule| rule.preset), rule)
    }
}

/// Behind the name of a template may be the instances to enable; behind any other name systemd
/// takes no more words, and ignores the line.
fn enabled(rest: &str) -> Option<&str> {
    let mut words = rest.split_whitespace();
    let name = words.next()?;
    let is_template = name::form(name) == Some(Form::Template);
    (is_template || words.next().is_none()).then_some(name)
}

/// Reads one file.
pub fn parse(text: &str, file: &Path) -> Vec<Rule> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with(['#', ';']));
    let rule = |line: &str| {
        let (word, rest) = line.split_once(char::is_whitespace)?;
        let rest = rest.trim();
        let (preset, pattern) = match word {
            "enable" => (Preset::Enabled, enabled(rest)?),
            "disable" => (Preset::Disabled, rest),
            "ignore" => (Preset::Ignored, rest),
            _ => return None,
        };
        Some(Rule {
            preset,
            pattern: pattern.to_owned(),
            file: file.to_owned(),
        })
    };
    lines.filter_map(rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_matches_counts() {
        let text = "# x\n enable ssh.service\nenable getty@.service tty1 tty2\nenable odd.service extra\ndisable a b\nignore c*\nnonsense\ndisable *\n";
        let presets = Presets(parse(text, Path::new("/x")));
        let check = |unit: &str, expected| assert_eq!(presets.of(unit).0, expected, "{unit}");
        check("ssh.service", Preset::Enabled);
        check("getty@.service", Preset::Enabled);
        check("getty@tty1.service", Preset::Disabled);
        check("odd.service", Preset::Disabled);
        check("cron.service", Preset::Ignored);
        check("a", Preset::Disabled);
        assert_eq!(Presets::default().of("ssh.service").0, Preset::Enabled);
    }
}
