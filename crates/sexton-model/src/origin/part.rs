//! The words that describe one component of a cgroup path.

use std::fmt;

/// One component of a cgroup path and what its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The component as it is on disk, without slashes. Empty before the first
    /// slash of an absolute path, and between two slashes.
    pub name: &'a [u8],
    /// What this component is, seen from the components above it.
    pub role: Role<'a>,
}

/// What one component of a cgroup path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role<'a> {
    /// Empty, or the `..` of a path seen from inside a cgroup namespace.
    Blank,
    /// A systemd slice.
    Slice,
    /// A directory in which a runtime or the kubelet collects what it makes, as
    /// systemd does in slices: `/docker`, `/kubepods/burstable`, `/ecs/<task>`.
    Group,
    /// A systemd unit that may hold processes.
    Unit,
    /// The scope of a login session.
    Session(&'a str),
    /// A container, or the process that watches over it, and the pod if the same
    /// component names it: `kubepods-pod<uid>.slice:cri-containerd:<id>`.
    Container(Container<'a>, Option<PodName<'a>>),
    /// A Kubernetes pod.
    Pod(PodName<'a>),
    /// A virtual machine or system container known to systemd-machined or
    /// libvirt. The name is still escaped the way systemd does.
    Machine(&'a [u8]),
    /// Nothing we know: a directory someone made.
    Other,
}

/// A container, as its cgroup names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Container<'a> {
    /// Who runs it, if the path tells.
    pub runtime: Runtime,
    /// Its id, or its name for runtimes that name cgroups so.
    pub id: &'a str,
    /// Not the container itself but the process that watches over it: `conmon`,
    /// the LXC monitor.
    pub helper: bool,
}

/// A Kubernetes pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pod {
    /// The uid as the kubelet writes it elsewhere: with dashes, or 32 hex digits
    /// without for a static pod, whose uid is a hash of its manifest.
    pub uid: String,
    /// Its quality of service class.
    pub qos: Qos,
}

/// A pod as the path spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PodName<'a> {
    /// The uid; in the name of a slice underscores stand for its dashes.
    pub uid: &'a str,
    /// Its quality of service class.
    pub qos: Qos,
}

impl From<PodName<'_>> for Pod {
    fn from(name: PodName<'_>) -> Pod {
        Pod {
            uid: name.uid.replace('_', "-"),
            qos: name.qos,
        }
    }
}

/// The quality of service class of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Qos {
    /// Every container has limits equal to its requests. Has no level of its own
    /// in the path.
    Guaranteed,
    /// Some requests or limits.
    Burstable,
    /// No requests and no limits.
    BestEffort,
}

impl fmt::Display for Qos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Qos::Guaranteed => "guaranteed",
            Qos::Burstable => "burstable",
            Qos::BestEffort => "besteffort",
        })
    }
}

/// The program that runs a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// Docker, the containers of its builder among them.
    Docker,
    /// containerd: through the CRI, `ctr`, `nerdctl` or Fargate.
    Containerd,
    /// CRI-O.
    CriO,
    /// Podman.
    Podman,
    /// LXC, LXD or Incus.
    Lxc,
    /// The path has an id but nothing that tells whose.
    Unknown,
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runtime::Docker => "Docker",
            Runtime::Containerd => "containerd",
            Runtime::CriO => "CRI-O",
            Runtime::Podman => "Podman",
            Runtime::Lxc => "LXC",
            Runtime::Unknown => "unknown runtime",
        })
    }
}

/// What kind of thing a cgroup belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The root of the hierarchy.
    Root,
    /// A unit of the system manager, or a group inside one.
    Unit,
    /// A group that only collects others: a systemd slice, or what runtimes
    /// make in place of one (`/docker`, `/kubepods/burstable`).
    Slice,
    /// A login session.
    UserSession,
    /// A unit of a user's own manager.
    UserUnit,
    /// A container, or a group inside one.
    Container,
    /// A pod's own cgroup, which holds those of its containers.
    Pod,
    /// A virtual machine or system container.
    Machine,
    /// No program we know names a cgroup like this.
    ByHand,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Root => "root",
            Kind::Unit => "systemd unit",
            Kind::Slice => "slice",
            Kind::UserSession => "login session",
            Kind::UserUnit => "user's systemd unit",
            Kind::Container => "container",
            Kind::Pod => "Kubernetes pod",
            Kind::Machine => "machine",
            Kind::ByHand => "made by hand",
        })
    }
}
