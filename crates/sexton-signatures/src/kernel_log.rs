//! Lines of the kernel's log whose wording is known: data, in `signatures/klog/`.

mod prefix;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::str::FromStr;

use serde::Deserialize;
use sexton_model::fact::klog::{CLASSES, Capture, KernelLine};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::{escape, unescape};
use sexton_model::wording::{Captures, Wording};

use crate::SignatureError;
use prefix::Prefix;

/// The driver of wordings that any driver may use.
const ANY: &str = "any";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// What the lines begin with: the name of a driver, or `any`.
    driver: String,
    pattern: Vec<Pattern>,
}

/// One thing that the kernel says, in all its wordings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pattern {
    id: String,
    class: String,
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

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    /// Whether what stands there is what its name says.
    trust: bool,
}

/// A line that must be found, and what must be found in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hit {
    line: String,
    captures: BTreeMap<String, String>,
}

/// A line that is known.
struct Known<'s, 't> {
    pattern: &'s Pattern,
    prefix: Option<Prefix<'t>>,
    captures: Captures<'s, 't>,
}

impl Pattern {
    /// Whether what stands where `name` is captured can be believed.
    fn trusts(&self, name: &str) -> bool {
        self.fields.get(name).is_none_or(|field| field.trust)
    }

    /// Whether it is about the device that the line begins with.
    fn is_of_device(&self) -> bool {
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
#[derive(Debug, Clone, Default)]
pub struct KernelLog {
    patterns: Vec<Pattern>,
    /// Patterns for lines of a device, by its driver.
    by_driver: HashMap<String, Vec<usize>>,
    of_any_driver: Vec<usize>,
    of_lines: Vec<usize>,
}

impl KernelLog {
    /// Those that sexton brings.
    pub fn built_in() -> Result<Self, SignatureError> {
        let mut all = Self::default();
        for (name, text) in crate::KERNEL_LOG {
            all.add_file(Path::new(&format!("{name}.toml")), text)?;
        }
        Ok(all)
    }

    /// Adds a file. A pattern of the same name takes the place of the one that is there.
    pub fn add_file(&mut self, path: &Path, text: &str) -> Result<(), SignatureError> {
        let file: File = crate::parse(path, text)?;
        for mut pattern in file.pattern {
            let wrong = |what: String| SignatureError::Malformed {
                path: path.display().to_string(),
                what,
            };
            let prepared = pattern.prepare(&file.driver);
            prepared.map_err(|what| wrong(format!("{}: {what}", pattern.id)))?;
            let id = pattern.id.clone();
            self.add(pattern);
            self.prove(&id).map_err(wrong)?;
        }
        Ok(())
    }

    fn add(&mut self, pattern: Pattern) {
        let known = self.patterns.iter().position(|one| one.id == pattern.id);
        match known {
            Some(at) => self.patterns[at] = pattern,
            None => self.patterns.push(pattern),
        }
        self.index();
    }

    fn index(&mut self) {
        self.by_driver.clear();
        self.of_any_driver.clear();
        self.of_lines.clear();
        for (at, pattern) in self.patterns.iter().enumerate() {
            match (pattern.at, pattern.driver.as_str()) {
                (Place::Line, _) => self.of_lines.push(at),
                (Place::Device, ANY) => self.of_any_driver.push(at),
                (Place::Device, driver) => {
                    let of_driver = self.by_driver.entry(driver.to_owned()).or_default();
                    of_driver.push(at);
                }
            }
        }
    }

    /// Tries the proofs of a pattern.
    fn prove(&self, id: &str) -> Result<(), String> {
        let pattern = self.patterns.iter().find(|pattern| pattern.id == id);
        let Some(pattern) = pattern else {
            return Err(format!("there is no pattern {id}"));
        };
        for hit in &pattern.hits {
            let found = self.fit_of(id, &hit.line);
            if found.as_ref() != Some(&hit.captures) {
                let line = &hit.line;
                return Err(format!("{id}: its hit {line:?} gives {found:?}"));
            }
        }
        match pattern
            .misses
            .iter()
            .find(|line| self.fit_of(id, line).is_some())
        {
            Some(line) => Err(format!("{id}: its miss {line:?} is found")),
            None => Ok(()),
        }
    }

    /// What a pattern finds in a line, if it fits.
    fn fit_of(&self, id: &str, line: &str) -> Option<BTreeMap<String, String>> {
        let mut all = self.all_that_fit(line.as_bytes());
        let known = all.find(|known| known.pattern.id == id)?;
        Some(known.found())
    }

    /// What a line means, and what it is about: as it was recorded in, with what its signature
    /// says out. `None` when its wording is not known.
    pub fn recognize(&self, seen: &KernelLine) -> Option<(Subject, KernelLine)> {
        let text = unescape(seen.line.as_deref()?);
        let known = self.find(&text)?;
        let mut says = KernelLine {
            id: Some(known.pattern.id.clone()),
            class: Some(known.pattern.class.clone()),
            driver: known.driver().map(escape),
            ..seen.clone()
        };
        add_place(&mut says, &known);
        add_captures(&mut says, &known);
        Some((subject(&says), says))
    }

    /// What is known of a line: the first pattern that fits, those of its driver first.
    fn find<'s, 't>(&'s self, text: &'t [u8]) -> Option<Known<'s, 't>> {
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
    /// What is found in a line, the prefix included, as proofs say it.
    fn found(&self) -> BTreeMap<String, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let captures = self.captures.iter();
        let captures = captures.map(|(name, value)| ((*name).to_owned(), text(value)));
        let mut found: BTreeMap<String, String> = captures.collect();
        if let Some(prefix) = self.prefix {
            found.insert("bus".into(), text(prefix.bus));
            if let Some(device) = prefix.device {
                found.insert("device".into(), text(device));
            }
        }
        found
    }

    /// The driver that speaks, where one does.
    fn driver(&self) -> Option<&[u8]> {
        match (&self.prefix, self.pattern.driver.as_str()) {
            (Some(prefix), _) => Some(prefix.driver),
            (None, ANY) => None,
            (None, driver) => Some(driver.as_bytes()),
        }
    }
}

/// The device that the line names, else the interface that its address led to.
fn add_place(says: &mut KernelLine, known: &Known<'_, '_>) {
    if let Some(prefix) = known.prefix {
        says.bus = Some(escape(prefix.bus));
    }
    let named = known.prefix.and_then(|prefix| prefix.device);
    says.device = match named {
        Some(device) => Some(escape(device)),
        None => says.device.take().filter(|_| known.pattern.is_of_device()),
    };
}

/// What the wording captured; what it is known to say wrongly goes into one field of
/// its own, so that it is not taken for the truth.
fn add_captures(says: &mut KernelLine, known: &Known<'_, '_>) {
    let mut doubtful = Vec::new();
    for (name, value) in &known.captures {
        let value = escape(value);
        if !known.pattern.trusts(name) {
            doubtful.push(format!("{name}={value}"));
        } else if !takes(says, name, &value) {
            let name = (*name).to_owned();
            says.captures.push(Capture { name, value });
        }
    }
    says.doubtful = (!doubtful.is_empty()).then(|| doubtful.join(" "));
}

/// Puts a capture into the field of its name, if there is one that it fits. What is known of
/// the line already stands.
fn takes(says: &mut KernelLine, name: &str, value: &str) -> bool {
    fn set<T: FromStr>(place: &mut Option<T>, value: &str) -> bool {
        if place.is_none() {
            *place = value.parse().ok();
            return place.is_some();
        }
        false
    }
    match name {
        "device" => set(&mut says.device, value),
        "comm" => set(&mut says.comm, value),
        "queue" => set(&mut says.queue, value),
        "cpu" => set(&mut says.cpu, value),
        "pid" => set(&mut says.pid, value),
        "since_napi_us" => set(&mut says.since_napi_us, value),
        "threshold_us" => set(&mut says.threshold_us, value),
        _ => false,
    }
}

/// The device if there is one, else the CPU, else the process, else the node.
fn subject(says: &KernelLine) -> Subject {
    match (&says.device, says.cpu, says.pid) {
        (Some(device), ..) => Subject::new(SubjectKind::Device, device.as_str()),
        (None, Some(cpu), _) => Subject::cpu(cpu),
        (None, None, Some(pid)) => Subject::new(SubjectKind::Process, pid.to_string()),
        (None, None, None) => Subject::node(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sexton_model::payload::{Payload, stored};

    fn known() -> KernelLog {
        KernelLog::built_in().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn the_first_that_fits_an_example_is_its_own() {
        let signatures = known();
        for pattern in &signatures.patterns {
            signatures.prove(&pattern.id).expect("its proofs hold");
            for hit in &pattern.hits {
                let known = signatures.find(hit.line.as_bytes()).expect("it is found");
                assert_eq!(known.pattern.id, pattern.id, "{:?}", hit.line);
            }
        }
    }

    #[test]
    fn no_example_is_of_two_classes() {
        let signatures = known();
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
        let signatures = known();
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

    fn check_refused(text: &str, complaint: &str) {
        let refused = KernelLog::default().add_file(Path::new("x.toml"), text);
        let error = refused.expect_err("it is wrong").to_string();
        assert!(
            error.contains("x.toml") && error.contains(complaint),
            "{error}"
        );
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let pattern = |more: &str| {
            format!(
                "driver = \"x\"\n[[pattern]]\nid = \"a\"\nclass = \"nic_reset\"\nwordings = [\"w\"]\nsource = \"s\"\nhits = [{{ line = \"x 1: w\", captures = {{ bus = \"1\" }} }}]\nmisses = [\"v\"]\n{more}\n"
            )
        };
        let right = KernelLog::default().add_file(Path::new("x.toml"), &pattern(""));
        right.expect("it is right");
        check_refused(&pattern("colour = 1"), "x.toml:9: unknown field `colour`");
        check_refused(
            &pattern("fields = { q = { trust = false } }"),
            "no wording captures",
        );
        check_refused(&pattern("").replace("nic_reset", "nic_rest"), "is no class");
        check_refused(&pattern("").replace("[\"v\"]", "[]"), "one of its proofs");
        check_refused(&pattern("").replace("[\"w\"]", "[\"{w\"]"), "not closed");
        check_refused(&pattern("").replace("x 1: w", "x 1: v"), "its hit");
        check_refused(&pattern("").replace("[\"v\"]", "[\"x 1: w\"]"), "its miss");
    }

    fn check(line: &str, subject: &str, expected: &[(&str, &str)], absent: &[&str]) {
        let ens5 = line.contains("0000:00:05.0").then(|| "ens5".to_owned());
        let seen = KernelLine {
            line: Some(line.to_owned()),
            seq: Some(7),
            device: ens5,
            ..KernelLine::default()
        };
        let (about, says) = known().recognize(&seen).expect("it is known");
        assert_eq!(about.to_string(), subject);
        let fields = says.fields();
        let get = |key: &str| stored(&fields, key).map(ToString::to_string);
        for (key, value) in expected {
            assert_eq!(get(key).as_deref(), Some(*value), "{key}");
        }
        for key in absent {
            assert_eq!(get(key), None, "{key}");
        }
    }

    #[test]
    fn a_line_of_a_device_is_about_that_device() {
        check(
            "ena 0000:00:05.0 ens6: Trigger reset is on",
            "device ens6",
            &[
                ("id", "ena-trigger-reset"),
                ("class", "nic_reset"),
                ("driver", "ena"),
                ("seq", "7"),
                ("bus", "0000:00:05.0"),
                ("line", "ena 0000:00:05.0 ens6: Trigger reset is on"),
            ],
            &["doubtful", "queue"],
        );
    }

    #[test]
    fn an_address_leads_to_the_interface() {
        let line = "ena 0000:00:05.0: Device reset completed successfully";
        check(line, "device ens5", &[("device", "ens5")], &[]);
        let other = "ena 0000:00:09.0: Device reset completed successfully";
        check(other, "node", &[("bus", "0000:00:09.0")], &["device"]);
    }

    #[test]
    fn what_a_driver_says_wrongly_is_doubtful() {
        check(
            "ena 0000:00:05.0 ens5: [2/2] qid: 3, napi CPU: 11",
            "device ens5",
            &[("doubtful", "queue=3 cpu=11")],
            &["queue", "cpu"],
        );
    }

    #[test]
    fn what_a_program_writes_is_marked_and_harmless() {
        check(
            "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a\\033[31m:9]",
            "cpu 3",
            &[
                ("cpu", "3"),
                ("comm", r"a\033[31m"),
                (
                    "line",
                    r"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a\033[31m:9]",
                ),
            ],
            &["device", "driver"],
        );
    }

    proptest! {
        #[test]
        fn any_line_is_taken(text in prop::collection::vec(any::<u8>(), 0..120)) {
            thread_local!(static ALL: KernelLog = known());
            ALL.with(|all| { all.find(&text); });
        }
    }
}
