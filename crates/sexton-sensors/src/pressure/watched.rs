//! One thing whose pressure is watched: the node or a cgroup.

use std::io;
use std::path::Path;
use std::path::PathBuf;

use sexton_host::{Host, HostError};
use sexton_model::fact::{Fact, pressure as fact};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;

use super::psi::{Line, Psi, lost};

/// What can be under pressure, and its facts.
pub(super) struct Resource {
    /// Its name in the names of files.
    pub(super) name: &'static str,
    some: Kind,
    full: Kind,
}

struct Kind {
    ratio: &'static Fact,
    avg10: &'static Fact,
}

/// All that the kernel tells of and that we tell on.
pub(super) static RESOURCES: [Resource; 3] = [
    Resource {
        name: "cpu",
        some: Kind {
            ratio: &fact::PRESSURE_CPU_SOME_RATIO,
            avg10: &fact::PRESSURE_CPU_SOME_AVG10_RATIO,
        },
        full: Kind {
            ratio: &fact::PRESSURE_CPU_FULL_RATIO,
            avg10: &fact::PRESSURE_CPU_FULL_AVG10_RATIO,
        },
    },
    Resource {
        name: "memory",
        some: Kind {
            ratio: &fact::PRESSURE_MEMORY_SOME_RATIO,
            avg10: &fact::PRESSURE_MEMORY_SOME_AVG10_RATIO,
        },
        full: Kind {
            ratio: &fact::PRESSURE_MEMORY_FULL_RATIO,
            avg10: &fact::PRESSURE_MEMORY_FULL_AVG10_RATIO,
        },
    },
    Resource {
        name: "io",
        some: Kind {
            ratio: &fact::PRESSURE_IO_SOME_RATIO,
            avg10: &fact::PRESSURE_IO_SOME_AVG10_RATIO,
        },
        full: Kind {
            ratio: &fact::PRESSURE_IO_FULL_RATIO,
            avg10: &fact::PRESSURE_IO_FULL_AVG10_RATIO,
        },
    },
];

/// Reads a pressure file into a buffer that is kept.
pub(super) fn read(host: &Host, path: &Path, buffer: &mut Vec<u8>) -> Result<Psi, HostError> {
    host.read_into(path, buffer)?;
    Psi::parse(buffer).ok_or_else(|| HostError::Malformed {
        path: path.to_owned(),
        what: "it is no pressure file".into(),
    })
}

/// Whether the file is not there any more. Reading a file of a cgroup that was removed
/// after the file was opened says that the device is gone.
pub(super) fn is_gone(error: &HostError) -> bool {
    const ENODEV: i32 = 19;
    matches!(error, HostError::Read { source, .. }
        if source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(ENODEV))
}

/// The pressure files of one subject, and what they said last.
pub(super) struct Watched {
    pub(super) subject: Subject,
    files: [File; RESOURCES.len()],
    /// The node as a whole: there every task waiting for a CPU means none.
    is_node: bool,
}

struct File {
    path: PathBuf,
    before: Option<(Moment, Psi)>,
}

impl Watched {
    /// The node; `folder` is `/proc/pressure`.
    pub(super) fn node(folder: &Path) -> Self {
        Self::new(Subject::node(), true, |name| folder.join(name))
    }

    /// A cgroup, by its directory.
    pub(super) fn cgroup(subject: Subject, directory: &Path) -> Self {
        Self::new(subject, false, |name| {
            directory.join(format!("{name}.pressure"))
        })
    }

    fn new(subject: Subject, is_node: bool, path: impl Fn(&str) -> PathBuf) -> Self {
        let files = RESOURCES.each_ref().map(|resource| File {
            path: path(resource.name),
            before: None,
        });
        Self {
            subject,
            files,
            is_node,
        }
    }

    /// Takes over what an earlier watch of the same thing knew.
    pub(super) fn succeed(&mut self, earlier: Self) {
        for (file, earlier) in self.files.iter_mut().zip(earlier.files) {
            file.before = earlier.before;
        }
    }

    /// Reads all files and tells what they say. What cannot be read is given to `unread`.
    pub(super) fn tell(
        &mut self,
        host: &Host,
        buffer: &mut Vec<u8>,
        out: &mut Sink,
        mut unread: impl FnMut(&Subject, HostError, &mut Sink),
    ) {
        for (file, resource) in self.files.iter_mut().zip(&RESOURCES) {
            let psi = match read(host, &file.path, buffer) {
                Ok(psi) => psi,
                Err(error) => {
                    file.before = None;
                    unread(&self.subject, error, out);
                    continue;
                }
            };
            let before = file.before.replace((out.now(), psi));
            let earlier = |line: fn(&Psi) -> Option<Line>| {
                before.and_then(|(at, psi)| Some((at, line(&psi)?)))
            };
            let subject = &self.subject;
            let some_before = earlier(|psi| Some(psi.some));
            tell_line(subject, &resource.some, some_before, psi.some, out);
            // Undefined for the node by psi.rst, and always zero.
            let is_defined = !(self.is_node && resource.name == "cpu");
            if let Some(full) = psi.full.filter(|_| is_defined) {
                tell_line(subject, &resource.full, earlier(|psi| psi.full), full, out);
            }
        }
    }
}

fn tell_line(
    subject: &Subject,
    kind: &Kind,
    before: Option<(Moment, Line)>,
    now: Line,
    out: &mut Sink,
) {
    out.sample(subject, kind.avg10, now.avg10);
    let ratio =
        before.and_then(|(at, before)| lost(before.total_us, now.total_us, out.now().since(at)));
    if let Some(ratio) = ratio {
        out.sample(subject, kind.ratio, ratio);
    }
}
