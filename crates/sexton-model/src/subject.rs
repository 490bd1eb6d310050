//! What a record is about.

use std::fmt;
use std::sync::Arc;

/// The sort of thing that a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// The whole node; its name is empty. What does not fit into one record is told in parts,
    /// whose name is their number.
    Node,
    /// A CPU, by its number.
    Cpu,
    /// A cgroup, by its path.
    Cgroup,
    /// A systemd unit, by its name.
    Unit,
    /// A container, by its id.
    Container,
    /// An image of containers, by the name that was asked for.
    Image,
    /// A device, by its name: of the network, or a disk, GPU or PCIe device that the kernel
    /// names in an error.
    Device,
    /// A queue of a network device: `eth0/tx-3`.
    Queue,
    /// A process, by its number.
    Process,
    /// A task of the kernel or of a process, by its name.
    Task,
    /// A mounted filesystem, by the path of its mount point.
    Mount,
    /// One of sexton's own sensors.
    Sensor,
    /// A limit of the kernel, by its setting: `kernel.pid_max`, `pids.max /a.slice`.
    Limit,
}

/// All kinds, with their names in recordings and JSON.
const KINDS: [(SubjectKind, &str); 13] = [
    (SubjectKind::Node, "node"),
    (SubjectKind::Cpu, "cpu"),
    (SubjectKind::Cgroup, "cgroup"),
    (SubjectKind::Unit, "unit"),
    (SubjectKind::Container, "container"),
    (SubjectKind::Image, "image"),
    (SubjectKind::Device, "device"),
    (SubjectKind::Queue, "queue"),
    (SubjectKind::Process, "process"),
    (SubjectKind::Task, "task"),
    (SubjectKind::Mount, "mount"),
    (SubjectKind::Sensor, "sensor"),
    (SubjectKind::Limit, "limit"),
];

impl SubjectKind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        KINDS.iter().map(|(kind, _)| *kind)
    }

    /// Its name in recordings and JSON.
    pub fn name(self) -> &'static str {
        KINDS
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }

    /// The kind of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        KINDS
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| *kind)
    }
}

/// What a record is about. Cheap to clone: sensors keep the subjects they speak of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject {
    /// The sort of thing.
    pub kind: SubjectKind,
    /// Which one; hostile names are escaped by `text::escape` before they come here.
    pub name: Arc<str>,
}

impl Subject {
    /// One thing of a kind.
    pub fn new(kind: SubjectKind, name: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }

    /// The whole node.
    pub fn node() -> Self {
        Self::new(SubjectKind::Node, "")
    }

    /// A CPU.
    pub fn cpu(number: u32) -> Self {
        Self::new(SubjectKind::Cpu, number.to_string())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SubjectKind::Node => f.write_str("node"),
            kind => write!(f, "{} {}", kind.name(), self.name),
        }
    }
}
