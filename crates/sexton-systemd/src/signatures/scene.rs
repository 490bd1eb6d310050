//! A scene: an image in a few words, on which a file of signatures proves itself.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Signatures;
use super::sign::{Observed, line_has};
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

    fn has_package(&self, pattern: &str) -> bool {
        self.packages
            .iter()
            .any(|package| glob::matches(pattern, package))
    }

    fn has_path(&self, path: &str) -> bool {
        let mut known = self.paths.iter().chain(self.texts.keys());
        known.any(|known| glob::matches(path, known))
    }

    fn has_text(&self, path: &str, text: &str) -> bool {
        self.texts
            .get(path)
            .is_some_and(|content| content.lines().any(|line| line_has(line, text)))
    }

    fn is_shape(&self, name: &str) -> bool {
        self.family.iter().any(|known| known == name)
    }
}
