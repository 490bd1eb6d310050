//! The shapes that programs give to cgroup names, as tables and small functions.
//!
//! A shape looks at one name and at the parts above it. The first that knows the
//! name wins, so the order of [`SHAPES`] is from the particular to the general.

use super::name;
use super::part::{Container, Part, PodName, Qos, Role, Runtime};
use Runtime::{Containerd, CriO, Docker, Lxc, Podman, Unknown};

/// What `name` is, below the parts `above`, outermost first.
pub(super) fn role<'a>(name: &'a [u8], above: &[Part<'a>]) -> Role<'a> {
    let above = Above(above);
    SHAPES
        .iter()
        .find_map(|shape| shape(name, above))
        .unwrap_or(Role::Other)
}

type Shape = for<'a> fn(&'a [u8], Above<'_, 'a>) -> Option<Role<'a>>;

const SHAPES: &[Shape] = &[
    blank,
    pod_slice,
    pod_directory,
    podman_pod,
    machine,
    machine_of_old_libvirt,
    container_with_prefix,
    container_with_slice,
    container_of_lxc,
    container_of_fargate,
    container_by_bare_name,
    session,
    unit,
    slice,
    group,
    task_of_ecs,
];

/// Names that carry a container's id after a dash, with or without `.scope`, or
/// after a colon. `runc` and `crun` are what those two write when not told a name.
const PREFIXES: &[(&str, Runtime, bool)] = &[
    ("docker", Docker, false),
    ("cri-containerd", Containerd, false),
    ("nerdctl", Containerd, false),
    ("crio", CriO, false),
    ("crio-conmon", CriO, HELPER),
    ("libpod", Podman, false),
    ("libpod-payload", Podman, false),
    ("libpod-conmon", Podman, HELPER),
    ("runc", Unknown, false),
    ("crun", Unknown, false),
];

/// The process that watches over a container, not the container itself.
const HELPER: bool = true;

/// A directory in which a runtime puts its containers under their bare name.
struct Home {
    name: &'static str,
    runtime: Runtime,
    holds: Holds,
}

/// Which names directly below a [`Home`] are containers. A full id is one
/// anywhere; the home then only tells the runtime.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    /// Full ids only.
    FullIds,
    /// All that look like an id.
    Ids,
    /// All: the runtime lets people choose the name.
    Names,
    /// All, but as processes that watch over containers.
    Helpers,
}

#[rustfmt::skip]
const HOMES: &[Home] = &[
    Home { name: "docker",             runtime: Docker,     holds: Holds::Ids },
    Home { name: "docker.service",     runtime: Docker,     holds: Holds::FullIds },
    Home { name: "ecs",                runtime: Docker,     holds: Holds::FullIds },
    Home { name: "buildkit",           runtime: Unknown,    holds: Holds::Ids },
    Home { name: "containerd.service", runtime: Containerd, holds: Holds::FullIds },
    // Namespaces of containerd. `ctr` lets people choose the name, but a `/default`
    // may be anyone's: there the name must look like an id.
    Home { name: "default",            runtime: Containerd, holds: Holds::Ids },
    Home { name: "k8s.io",             runtime: Containerd, holds: Holds::Names },
    Home { name: "lxc",                runtime: Lxc,        holds: Holds::Names },
    Home { name: "lxc.payload",        runtime: Lxc,        holds: Holds::Names },
    Home { name: "lxc.monitor",        runtime: Lxc,        holds: Holds::Helpers },
];

/// Directories that collect what a runtime makes, beside the homes.
const GROUPS: &[&str] = &[
    "buildx",
    "kubelet",
    "kubepods",
    "libpod_parent",
    "libvirt",
    "machine",
];

/// The levels that the kubelet has for the two lower classes of pods.
const QOS_LEVELS: [(&str, Qos); 2] = [
    ("burstable", Qos::Burstable),
    ("besteffort", Qos::BestEffort),
];

/// What stands before and after the name of a machine.
const MACHINES: &[(&str, &str)] = &[
    ("machine-", ".scope"),
    ("systemd-nspawn@", ".service"),
    ("systemd-vmspawn@", ".service"),
    ("", ".libvirt-qemu"),
    ("", ".libvirt-lxc"),
];

