//! Signs: things that are so or not so on an image.

use serde::Deserialize;

use sexton_model::glob;

/// What signs are looked for on.
pub trait Observed {
    /// Whether a unit that fits the pattern is enabled.
    fn is_enabled(&self, pattern: &str) -> bool;
    /// Whether a package that fits the pattern is installed.
    fn has_package(&self, pattern: &str) -> bool;
    /// Whether there is a file at a path; the last part may be a pattern.
    fn has_path(&self, path: &str) -> bool;
    /// Whether a line of a file holds a text, which may be a pattern; comments do not count.
    fn has_text(&self, path: &str, text: &str) -> bool;
    /// Whether this is the shape, or one that the shape builds on.
    fn is_shape(&self, name: &str) -> bool;
}

/// Whether a line holds a text, which may be a pattern: `relayhost = ?*`.
pub(crate) fn line_has(line: &str, text: &str) -> bool {
    match text.contains(['*', '?']) {
        true => glob::matches(&format!("*{text}*"), line),
        false => line.contains(text),
    }
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
            Self::Shape(name) => format!("this is a {name}"),
            Self::Not(sign) => match sign.as_ref() {
                Self::Enabled(unit) => format!("{unit} is not enabled"),
                Self::Package(package) => format!("no package {package} is installed"),
                Self::Path(path) => format!("{path} is not there"),
                Self::Text { path, has } => format!("{path} does not hold {has}"),
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
