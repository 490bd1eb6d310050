//! The wordings that are known: data, in `signatures/klog/`.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use sexton_model::fact::klog::CLASSES;

use super::prefix::Prefix;
use crate::wording::{Captures, Wording};

/// Every file of wordings, with its name.
const FILES: [(&str, &str); 13] = [
    (
        "bnxt",
        include_str!("../../../../signatures/klog/bnxt.toml"),
    ),
    (
        "core",
        include_str!("../../../../signatures/klog/core.toml"),
    ),
    ("ena", include_str!("../../../../signatures/klog/ena.toml")),
    (
        "filesystems",
        include_str!("../../../../signatures/klog/filesystems.toml"),
    ),
    ("gve", include_str!("../../../../signatures/klog/gve.toml")),
    (
        "hardware",
        include_str!("../../../../signatures/klog/hardware.toml"),
    ),
    (
        "intel",
        include_str!("../../../../signatures/klog/intel.toml"),
    ),
    (
        "link",
        include_str!("../../../../signatures/klog/link.toml"),
    ),
    (
        "mana",
        include_str!("../../../../signatures/klog/mana.toml"),
    ),
    (
        "mlx5",
        include_str!("../../../../signatures/klog/mlx5.toml"),
    ),
    (
        "netvsc",
        include_str!("../../../../signatures/klog/netvsc.toml"),
    ),
    (
        "virtio",
        include_str!("../../../../signatures/klog/virtio.toml"),
    ),
    (
        "watchdog",
        include_str!("../../../../signatures/klog/watchdog.toml"),
    ),
];

/// The driver of wordings that any driver may use.
const ANY: &str = "any";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What the lines begin with: the name of a driver, or `any`.
    driver: String,
    pattern: Vec<Pattern>,
}

/// One thing that the kernel says, in all its wordings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pattern {
    pub(super) id: String,
    pub(super) class: String,
    #[serde(default)]
    at: Place,
    wordings: Vec<String>,
    /// Where the wordings come from, in words.
    source: String,
    /// What is known of single captures.
    #[serde(default)]
    fields: BTreeMap<String, Field>,
    hits: Vec<Hit>,
    misses: Vec<String>,
    #[serde(skip)]
    driver: String,
    #[serde(skip)]
    parsed: Vec<Wording>,
}

/// What a wording has to fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// What follows `driver bus interface: ` of a device.
    #[default]
    Device,
    /// The whole line.
    Line,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    /// Whether what stands there is what its name says.
    trust: bool,
}

/// A line that must be found, and what must be found in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "proofs are for tests"))]
struct Hit {
    line: String,
    captures: BTreeMap<String, String>,
}

/// A line that is known.
pub(super) struct Known<'s, 't> {
    pub(super) pattern: &'s Pattern,
    pub(super) prefix: Option<Prefix<'t>>,
    pub(super) captures: Captures<'s, 't>,
}

impl Pattern {
    /// Whether what stands where `name` is captured can be believed.
    pub(super) fn trusts(&self, name: &str) -> bool {
        self.fields.get(name).is_none_or(|field| field.trust)
    }

    /// Whether it is about the device that the line begins with.
    pub(super) fn is_of_device(&self) -> bool {
        self.at == Place::Device
    }

    /// Reads its wordings and says what is wrong with it.
    fn prepare(&mut self, driver: &str) -> Result<(), String> {
        self.driver = driver.to_owned();
        if !CLASSES.iter().any(|(class, _)| *class == self.class) {
            return Err(format!("{:?} is no class", self.class));
        }
        if self.source.is_empty() || self.hits.is_empty() || self.misses.is_empty() {
            return Err("it lacks its source or one of its proofs".into());
        }
        for wording in &self.wordings {
            self.parsed.push(Wording::parse(wording)?);
        }
        let names = || self.parsed.iter().flat_map(Wording::names);
        match self
            .fields
            .keys()
            .find(|field| !names().any(|name| name == *field))
        {
            Some(field) => Err(format!("no wording captures {field:?}")),
            None => Ok(()),
        }
    }

