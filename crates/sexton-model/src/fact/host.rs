//! Facts about the machine itself.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &HOST_DESCRIPTION,
    &HOST_CPUS,
    &HOST_NUMA_NODES,
    &HOST_MEMORY_BYTES,
];

/// What the machine is. Details, each only where it is known: `kernel_release`,
/// `kernel_version`, `command_line` (secrets left out), `distribution_*`, `hypervisor_*`
/// and `machine_*` (what it runs on), `cpus_online`, `sysctl_*`, `boot_*` (switches of the
/// command line) and `image_*` (what image it was made from).
pub static HOST_DESCRIPTION: Fact = Fact {
    name: "host_description",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "what the machine is: kernel, distribution, hypervisor, settings, image",
};

/// CPUs that are online.
pub static HOST_CPUS: Fact = Fact {
    name: "host_cpus",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "CPUs that are online",
};

/// NUMA nodes that are online.
pub static HOST_NUMA_NODES: Fact = Fact {
    name: "host_numa_nodes",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "NUMA nodes that are online",
};

/// Memory that the kernel has to give.
pub static HOST_MEMORY_BYTES: Fact = Fact {
    name: "host_memory_bytes",
    unit: Unit::Bytes,
    kind: FactKind::Gauge,
    help: "memory that the kernel has to give",
};
