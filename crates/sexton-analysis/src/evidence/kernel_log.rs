//! Lines of the kernel's log, as rules look at them.

use sexton_model::fact::klog::{KLOG_EVENT, KernelLine};
use sexton_model::finding::{Confidence, Evidence};
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;

/// A line whose wording is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    event: Event<'a, KernelLine>,
}

/// The known lines of these classes, in the order of time.
pub(crate) fn lines<'a>(case: &Case<'a>, classes: &[&str]) -> Vec<Line<'a>> {
    let of_class = |line: &Line<'a>| classes.contains(&line.class());
    let lines = case.events(&KLOG_EVENT).map(|event| Line { event });
    lines.filter(of_class).collect()
}

impl<'a> Line<'a> {
    pub(crate) fn at(self) -> Moment {
        self.event.at
    }

    pub(crate) fn class(self) -> &'a str {
        self.event.says.class.as_deref().unwrap_or_default()
    }

    /// What it is about.
    pub(crate) fn subject(self) -> &'a Subject {
        self.event.subject
    }

    /// What it says.
    pub(crate) fn says(self) -> &'a KernelLine {
        self.event.says
    }

    /// A number that the wording captured under this name.
    pub(crate) fn captured(self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// A text that the wording captured under this name.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        let mut captures = self.event.says.captures.iter();
        let capture = captures.find(|capture| capture.name == name)?;
        Some(&capture.value)
    }

    /// The core that it names.
    pub(crate) fn core(self) -> Option<Subject> {
        self.event.says.cpu.map(Subject::cpu)
    }

    /// The process that it names.
    pub(crate) fn process(self) -> Option<Subject> {
        let pid = self.event.says.pid?;
        Some(Subject::new(SubjectKind::Process, pid.to_string()))
    }

    /// Whether the kernel itself wrote it. Who may write to the log can write anything.
    pub(crate) fn is_of_kernel(self) -> bool {
        self.event.says.written_by.as_deref() != Some("userspace")
    }

    /// The line as evidence, which says when a program wrote it.
    pub(crate) fn evidence(self) -> Evidence {
        let line = self.event.says.line.as_deref().unwrap_or(self.class());
        let (source, text) = match self.is_of_kernel() {
            true => ("klog: kernel", line.to_owned()),
            false => (
                "klog: written by a program",
                format!("{line} (written by a program, not by the kernel)"),
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