/// The parts above the one that is looked at.
#[derive(Clone, Copy)]
struct Above<'p, 'a>(&'p [Part<'a>]);

impl<'p, 'a> Above<'p, 'a> {
    /// From the parent upwards.
    fn parts(self) -> impl Iterator<Item = &'p Part<'a>> {
        let upwards = self.0.iter().rev();
        upwards.filter(|part| part.role != Role::Blank)
    }

    /// The name of the parent, empty below the root.
    fn parent(self) -> &'a [u8] {
        self.name(1)
    }

    /// The name so many levels up, empty if there are not as many.
    fn name(self, levels: usize) -> &'a [u8] {
        self.parts().nth(levels - 1).map_or(b"", |part| part.name)
    }

    /// The runtime in whose home this lies, at any depth, but not across the border
    /// of another container.
    fn runtime(self) -> Runtime {
        self.parts()
            .take_while(|part| !matches!(part.role, Role::Container(..)))
            .filter_map(|part| home_called(part.name))
            .map(|home| home.runtime)
            .find(|&runtime| runtime != Unknown)
            .unwrap_or(Unknown)
    }

    /// Which names are containers here.
    fn holds(self) -> Holds {
        let Some(parent) = self.parts().next() else {
            return Holds::FullIds;
        };
        match parent.role {
            Role::Pod(_) => Holds::Ids,
            // An LXC container may be called `docker`.
            Role::Container(..) => Holds::FullIds,
            _ => home_called(parent.name).map_or(Holds::FullIds, |home| home.holds),
        }
    }
}

fn home_called(name: &[u8]) -> Option<&'static Home> {
    HOMES.iter().find(|home| home.name.as_bytes() == name)
}

fn container(runtime: Runtime, id: &str, helper: bool) -> Role<'_> {
    let container = Container {
        runtime,
        id,
        helper,
    };
    Role::Container(container, None)
}

fn blank<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    matches!(name, b"" | b"..").then_some(Role::Blank)
}

/// `kubepods-burstable-pod<uid>.slice`, also below other roots:
/// `kubelet-kubepods-pod<uid>.slice`.
fn pod_slice<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    pod_of_slice(name).map(Role::Pod)
}

fn pod_of_slice(name: &[u8]) -> Option<PodName<'_>> {
    let stem = str::from_utf8(name).ok()?.strip_suffix(".slice")?;
    let (parent, uid) = stem.rsplit_once("-pod")?;
    let level = QOS_LEVELS
        .iter()
        .find_map(|(level, qos)| Some((parent.strip_suffix(level)?.strip_suffix('-')?, *qos)));
    let (root, qos) = level.unwrap_or((parent, Qos::Guaranteed));
    let kubepods = root == "kubepods" || root.ends_with("-kubepods");
    (kubepods && is_pod_uid(uid)).then_some(PodName { uid, qos })
}

/// `/kubepods/pod<uid>` and `/kubepods/burstable/pod<uid>`.
fn pod_directory<'a>(name: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    let uid = str::from_utf8(name).ok()?.strip_prefix("pod")?;
    let level = qos_level(above.parent());
    let root = above.name(if level.is_some() { 2 } else { 1 });
    let qos = level.unwrap_or(Qos::Guaranteed);
    (root == b"kubepods" && is_pod_uid(uid)).then_some(Role::Pod(PodName { uid, qos }))
}

fn qos_level(name: &[u8]) -> Option<Qos> {
    let mut levels = QOS_LEVELS.iter();
    levels.find_map(|(level, qos)| (level.as_bytes() == name).then_some(*qos))
}

/// Mostly a UUID, or the hash of a static pod's manifest, but the API takes more.
fn is_pod_uid(uid: &str) -> bool {
    let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !uid.is_empty() && uid.bytes().all(valid)
}

/// `/libpod_parent/<id>` is a pod of Podman; the containers in it have a prefix.
fn podman_pod<'a>(name: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    (above.parent() == b"libpod_parent" && name::is_full_id(name)).then_some(Role::Group)
}

fn machine<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    MACHINES
        .iter()
        .find_map(|(prefix, suffix)| name::between(name, prefix, suffix))
        .map(Role::Machine)
}

