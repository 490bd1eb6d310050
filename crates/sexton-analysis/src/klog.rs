//! Lines of the kernel's log, as rules look at them.

use sexton_model::fact::klog::KLOG_EVENT;
use sexton_model::finding::{Confidence, Evidence};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;

/// A line whose wording is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    record: &'a Record,
}

/// The known lines of these classes, in the order of time.
pub(crate) fn lines<'a>(case: &Case<'a>, classes: &[&str]) -> Vec<Line<'a>> {
    let of_class = |record: &&&Record| {
        let class = record.detail("class");
        class.is_some_and(|class| classes.contains(&class))
    };
    let records = case.of(&KLOG_EVENT).iter().filter(of_class);
    records.map(|record| Line { record }).collect()
}

impl<'a> Line<'a> {
    pub(crate) fn at(self) -> Moment {
        self.record.at
    }

    pub(crate) fn class(self) -> &'a str {
        self.record.detail("class").unwrap_or_default()
    }

    /// What it is about.
    pub(crate) fn subject(self) -> &'a Subject {
        &self.record.subject
    }

    pub(crate) fn detail(self, key: &str) -> Option<&'a str> {
        self.record.detail(key)
    }

    pub(crate) fn number(self, key: &str) -> Option<u64> {
        self.detail(key)?.parse().ok()
    }

    /// The core that it names.
    pub(crate) fn core(self) -> Option<Subject> {
        let cpu = self.detail("cpu")?.parse().ok()?;
        Some(Subject::cpu(cpu))
    }

    /// The process that it names.
    pub(crate) fn process(self) -> Option<Subject> {
        let pid: u32 = self.detail("pid")?.parse().ok()?;
        Some(Subject::new(SubjectKind::Process, pid.to_string()))
    }

    /// Whether the kernel itself wrote it. Who may write to the log can write anything.
    pub(crate) fn is_of_kernel(self) -> bool {
        self.detail("written_by") != Some("userspace")
    }

    /// The line as evidence, which says when a program wrote it.
    pub(crate) fn evidence(self) -> Evidence {
        let line = self.detail("line").unwrap_or_else(|| self.class());
        let (source, text) = match self.is_of_kernel() {
            true => ("klog: kernel", line.to_owned()),
            false => (
                "klog: written by a program",
                format!("{line} (written by a program, not by the kernel: weak by itself)"),
            ),
        };
        Evidence::speaks_for(source, text).at(self.at())
    }
}

/// How far to trust these lines: not far when no one of them is the kernel's own.
pub(crate) fn trust(lines: &[Line<'_>]) -> Confidence {
    match lines.iter().any(|line| line.is_of_kernel()) {
        true => Confidence::CERTAIN,
        false => Confidence::WEAK,
    }
}