    fn fit<'s, 't>(&'s self, text: &'t [u8]) -> Option<Captures<'s, 't>> {
        self.parsed.iter().find_map(|wording| wording.fit(text))
    }
}

/// All wordings that are known.
#[derive(Debug)]
pub(super) struct Signatures {
    patterns: Vec<Pattern>,
    /// Patterns for lines of a device, by its driver.
    by_driver: HashMap<String, Vec<usize>>,
    of_any_driver: Vec<usize>,
    of_lines: Vec<usize>,
}

impl Signatures {
    /// Reads those that sexton knows.
    pub(super) fn load() -> Result<Self, String> {
        Self::read(&FILES)
    }

    fn read(files: &[(&str, &str)]) -> Result<Self, String> {
        let mut all = Self {
            patterns: Vec::new(),
            by_driver: HashMap::new(),
            of_any_driver: Vec::new(),
            of_lines: Vec::new(),
        };
        for (name, text) in files {
            let file: File = toml::from_str(text).map_err(|error| format!("{name}: {error}"))?;
            for mut pattern in file.pattern {
                pattern
                    .prepare(&file.driver)
                    .map_err(|what| format!("{name}: {}: {what}", pattern.id))?;
                all.add(pattern)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, pattern: Pattern) -> Result<(), String> {
        if self.patterns.iter().any(|known| known.id == pattern.id) {
            return Err(format!("two patterns are called {}", pattern.id));
        }
        let at = self.patterns.len();
        match (pattern.at, pattern.driver.as_str()) {
            (Place::Line, _) => self.of_lines.push(at),
            (Place::Device, ANY) => self.of_any_driver.push(at),
            (Place::Device, driver) => self
                .by_driver
                .entry(driver.to_owned())
                .or_default()
                .push(at),
        }
        self.patterns.push(pattern);
        Ok(())
    }

    /// How many patterns there are, and how many wordings.
    pub(super) fn size(&self) -> (usize, usize) {
        let wordings = self
            .patterns
            .iter()
            .map(|pattern| pattern.parsed.len())
            .sum();
        (self.patterns.len(), wordings)
    }

    /// What is known of a line: the first pattern that fits, those of its driver first.
    pub(super) fn find<'s, 't>(&'s self, text: &'t [u8]) -> Option<Known<'s, 't>> {
        self.all_that_fit(text).next()
    }

    fn all_that_fit<'s, 't>(&'s self, text: &'t [u8]) -> impl Iterator<Item = Known<'s, 't>> {
        let prefix = Prefix::of(text);
        let of_driver = prefix
            .and_then(|prefix| self.by_driver.get(str::from_utf8(prefix.driver).ok()?))
            .map_or(&[][..], Vec::as_slice);
        let of_any = prefix.map_or(&[][..], |_| self.of_any_driver.as_slice());
        let of_device = of_driver.iter().chain(of_any).filter_map(move |&at| {
            let captures = self.patterns[at].fit(prefix?.rest)?;
            Some((at, prefix, captures))
        });
        let of_lines = self
            .of_lines
            .iter()
            .filter_map(move |&at| Some((at, None, self.patterns[at].fit(text)?)));
        of_device
            .chain(of_lines)
            .map(|(at, prefix, captures)| Known {
                pattern: &self.patterns[at],
                prefix,
                captures,
            })
    }
}

impl Known<'_, '_> {
    /// The driver that speaks, where one does.
    pub(super) fn driver(&self) -> Option<&[u8]> {
        match (&self.prefix, self.pattern.driver.as_str()) {
            (Some(prefix), _) => Some(prefix.driver),
            (None, ANY) => None,
            (None, driver) => Some(driver.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is found in a line, the prefix included.
    fn found(known: &Known<'_, '_>) -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut found: BTreeMap<String, String> = known
            .captures
            .iter()
            .map(|(name, value)| ((*name).to_owned(), text(value)))
            .collect();
        if let Some(prefix) = known.prefix {
            found.insert("bus".into(), text(prefix.bus));
            if let Some(device) = prefix.device {
                found.insert("device".into(), text(device));
            }
        }
        found
    }

    #[test]
    fn every_proof_of_every_pattern_holds() {
        let signatures = Signatures::load().expect("they load");
        for pattern in &signatures.patterns {
            for hit in &pattern.hits {
                let known = signatures.find(hit.line.as_bytes());
                let known =
                    known.unwrap_or_else(|| panic!("{}: {:?} is not found", pattern.id, hit.line));
                assert_eq!(known.pattern.id, pattern.id, "{:?}", hit.line);
                assert_eq!(
                    found(&known),
                    hit.captures,
                    "{}: {:?}",
                    pattern.id,
                    hit.line
                );
            }
            for miss in &pattern.misses {
                let fits = signatures.all_that_fit(miss.as_bytes());
                let ids: Vec<&str> = fits.map(|known| known.pattern.id.as_str()).collect();
                assert!(
                    !ids.contains(&pattern.id.as_str()),
                    "{}: {miss:?} is found",
                    pattern.id
                );
            }
        }
    }

    #[test]
    fn no_example_is_of_two_classes() {
        let signatures = Signatures::load().expect("they load");
        for pattern in &signatures.patterns {
            for hit in &pattern.hits {
                for known in signatures.all_that_fit(hit.line.as_bytes()) {
                    assert_eq!(
                        known.pattern.class, pattern.class,
                        "{:?} also fits {}",
                        hit.line, known.pattern.id
                    );
                }
            }
        }
    }

    #[test]
    fn every_wording_has_an_example_and_every_class_a_pattern() {
        let signatures = Signatures::load().expect("they load");
        for pattern in &signatures.patterns {
            for (wording, text) in pattern.parsed.iter().zip(&pattern.wordings) {
                let shown = pattern.hits.iter().any(|hit| {
                    let line = hit.line.as_bytes();
                    let rest = match pattern.at {
                        Place::Line => Some(line),
                        Place::Device => Prefix::of(line).map(|prefix| prefix.rest),
                    };
                    rest.is_some_and(|rest| wording.fit(rest).is_some())
                });
                assert!(shown, "{}: {text:?} has no example", pattern.id);
            }
        }
        for (class, _) in CLASSES {
            let used = signatures
                .patterns
                .iter()
                .any(|pattern| pattern.class == *class);
            assert!(used, "nothing is of the class {class}");
        }
    }

    #[test]
    fn every_file_is_in_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../signatures/klog");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| {
                entry
                    .expect("listed")
                    .file_name()
                    .to_string_lossy()
                    .replace(".toml", "")
            })
            .collect();
        names.sort();
        assert_eq!(names, FILES.map(|(name, _)| name));
    }

    fn check_refused(text: &str, complaint: &str) {
        let error = Signatures::read(&[("x", text)]).expect_err("it is wrong");
        assert!(error.contains(complaint), "{error}");
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let pattern = |more: &str| {
            format!(
                "driver = \"x\"\n[[pattern]]\nid = \"a\"\nclass = \"nic_reset\"\nwordings = [\"w\"]\nsource = \"s\"\nhits = [{{ line = \"x 1: w\", captures = {{}} }}]\nmisses = [\"v\"]\n{more}\n"
            )
        };
        assert!(Signatures::read(&[("x", &pattern(""))]).is_ok());
        check_refused(&pattern("colour = 1"), "unknown field `colour`");
        check_refused(
            &pattern("fields = { q = { trust = false } }"),
            "no wording captures",
        );
        check_refused(&pattern("").replace("nic_reset", "nic_rest"), "is no class");
        check_refused(&pattern("").replace("[\"v\"]", "[]"), "one of its proofs");
        check_refused(&pattern("").replace("[\"w\"]", "[\"{w\"]"), "not closed");
    }

    proptest! {
        #[test]
        fn any_line_is_taken(text in prop::collection::vec(any::<u8>(), 0..120)) {
            thread_local!(static ALL: Signatures = Signatures::load().expect("they load"));
            ALL.with(|all| { all.find(&text); });
        }
    }
}
