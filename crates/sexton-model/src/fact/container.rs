//! Facts about containers, as their runtime tells them. The subject of an event is the
//! container, that of a sample its image or the node.

use super::metric::{IMAGES, MAX_NAMES, Metric};
use super::show::{CONTAINERS_EXITED, CONTAINERS_STARTED, Group, Mark, SECOND, Series, Show};
use crate::subject::Subject;
use crate::{choice, payload};

choice! {
    /// Whether a container exited because it ran out of memory.
    pub enum OutOfMemory {
        /// It did.
        Yes = "yes",
        /// It did not.
        No = "no",
        /// The runtime does not say.
        Unknown = "unknown",
    }
}

payload! {
    /// A container started.
    pub struct ContainerStarted {
        /// its id
        pub id: Option<String>,
        /// its name
        pub name: Option<String>,
        /// the image it was created from
        pub image: Option<String>,
        /// the runtime that reports it
        pub runtime: Option<String>,
        /// the namespace of containerd
        pub namespace: Option<String>,
        /// the pod it belongs to
        pub pod: Option<String>,
        /// that pod's namespace
        pub pod_namespace: Option<String>,
        /// that pod's uid
        pub pod_uid: Option<String>,
        /// how often a kubelet had created it, or Docker started it, before
        pub attempt: Option<u64>,
        /// the project of Docker Compose
        pub compose_project: Option<String>,
        /// whether it was before the sensor was opened
        pub before_open: Option<bool>,
        /// the runtime's own time stamp, the same however often the event is reported
        pub wall_ns: Option<u64>,
    }

    /// The first process of a container exited.
    pub struct ContainerExited {
        /// its id
        pub id: Option<String>,
        /// its name
        pub name: Option<String>,
        /// the image it was created from
        pub image: Option<String>,
        /// its exit code
        pub exit_code: Option<i64>,
        /// whether it ran out of memory
        pub oom: Option<OutOfMemory>,
        /// time since this start
        pub lifetime_ms: Option<u64>,
        /// the runtime that reports it
        pub runtime: Option<String>,
        /// the namespace of containerd
        pub namespace: Option<String>,
        /// the pod it belongs to
        pub pod: Option<String>,
        /// that pod's namespace
        pub pod_namespace: Option<String>,
        /// that pod's uid
        pub pod_uid: Option<String>,
        /// how often a kubelet had created it, or Docker started it, before
        pub attempt: Option<u64>,
        /// the project of Docker Compose
        pub compose_project: Option<String>,
        /// whether it was before the sensor was opened
        pub before_open: Option<bool>,
        /// the runtime's own time stamp, the same however often the event is reported
        pub wall_ns: Option<u64>,
    }
}

fn started(subject: &Subject, container: &ContainerStarted) -> Option<Mark> {
    let named = named(subject, container.name.as_ref(), container.image.as_ref());
    Some(Mark::new(&CONTAINERS_STARTED, format!("{named} started")))
}

fn exited(subject: &Subject, container: &ContainerExited) -> Option<Mark> {
    let named = named(subject, container.name.as_ref(), container.image.as_ref());
    let text = match container.exit_code {
        Some(code) => format!("{named} exited with code {code}"),
        None => format!("{named} exited, code unknown"),
    };
    Some(Mark::new(&CONTAINERS_EXITED, text))
}

fn named(subject: &Subject, name: Option<&String>, image: Option<&String>) -> String {
    let name = name.map_or(&*subject.name, String::as_str);
    match image {
        Some(image) => format!("{name} of {image}"),
        None => name.to_owned(),
    }
}

const RUNNING: Series = Series::line(
    "containers.running",
    Group::Containers,
    "running containers",
    "containers",
)
.holding(30 * SECOND);

facts! {
    /// a container started, for the first time or again
    event CONTAINER_STARTED = "container_started" of ContainerStarted,
        shown: marks!(ContainerStarted, started),
        metric: Metric::counter("sexton_container_starts_total").by(IMAGES, MAX_NAMES);
    /// a container exited: exit code, OOM and lifetime
    event CONTAINER_EXITED = "container_exited" of ContainerExited,
        shown: marks!(ContainerExited, exited),
        metric: Metric::counter("sexton_container_exits_total").by(IMAGES, MAX_NAMES);
    /// containers that run now, paused ones included, of all runtimes that answer
    gauge CONTAINER_RUNNING = "container_running" in Count,
        shown: Show::Series(RUNNING),
        metric: Metric::gauge("sexton_containers_running");
    /// containers of an image that run since less than a minute
    gauge CONTAINER_YOUNG = "container_young" in Count;
    /// starts of containers of an image since the poll before
    gauge CONTAINER_BIRTHS = "container_births" in Count;
}
