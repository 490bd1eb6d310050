//! Facts about containers, as their runtime tells them. The subject of an event is the
//! container, that of a sample its image or the node.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &CONTAINER_STARTED,
    &CONTAINER_EXITED,
    &CONTAINER_RUNNING,
    &CONTAINER_YOUNG,
    &CONTAINER_BIRTHS,
];

/// A container started. Details: `id`, `name`, `image`, `runtime`; `namespace` of
/// containerd, `pod`, `pod_namespace`, `pod_uid`, `compose_project` where it has them, and
/// `attempt`, which is how often a kubelet had made it, or Docker started it, before;
/// `before_open` is `yes` for what happened before the sensor was opened; `wall_ns` is the
/// runtime's own stamp, the same however often the event is told.
pub static CONTAINER_STARTED: Fact = Fact {
    name: "container_started",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a container started, for the first time or again",
};

/// A container's first process ended. Details as of [`CONTAINER_STARTED`], and after the
/// `image`: `exit_code`; `oom`, which is `yes`, `no` or `unknown`; `lifetime_ms` since
/// this start. What is not known is not there.
pub static CONTAINER_EXITED: Fact = Fact {
    name: "container_exited",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a container exited; its details have exit code, OOM and lifetime",
};

/// How many run, of all runtimes that answer.
pub static CONTAINER_RUNNING: Fact = Fact {
    name: "container_running",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "containers that run now, paused ones included, of all runtimes that answer",
};

/// How many of an image run since less than a minute.
pub static CONTAINER_YOUNG: Fact = Fact {
    name: "container_young",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "containers of an image that run since less than a minute",
};

/// How many of an image started in the interval.
pub static CONTAINER_BIRTHS: Fact = Fact {
    name: "container_births",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "starts of containers of an image since the poll before",
};
