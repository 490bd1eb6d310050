//! Shapes: what a machine is for, and so which units it needs.

use std::path::Path;

use serde::Deserialize;

use super::scene::Scene;
use super::sign::{Observed, Sign};
use crate::SignatureError;
use sexton_model::glob;

/// What a unit is to a shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It must be on.
    Must,
    /// It may be on.
    May,
    /// It should not be on.
    Unwanted,
}

impl Role {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::May => "may",
            Self::Unwanted => "unwanted",
        }
    }
}

/// Units that a shape does not want, and why.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unwanted {
    patterns: Vec<String>,
    why: String,
}

/// A shape of deployments.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// The name of its file.
    #[serde(skip)]
    pub name: String,
    /// What it is, in a few words.
    pub title: String,
    /// Shapes that it builds on.
    #[serde(default)]
    pub includes: Vec<String>,
    /// Of several that fit the highest counts; 0 is never detected.
    #[serde(default)]
    pub priority: u32,
    /// What must all be so for it to fit.
    #[serde(default)]
    pub evidence: Vec<Sign>,
    /// Where it fits and one of these is so, nothing is said: the machine may be for more.
    #[serde(default)]
    pub doubt: Vec<Sign>,
    /// Of each of these groups one must be on.
    #[serde(default, rename = "one-of")]
    pub one_of: Vec<Vec<String>>,
    #[serde(default)]
    must: Vec<String>,
    #[serde(default)]
    may: Vec<String>,
    #[serde(default)]
    unwanted: Vec<Unwanted>,
    /// Scenes that are of this shape.
    #[serde(default, rename = "hit")]
    pub hits: Vec<Scene>,
    /// Scenes that are not.
    #[serde(default, rename = "miss")]
    pub misses: Vec<Scene>,
}

impl Shape {
    /// Reads a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SignatureError> {
        let shape: Self = crate::parse(path, text)?;
        Ok(Self {
            name: super::slug(path),
            ..shape
        })
    }

    /// Why it fits; `None` if it does not.
    pub fn fits(&self, observed: &dyn Observed) -> Option<String> {
        let fits = self.priority > 0 && {
            let mut signs = self.evidence.iter();
            signs.all(|sign| sign.holds(observed) == Some(true))
        };
        let texts: Vec<String> = self
            .evidence
            .iter()
            .map(|sign| sign.told(observed))
            .collect();
        fits.then(|| texts.join(", "))
    }

    /// What a unit is to it, and why.
    pub fn role(&self, unit: &str) -> Option<(Role, String)> {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| glob::matches(pattern, unit));
        if any(&self.must) {
            return Some((Role::Must, format!("a {} needs it", self.title)));
        }
        if let Some(found) = self
            .unwanted
            .iter()
            .find(|unwanted| any(&unwanted.patterns))
        {
            return Some((Role::Unwanted, found.why.clone()));
        }
        any(&self.may).then(|| (Role::May, format!("a {} may have it", self.title)))
    }
}
