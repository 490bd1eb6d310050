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
mod tests;
