//! What is known of units and deployments: data, one file each in `signatures/units` and
//! `signatures/shapes`. Users add files of their own.

pub mod assessed;
pub mod grammar;
pub mod need;
pub mod node;
mod scene;
mod shape;
mod sign;
mod signature;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use scene::Scene;
pub use shape::{Role, Shape};
pub use sign::{Files, Observed, Sign, line_has};
pub use signature::{Action, Match, Risk, Signature};

use crate::{SHAPES, SignatureError, UNITS};

/// The file of one that sexton brings.
fn file(slug: &str) -> PathBuf {
    PathBuf::from(format!("{slug}.toml"))
}

/// What a file is called, which is the name of what it holds.
fn slug(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// What a machine seems to be for.
#[derive(Debug)]
pub enum Detected<'a> {
    /// This, and why.
    Shape(&'a Shape, String),
    /// Signs disagree, and how.
    Doubt(String),
    /// No shape fits.
    None,
}

/// All that is known.
#[derive(Debug, Clone)]
pub struct Signatures {
    /// Known offenders.
    pub units: Vec<Signature>,
    /// Shapes of deployments.
    pub shapes: Vec<Shape>,
}

impl Signatures {
    /// What sexton brings.
    pub fn built_in() -> Result<Self, SignatureError> {
        let mut signatures = Self {
            units: Vec::new(),
            shapes: Vec::new(),
        };
        for (slug, text) in SHAPES {
            signatures.shapes.push(Shape::parse(&file(slug), text)?);
        }
        for (slug, text) in UNITS {
            signatures.units.push(Signature::parse(&file(slug), text)?);
        }
        Ok(signatures)
    }

    /// Adds a user's file: an offender if it names units, else a shape. One of the same name
    /// takes the place of ours.
    pub fn add_file(&mut self, path: &Path, text: &str) -> Result<(), SignatureError> {
        let is_signature = text.lines().any(|line| {
            let key = line.split('=').next().unwrap_or_default();
            key.trim() == "units"
        });
        if is_signature {
            let signature = Signature::parse(path, text)?;
            self.units.retain(|known| known.slug != signature.slug);
            self.units.push(signature);
        } else {
            let shape = Shape::parse(path, text)?;
            self.shapes.retain(|known| known.name != shape.name);
            self.shapes.push(shape);
        }
        Ok(())
    }

    /// What they ask of files, each once.
    pub fn questions(&self) -> BTreeMap<String, &Sign> {
        let offenders = self
            .units
            .iter()
            .map(|known| [&known.evidence, &known.veto]);
        let shapes = self
            .shapes
            .iter()
            .map(|known| [&known.evidence, &known.doubt]);
        let mut questions = Vec::new();
        for sign in offenders.chain(shapes).flatten().flatten() {
            sign.questions(&mut questions);
        }
        let questions = questions.into_iter();
        questions
            .filter_map(|sign| Some((sign.question()?, sign)))
            .collect()
    }

    /// The shape of that name.
    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.shapes.iter().find(|shape| shape.name == name)
    }

    /// The shape that fits best, and why; or why none can be named though one fits.
    pub fn detect(&self, observed: &dyn Observed) -> Detected<'_> {
        let fitting = self
            .shapes
            .iter()
            .filter_map(|shape| Some((shape, shape.fits(observed)?)));
        let Some((shape, why)) = fitting.max_by_key(|(shape, _)| shape.priority) else {
            return Detected::None;
        };
        let doubt = shape
            .doubt
            .iter()
            .find(|sign| sign.holds(observed) == Some(true));
        match doubt {
            Some(doubt) => Detected::Doubt(format!(
                "it looks like {} ({why}), but {}",
                shape.name,
                doubt.told(observed)
            )),
            None => Detected::Shape(shape, why),
        }
    }

    /// A shape's name and those of the shapes it builds on.
    pub fn family(&self, name: &str) -> Vec<String> {
        let mut names = vec![name.to_owned()];
        let mut next = 0;
        while next < names.len() {
            let more = self
                .shape(&names[next])
                .map_or(&[][..], |shape| &shape.includes);
            let new: Vec<String> = more
                .iter()
                .filter(|name| !names.contains(name))
                .cloned()
                .collect();
            names.extend(new);
            next += 1;
        }
        names
    }

    /// What a unit is to a shape: what it says itself, else what those it builds on say.
    pub fn role(&self, shape: &str, unit: &str) -> Option<(Role, &Shape, String)> {
        let family = self.family(shape);
        let family = family.iter().filter_map(|name| self.shape(name));
        let mut found = family.filter_map(|shape| {
            let (role, why) = shape.role(unit)?;
            Some((role, shape, why))
        });
        found.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signatures() -> Signatures {
        Signatures::built_in().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Every file says where it holds and where it does not, and both are tried.
    #[test]
    fn every_signature_proves_itself() {
        let signatures = signatures();
        assert!(
            signatures.units.len() >= 53,
            "only {}",
            signatures.units.len()
        );
        for signature in &signatures.units {
            let slug = &signature.slug;
            assert!(
                !signature.hits.is_empty() && !signature.misses.is_empty(),
                "{slug} lacks a proof"
            );
            for scene in &signature.hits {
                let scene = scene.with_family(&signatures);
                let found = signature.weigh(&scene);
                assert!(
                    found.as_ref().is_some_and(|found| found.veto.is_none()),
                    "{slug} misses {scene:?}: {found:?}"
                );
            }
            for scene in &signature.misses {
                let scene = scene.with_family(&signatures);
                let found = signature.weigh(&scene);
                assert!(
                    found.is_none_or(|found| found.veto.is_some()),
                    "{slug} hits {scene:?}"
                );
            }
        }
    }

    #[test]
    fn every_shape_proves_itself() {
        let signatures = signatures();
        for shape in signatures.shapes.iter().filter(|shape| shape.priority > 0) {
            for scene in &shape.hits {
                let detected = signatures.detect(scene);
                let detected = match &detected {
                    Detected::Shape(shape, _) => Some(shape.name.clone()),
                    Detected::Doubt(_) | Detected::None => None,
                };
                assert_eq!(detected.as_deref(), Some(shape.name.as_str()), "{scene:?}");
            }
            for scene in &shape.misses {
                let detected = signatures.detect(scene);
                let detected = match &detected {
                    Detected::Shape(shape, _) => Some(shape.name.clone()),
                    Detected::Doubt(_) | Detected::None => None,
                };
                assert_ne!(detected.as_deref(), Some(shape.name.as_str()), "{scene:?}");
            }
            assert!(
                !shape.hits.is_empty() && !shape.misses.is_empty(),
                "{}",
                shape.name
            );
        }
    }

    /// Shapes that a signature names are there, and so are those a shape builds on.
    #[test]
    fn names_lead_somewhere() {
        let signatures = signatures();
        let named = signatures
            .units
            .iter()
            .flat_map(|signature| &signature.shapes);
        let built_on = signatures.shapes.iter().flat_map(|shape| &shape.includes);
        for name in named.chain(built_on) {
            assert!(signatures.shape(name).is_some(), "there is no shape {name}");
        }
    }

    #[test]
    fn a_fatal_one_needs_a_shape() {
        let text =
            "title = 'x'\nunits = ['x.service']\nwhy = 'x'\nrisk = 'fatal'\nsource = ['x']\n";
        let error = Signature::parse(&file("x"), text).expect_err("no shape");
        assert!(error.to_string().contains("shapes"), "{error}");
    }
}