/// `/libvirt/qemu/<name>`, up to libvirt 1.0.4.
fn machine_of_old_libvirt<'a>(name: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    let driver = matches!(above.parent(), b"qemu" | b"lxc");
    (driver && above.name(2) == b"libvirt").then_some(Role::Machine(name))
}

/// `docker-<id>.scope`, `libpod-<id>`.
fn container_with_prefix<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    let stem = name.strip_suffix(b".scope").unwrap_or(name);
    let at = stem.iter().rposition(|&b| b == b'-')?;
    prefixed(&stem[..at], &stem[at + 1..]).map(|container| Role::Container(container, None))
}

/// `system.slice:docker:<id>`: a path meant for systemd, taken for a name by a
/// runtime that was not told to use systemd. BuildKit in Docker makes these still.
fn container_with_slice<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    let mut fields = name.split(|&b| b == b':');
    let (slice, prefix, id) = (fields.next()?, fields.next()?, fields.next()?);
    let container = prefixed(prefix, id).filter(|_| fields.next().is_none())?;
    Some(Role::Container(container, pod_of_slice(slice)))
}

fn prefixed<'a>(prefix: &[u8], id: &'a [u8]) -> Option<Container<'a>> {
    let id = name::container_id(id)?;
    let mut known = PREFIXES.iter();
    let &(_, runtime, helper) = known.find(|(known, ..)| known.as_bytes() == prefix)?;
    Some(Container {
        runtime,
        id,
        helper,
    })
}

/// `lxc.payload.<name>` and `lxc.monitor.<name>`.
fn container_of_lxc<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    let payload = name::between(name, "lxc.payload.", "");
    let monitor = name::between(name, "lxc.monitor.", "");
    let id = str::from_utf8(payload.or(monitor)?).ok()?;
    Some(container(Lxc, id, monitor.is_some()))
}

/// `/ecs/<task>/<task>-<number>`, which Fargate runs with containerd.
fn container_of_fargate<'a>(name: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    let number = name.strip_prefix(above.parent())?.strip_prefix(b"-")?;
    let task = above.name(2) == b"ecs" && name::is_hex_id(above.parent());
    let counted = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    let id = str::from_utf8(name).ok().filter(|_| task && counted)?;
    Some(container(Containerd, id, false))
}

/// `/docker/<id>`, `/lxc/<name>`, an id in a pod, and a full id anywhere.
fn container_by_bare_name<'a>(name: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    let known = match above.holds() {
        Holds::FullIds => name::is_full_id(name),
        Holds::Ids => name::container_id(name).is_some(),
        Holds::Names | Holds::Helpers => true,
    };
    let id = str::from_utf8(name).ok().filter(|_| known)?;
    let helper = above.holds() == Holds::Helpers;
    Some(container(above.runtime(), id, helper))
}

/// `/user.slice/user-1000.slice/session-3.scope`.
fn session<'a>(name: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    name::uid_of_slice(above.parent())?;
    let id = name::between(name, "session-", ".scope")?;
    name::unit(name)?;
    str::from_utf8(id).ok().map(Role::Session)
}

fn unit<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    name::unit(name).map(|_| Role::Unit)
}

fn slice<'a>(name: &'a [u8], _: Above<'_, 'a>) -> Option<Role<'a>> {
    name::slice(name).map(|_| Role::Slice)
}

fn group<'a>(name: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    let known = GROUPS.iter().any(|group| group.as_bytes() == name);
    let home = home_called(name).is_some_and(|home| home.name != "default");
    let level = match above.parent() {
        b"kubepods" => qos_level(name).is_some(),
        b"libvirt" => matches!(name, b"qemu" | b"lxc"),
        _ => false,
    };
    (known || home || level).then_some(Role::Group)
}

/// `/ecs/<task>` and `/ecs/<cluster>/<task>`.
fn task_of_ecs<'a>(_: &'a [u8], above: Above<'_, 'a>) -> Option<Role<'a>> {
    let parent = above.parent();
    let task = parent == b"ecs" || (above.name(2) == b"ecs" && !name::is_hex_id(parent));
    task.then_some(Role::Group)
}
