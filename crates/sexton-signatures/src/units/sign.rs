//! Signs: things that are so or not so on an image.

use serde::Deserialize;

use sexton_model::glob;

use super::grammar::{self, Grammar};

/// What signs are looked for on.
pub trait Observed {
    /// Whether a unit that fits the pattern is enabled.
    fn is_enabled(&self, pattern: &str) -> bool;
    /// Whether a package that fits the pattern is installed.
    fn has_package(&self, pattern: &str) -> bool;
    /// Whether there is a file at a path; the last part may be a pattern.
    fn has_path(&self, path: &str) -> bool;
    /// Whether a line of a file holds a text, which may be a pattern; comments do not count.
    fn has_text(&self, path: &str, text: &str) -> bool {
        let content = self.text(path).unwrap_or_default();
        let lines = content.lines().map(str::trim_start);
        lines
            .filter(|line| !line.starts_with('#'))
            .any(|line| line_has(line, text))
    }
    /// The text of a file; `None` if it is not there.
    fn text(&self, path: &str) -> Option<String>;
    /// The words of a setting of a unit, drop-ins included.
    fn unit_words(&self, unit: &str, section: &str, key: &str) -> Vec<String>;
    /// Mounts by units that a boot starts: their sort and options.
    fn unit_mounts(&self) -> Vec<(String, String)>;
    /// Whether this is the shape, or one that the shape builds on.
    fn is_shape(&self, name: &str) -> bool;
}

/// Whether a line holds a text, which may be a pattern: `relayhost = ?*`.
pub fn line_has(line: &str, text: &str) -> bool {
    match text.contains(['*', '?']) {
        true => glob::matches(&format!("*{text}*"), line),
        false => line.contains(text),
    }
}

/// The pattern of anything.
const ANY: &str = "*";

fn any() -> String {
    ANY.to_owned()
}

fn is_mounted(observed: &dyn Observed, sort: &str, option: &str) -> bool {
    let fits = |found: &str, options: &[&str]| {
        let has_option = options.iter().any(|one| glob::matches(option, one));
        glob::matches(sort, found) && has_option
    };
    let table = observed.text("/etc/fstab").unwrap_or_default();
    let by_table = grammar::fstab(&table).iter().any(|mount| {
        let options: Vec<&str> = mount.options.iter().map(String::as_str).collect();
        fits(&mount.sort, &options)
    });
    by_table
        || observed.unit_mounts().iter().any(|(found, options)| {
            let options: Vec<&str> = options.split(',').collect();
            fits(found, &options)
        })
}

/// One sign.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sign {
    /// A unit is enabled.
    Enabled(String),
    /// A package is installed.
    Package(String),
    /// A file is there.
    Path(String),
    /// A file holds a text.
    Text {
        /// The file.
        path: String,
        /// The text.
        has: String,
    },
    /// A setting has a value.
    Setting {
        /// The file.
        path: String,
        /// How it is written.
        grammar: Grammar,
        /// The setting.
        key: String,
        /// A pattern of its value.
        is: String,
    },
    /// Something of a sort is mounted at boot, or with an option: by `/etc/fstab` or by a unit.
    Mount {
        /// A pattern of the sort of filesystem.
        #[serde(rename = "type", default = "any")]
        sort: String,
        /// A pattern of an option.
        #[serde(default = "any")]
        option: String,
    },
    /// A unit gives its programs a variable.
    Environment {
        /// The unit.
        unit: String,
        /// A pattern of `KEY=value`.
        has: String,
    },
    /// The deployment is of this shape.
    Shape(String),
    /// It is not so.
    Not(Box<Sign>),
    /// One of these is so.
    Any(Vec<Sign>),
}

impl Sign {
    /// Whether it is so.
    pub fn holds(&self, observed: &dyn Observed) -> bool {
        match self {
            Self::Enabled(pattern) => observed.is_enabled(pattern),
            Self::Package(pattern) => observed.has_package(pattern),
            Self::Path(path) => observed.has_path(path),
            Self::Text { path, has } => observed.has_text(path, has),
            Self::Setting {
                path,
                grammar,
                key,
                is,
            } => {
                let text = observed.text(path).unwrap_or_default();
                let value = grammar.value(&text, key);
                value.is_some_and(|value| glob::matches(is, &value.to_ascii_lowercase()))
            }
            Self::Mount { sort, option } => is_mounted(observed, sort, option),
            Self::Environment { unit, has } => observed
                .unit_words(unit, "Service", "Environment")
                .iter()
                .any(|word| glob::matches(has, word)),
            Self::Shape(name) => observed.is_shape(name),
            Self::Not(sign) => !sign.holds(observed),
            Self::Any(signs) => signs.iter().any(|sign| sign.holds(observed)),
        }
    }

    /// What it says here: of several that would do, the first that holds.
    pub fn told(&self, observed: &dyn Observed) -> String {
        match self {
            Self::Any(signs) => {
                let holding = signs.iter().find(|sign| sign.holds(observed));
                holding.map_or_else(|| self.text(), |sign| sign.told(observed))
            }
            other => other.text(),
        }
    }

    /// What it says, given that it holds.
    pub fn text(&self) -> String {
        match self {
            Self::Enabled(unit) => format!("{unit} is enabled"),
            Self::Package(package) => format!("the package {package} is installed"),
            Self::Path(path) => format!("{path} is there"),
            Self::Text { path, has } => format!("{path} holds {has}"),
            Self::Setting { path, key, is, .. } => format!("{path} sets {key} to {is}"),
            Self::Mount { sort, option } if option == ANY => format!("{sort} is mounted"),
            Self::Mount { option, .. } => format!("a mount has the option {option}"),
            Self::Environment { unit, has } => format!("{unit} has {has} in its environment"),
            Self::Shape(name) => format!("this is a {name}"),
            Self::Not(sign) => match sign.as_ref() {
                Self::Enabled(unit) => format!("{unit} is not enabled"),
                Self::Package(package) => format!("no package {package} is installed"),
                Self::Path(path) => format!("{path} is not there"),
                Self::Text { path, has } => format!("{path} does not hold {has}"),
                Self::Setting { path, key, is, .. } => {
                    format!("{path} does not set {key} to {is}")
                }
                Self::Shape(name) => format!("this is no {name}"),
                Self::Any(_) => format!("none of: {}", sign.text()),
                other => format!("not so: {}", other.text()),
            },
            Self::Any(signs) => {
                let texts: Vec<String> = signs.iter().map(Sign::text).collect();
                texts.join(" or ")
            }
        }
    }
}
