//! A scene: an image in a few words, on which a file of signatures proves itself.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::sign::{Files, Observed, Sign};
use super::{Signatures, grammar};
use sexton_model::glob;

/// What is so on it; nothing else is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scene {
    /// Units that are enabled.
    pub enabled: Vec<String>,
    /// Packages that are installed.
    pub packages: Vec<String>,
    /// Files that are there.
    pub paths: Vec<String>,
    /// Files and what they hold.
    pub texts: BTreeMap<String, String>,
    /// Units and what they give their programs, `KEY=value`.
    pub environment: BTreeMap<String, Vec<String>>,
    /// Programs that services run.
    pub runs: Vec<String>,
    /// Sorts of filesystems that units mount.
    pub mounts: Vec<String>,
    /// The shape of the deployment; none is an unknown one.
    pub shape: Option<String>,
    #[serde(skip)]
    family: Vec<String>,
}

impl Scene {
    /// The same, with the shapes that its shape builds on.
    #[must_use]
    pub fn with_family(&self, signatures: &Signatures) -> Self {
        let mut scene = self.clone();
        scene.family = self
            .shape
            .as_deref()
            .map_or_else(Vec::new, |shape| signatures.family(shape));
        scene
    }
}

impl Observed for Scene {
    fn is_enabled(&self, pattern: &str) -> bool {
        self.enabled.iter().any(|unit| glob::matches(pattern, unit))
    }

    fn is_working(&self, pattern: &str) -> bool {
        self.is_enabled(pattern)
    }

    fn has_package(&self, pattern: &str) -> bool {
        self.packages
            .iter()
            .any(|package| glob::matches(pattern, package))
    }

    fn mounts(&self, fits: &dyn Fn(&str, &str) -> bool) -> bool {
        let table = self.texts.get("/etc/fstab").map_or("", String::as_str);
        let mut by_table = grammar::fstab(table).into_iter();
        by_table.any(|mount| fits(&mount.sort, &mount.options.join(",")))
            || self.mounts.iter().any(|sort| fits(sort, ""))
    }

    fn answer(&self, question: &Sign) -> Option<bool> {
        question.ask(self)
    }

    fn is_shape(&self, name: &str) -> bool {
        self.family.iter().any(|known| known == name)
    }
}

impl Files for Scene {
    fn has_path(&self, path: &str) -> Option<bool> {
        let mut known = self.paths.iter().chain(self.texts.keys());
        Some(known.any(|known| glob::matches(path, known)))
    }

    fn texts(&self, path: &str) -> Option<Vec<String>> {
        let texts = self.texts.iter();
        let texts = texts.filter(|(known, _)| glob::matches(path, known));
        Some(texts.map(|(_, text)| text.clone()).collect())
    }

    fn environment(&self, unit: &str) -> Option<Vec<String>> {
        Some(self.environment.get(unit).cloned().unwrap_or_default())
    }

    fn runs(&self, program: &str) -> Option<bool> {
        Some(self.runs.iter().any(|known| known == program))
    }
}
