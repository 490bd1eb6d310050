//! A part of a night: a trouble with its truth, or an innocent that must not be accused. One file
//! each in `lab/troubles`, with places such as `@unit@` for what is drawn.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::files;

/// What is done, and the truth about it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trouble {
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// One line for lists.
    pub title: String,
    /// What it takes for itself: no other part of the same night takes it too.
    #[serde(default)]
    pub takes: Vec<String>,
    /// What it needs some of: an innocent that takes it would be at fault beside this one.
    #[serde(default)]
    pub needs: Vec<String>,
    /// How long sexton must watch for it, at least.
    #[serde(default = "watch_seconds")]
    pub watch_seconds: u32,
    /// Parameters, each with its least and its greatest value.
    #[serde(default)]
    pub draw: BTreeMap<String, [u64; 2]>,
    /// Units that come with the image.
    #[serde(default)]
    pub units: BTreeMap<String, String>,
    /// Shell that prepares it, before any part begins.
    #[serde(default)]
    pub setup: String,
    /// Shell that begins it, at the moment that was drawn.
    pub begin: String,
    /// Shell that must hold after the watch: it did happen.
    #[serde(default = "always")]
    pub happened: String,
    /// Shell that ends it.
    pub end: String,
    /// Ids of findings that must be made, `*` for any text, or `ID ~ TITLE`; none for an innocent.
    #[serde(default)]
    pub found: Vec<String>,
    /// The same, but no more than a note is asked for.
    #[serde(default)]
    pub noted: Vec<String>,
    /// Ids of findings that may be made beside them.
    #[serde(default)]
    pub beside: Vec<String>,
}

fn watch_seconds() -> u32 {
    14
}

fn always() -> String {
    "true".into()
}

impl Trouble {
    /// Whether nothing is to be found.
    pub fn is_innocent(&self) -> bool {
        self.found.is_empty() && self.noted.is_empty()
    }

    /// Reads one file.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut trouble: Self = toml::from_str(&text)
            .with_context(|| format!("{} is no part of a night", path.display()))?;
        trouble.name = files::stem(path);
        for (name, [least, most]) in &trouble.draw {
            ensure!(least <= most, "{}: {name} has no value", path.display());
        }
        Ok(trouble)
    }

    /// All in a folder, by name.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        let paths = files::toml(folder)?;
        paths.iter().map(|path| Self::read(path)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_in_a_file_is_drawn() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/troubles");
        for trouble in Trouble::all(&folder).expect("troubles") {
            let units = trouble.units.iter().flat_map(|(name, text)| [name, text]);
            let shell = [
                &trouble.setup,
                &trouble.begin,
                &trouble.happened,
                &trouble.end,
            ];
            let ids = [&trouble.found, &trouble.noted, &trouble.beside];
            for text in units.chain(shell).chain(ids.into_iter().flatten()) {
                for place in text.split('@').skip(1).step_by(2) {
                    // Two of them are one of a template's name.
                    let is_known =
                        ["unit", ""].contains(&place) || trouble.draw.contains_key(place);
                    assert!(is_known, "{}: @{place}@ in {text:?}", trouble.name);
                }
            }
        }
    }
}
