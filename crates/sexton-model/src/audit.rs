//! An audit: what the units of an image are, and what is wrong with them.

use crate::finding::Finding;

/// What a unit is worth on an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitVerdict {
    /// It has no use here and should be off.
    Unwanted,
    /// It is started and cannot start.
    Broken,
    /// Nothing is known that speaks for or against it.
    Unknown,
    /// The machine needs it.
    Needed,
    /// It does no harm: it is off, skipped, or known to be allowed.
    Harmless,
}

impl UnitVerdict {
    /// Its name in JSON and text.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unwanted => "unwanted",
            Self::Broken => "broken",
            Self::Unknown => "unknown",
            Self::Needed => "needed",
            Self::Harmless => "harmless",
        }
    }
}

/// Which system an image holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditOs {
    /// `debian`
    pub id: String,
    /// `12`
    pub version: String,
    /// `Debian GNU/Linux 12 (bookworm)`
    pub name: String,
    /// Releases of the kernels in it.
    pub kernels: Vec<String>,
}

/// One unit of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditUnit {
    /// Its name.
    pub name: String,
    /// As `systemctl list-unit-files` says.
    pub state: &'static str,
    /// The same; `None` where it shows none.
    pub preset: Option<&'static str>,
    /// The package that owns its file.
    pub package: Option<String>,
    /// Its file.
    pub file: String,
    /// The units that lead to it, from `default.target` on.
    pub reached_by: Vec<String>,
    /// How often a day it may start, and so make a memory cgroup, and which settings say so:
    /// those of a timer, or of an endless loop.
    pub starts_per_day: Option<(u64, String)>,
    /// Whether it runs or may run after a boot.
    pub is_on: bool,
    /// What it is worth.
    pub verdict: UnitVerdict,
    /// Codes of the findings about it.
    pub codes: Vec<&'static str>,
    /// Why, in one line that can be checked.
    pub why: String,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// What was given.
    pub source: String,
    /// What it turned out to be.
    pub what: String,
    /// Which system it holds.
    pub os: AuditOs,
    /// What it is for, and the evidence for that.
    pub shape: Option<(String, String)>,
    /// Why no shape is named though one seems to fit.
    pub shape_doubt: Option<String>,
    /// Every unit, by name.
    pub units: Vec<AuditUnit>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What the shape needs and is not on.
    pub missing: Vec<String>,
    /// Packages and their versions.
    pub packages: Vec<(String, String)>,
    /// What could not be read.
    pub gaps: Vec<String>,
}

impl Audit {
    /// Units of a verdict that are on.
    pub fn of(&self, verdict: UnitVerdict) -> impl Iterator<Item = &AuditUnit> {
        self.units
            .iter()
            .filter(move |unit| unit.is_on && unit.verdict == verdict)
    }

    /// The findings about a unit.
    pub fn findings_of<'a>(&'a self, unit: &'a str) -> impl Iterator<Item = &'a Finding> {
        self.findings
            .iter()
            .filter(move |finding| &*finding.subject.name == unit)
    }
}
