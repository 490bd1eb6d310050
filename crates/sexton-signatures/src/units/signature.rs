//! Known offenders: units that are enabled where they have no use.

use std::path::Path;

use serde::Deserialize;

use super::scene::Scene;
use super::sign::{Observed, Sign, Working};
use crate::SignatureError;
use sexton_model::glob;

/// What masking a unit may cost where it is wanted after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    /// Nothing that anyone would miss.
    Low,
    /// A function that someone may want.
    Medium,
    /// Access, patches or telemetry.
    High,
    /// The boot, the storage or the GPUs.
    Fatal,
}

impl Risk {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Fatal => "fatal",
        }
    }
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Disable and mask it, with all that triggers it.
    #[default]
    Mask,
    /// Leave it on and bound its restarts.
    Bound,
    /// Leave it: it costs nothing until someone uses it.
    Leave,
}

impl Action {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mask => "mask",
            Self::Bound => "bound",
            Self::Leave => "leave",
        }
    }
}

/// A known offender.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The name of its file.
    #[serde(skip)]
    pub slug: String,
    /// What people call it.
    pub title: String,
    /// The units, as patterns.
    pub units: Vec<String>,
    /// What it does where it has no use, in one line.
    pub why: String,
    /// What masking it may cost.
    pub risk: Risk,
    /// What to do about it.
    #[serde(default)]
    pub action: Action,
    /// What else starts it, to be masked together with it.
    #[serde(default)]
    pub triggers: Vec<String>,
    /// Where this is known from.
    pub source: Vec<String>,
    /// Shapes in which it has no use; none means in any, known or not.
    #[serde(default)]
    pub shapes: Vec<String>,
    /// What must all be so.
    #[serde(default)]
    pub evidence: Vec<Sign>,
    /// What must not be so: one of these is enough to leave the unit alone.
    #[serde(default)]
    pub veto: Vec<Sign>,
    /// Scenes on which it holds.
    #[serde(default, rename = "hit")]
    pub hits: Vec<Scene>,
    /// Scenes on which it does not.
    #[serde(default, rename = "miss")]
    pub misses: Vec<Scene>,
}

/// What a signature says of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// What speaks for it.
    pub evidence: Vec<String>,
    /// What forbids it.
    pub veto: Option<String>,
    /// What it asks for and was not looked at.
    pub unknown: Option<String>,
}

impl Signature {
    /// Reads a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self, SignatureError> {
        let malformed = |what: String| SignatureError::Malformed {
            path: path.display().to_string(),
            what,
        };
        let mut signature: Self = crate::parse(path, text)?;
        signature.slug = super::slug(path);
        if signature.risk == Risk::Fatal && signature.shapes.is_empty() {
            return Err(malformed(
                "risk = \"fatal\" wants `shapes`: such a unit is never unwanted unless the shape is known".into(),
            ));
        }
        if signature.units.is_empty() || signature.source.is_empty() {
            return Err(malformed("`units` and `source` must not be empty".into()));
        }
        Ok(signature)
    }

    /// Whether it is about that unit.
    pub fn is_about(&self, unit: &str) -> bool {
        self.units
            .iter()
            .any(|pattern| glob::matches(pattern, unit))
    }

    /// What it says of an image: `None` when its evidence is not there.
    pub fn weigh(&self, observed: &dyn Observed) -> Option<Match> {
        let shape = self.shapes.iter().find(|shape| observed.is_shape(shape));
        if shape.is_none() && !self.shapes.is_empty() {
            return None;
        }
        self.weigh_signs(shape, observed)
    }

    /// What it says of an image of which nobody knows what it is for: no more than a
    /// suspicion, and not even that of what is harmless.
    pub fn suspect(&self, observed: &dyn Observed) -> Option<Match> {
        let is_blameless = self.shapes.is_empty() || self.action == Action::Leave;
        let found = self.weigh_signs(None, observed)?;
        (!is_blameless && found.veto.is_none()).then_some(found)
    }

    fn weigh_signs(&self, shape: Option<&String>, observed: &dyn Observed) -> Option<Match> {
        let working = Working(observed);
        let is = |sign: &&Sign, so| sign.holds(observed) == so;
        let is_evidence = |sign: &&Sign, so| sign.holds(&working) == so;
        let mut evidence = self.evidence.iter();
        if evidence.any(|sign| is_evidence(&sign, Some(false))) {
            return None;
        }
        let shape = shape.map(|shape| format!("this is a {shape}"));
        let holding = self.evidence.iter();
        let holding = holding.filter(|sign| is_evidence(sign, Some(true)));
        let evidence = shape
            .into_iter()
            .chain(holding.map(|sign| sign.told(&working)));
        let veto = self.veto.iter().find(|sign| is(sign, Some(true)));
        let mut signs = self.evidence.iter().chain(&self.veto);
        Some(Match {
            evidence: evidence.collect(),
            veto: veto.map(|sign| sign.told(observed)),
            unknown: signs.find(|sign| is(sign, None)).map(Sign::text),
        })
    }
}
