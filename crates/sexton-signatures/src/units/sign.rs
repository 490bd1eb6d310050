//! Signs: things that are so or not so on an image.

use serde::Deserialize;

use sexton_model::glob;

use super::grammar::Grammar;

/// What signs are matched with: what was seen of a node or an image.
pub trait Observed {
    /// Whether a boot starts a unit that fits the pattern.
    fn is_enabled(&self, pattern: &str) -> bool;
    /// The same of one that nothing keeps from starting.
    fn is_working(&self, pattern: &str) -> bool;
    /// Whether a package that fits the pattern is installed.
    fn has_package(&self, pattern: &str) -> bool;
    /// Whether a boot mounts something whose type and options fit.
    fn mounts(&self, fits: &dyn Fn(&str, &str) -> bool) -> bool;
    /// What files say to one of the [open questions](Sign::question); `None` if it was not looked at.
    fn answer(&self, question: &Sign) -> Option<bool>;
    /// Whether this is the shape, or one that the shape builds on.
    fn is_shape(&self, name: &str) -> bool;
}

/// Files that open questions are put to. `None` is an answer that could not be seen: a file that
/// cannot be read, or that is on a filesystem which is not here.
pub trait Files {
    /// Whether there is a file at a path; the last part may be a pattern.
    fn has_path(&self, path: &str) -> Option<bool>;
    /// The texts of the files at a path, whose last part may be a pattern.
    fn texts(&self, path: &str) -> Option<Vec<String>>;
    /// What a unit gives its programs, `KEY=value`, drop-ins included.
    fn environment(&self, unit: &str) -> Option<Vec<String>>;
    /// Whether a service that a boot starts runs a program of that name, by itself or in a script.
    fn runs(&self, program: &str) -> Option<bool>;
}

/// What is observed, as evidence takes it: a unit that cannot start stands in for no other.
pub(super) struct Working<'a>(pub(super) &'a dyn Observed);

impl Observed for Working<'_> {
    fn is_enabled(&self, pattern: &str) -> bool {
        self.0.is_working(pattern)
    }

    fn is_working(&self, pattern: &str) -> bool {
        self.0.is_working(pattern)
    }

    fn has_package(&self, pattern: &str) -> bool {
        self.0.has_package(pattern)
    }

    fn mounts(&self, fits: &dyn Fn(&str, &str) -> bool) -> bool {
        self.0.mounts(fits)
    }

    fn answer(&self, question: &Sign) -> Option<bool> {
        self.0.answer(question)
    }

    fn is_shape(&self, name: &str) -> bool {
        self.0.is_shape(name)
    }
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

/// One sign.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sign {
    /// A boot starts a unit.
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
    /// A service that a boot starts runs a program of this name.
    Runs(String),
    /// The deployment is of this shape.
    Shape(String),
    /// It is not so.
    Not(Box<Sign>),
    /// One of these is so.
    Any(Vec<Sign>),
}

impl Sign {
    /// Whether it is so; `None` if it was not looked at.
    pub fn holds(&self, observed: &dyn Observed) -> Option<bool> {
        Some(match self {
            Self::Enabled(pattern) => observed.is_enabled(pattern),
            Self::Package(pattern) => observed.has_package(pattern),
            Self::Mount { sort, option } => observed.mounts(&|found, options| {
                let mut options = options.split(',');
                glob::matches(sort, found) && options.any(|one| glob::matches(option, one))
            }),
            Self::Shape(name) => observed.is_shape(name),
            Self::Not(sign) => !sign.holds(observed)?,
            Self::Any(signs) => {
                let holds: Vec<Option<bool>> =
                    signs.iter().map(|sign| sign.holds(observed)).collect();
                let is_so = holds.contains(&Some(true));
                return (is_so || !holds.contains(&None)).then_some(is_so);
            }
            Self::Path(_)
            | Self::Text { .. }
            | Self::Setting { .. }
            | Self::Environment { .. }
            | Self::Runs(_) => return observed.answer(self),
        })
    }

    /// What it asks of files, as recordings hold it. `None` if what recordings hold in any case
    /// tells whether it is so: units, packages and mounts.
    pub fn question(&self) -> Option<String> {
        match self {
            Self::Path(path) => Some(format!("path {path}")),
            Self::Text { path, has } => Some(format!("text {path} has {has}")),
            Self::Setting {
                path,
                grammar,
                key,
                is,
            } => Some(format!("setting {path} {} {key} is {is}", grammar.name())),
            Self::Environment { unit, has } => Some(format!("environment {unit} has {has}")),
            Self::Runs(program) => Some(format!("runs {program}")),
            _ => None,
        }
    }

    /// The open questions in it.
    pub fn questions<'a>(&'a self, into: &mut Vec<&'a Sign>) {
        match self {
            Self::Not(sign) => sign.questions(into),
            Self::Any(signs) => signs.iter().for_each(|sign| sign.questions(into)),
            other if other.question().is_some() => into.push(other),
            _ => {}
        }
    }

    /// The answer of files to an open question; `None` if it cannot be seen.
    pub fn ask(&self, files: &dyn Files) -> Option<bool> {
        Some(match self {
            Self::Path(path) => files.has_path(path)?,
            Self::Text { path, has } => files.texts(path)?.iter().any(|text| {
                let lines = text.lines().map(str::trim_start);
                let mut lines = lines.filter(|line| !line.starts_with('#'));
                lines.any(|line| line_has(line, has))
            }),
            Self::Setting {
                path,
                grammar,
                key,
                is,
            } => files.texts(path)?.iter().any(|text| {
                let value = grammar.value(text, key);
                value.is_some_and(|value| glob::matches(is, &value.to_ascii_lowercase()))
            }),
            Self::Environment { unit, has } => {
                let words = files.environment(unit)?;
                words.iter().any(|word| glob::matches(has, word))
            }
            Self::Runs(program) => files.runs(program)?,
            _ => false,
        })
    }

    /// What it says here: of several that would do, the first that holds.
    pub fn told(&self, observed: &dyn Observed) -> String {
        match self {
            Self::Any(signs) => {
                let holding = signs.iter().find(|sign| sign.holds(observed) == Some(true));
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
            Self::Runs(program) => format!("a service runs {program}"),
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
