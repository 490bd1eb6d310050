//! Facts about the machine itself.

use super::metric::Metric;
use std::any::Any;
use std::collections::BTreeMap;

use crate::payload::{FieldSpec, Fields, Malformed, Payload, Structure, Value, ValueKind};

/// What the machine is, by name: each only where it is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostDescription {
    /// Names of one of the families of [`FAMILIES`], and values, escaped.
    pub entries: BTreeMap<String, String>,
}

const fn family(name: &'static str, help: &'static str) -> FieldSpec {
    FieldSpec {
        name,
        kind: ValueKind::Text,
        is_required: false,
        help,
    }
}

/// The names that a description may have; those that end in `*` begin a family.
static FAMILIES: &[FieldSpec] = &[
    family("kernel_release", "the release of the kernel"),
    family("kernel_version", "its build"),
    family("command_line", "its command line, secrets left out"),
    family("distribution_*", "from os-release"),
    family("hypervisor_*", "what it runs on"),
    family("machine_*", "vendor and product"),
    family("cpus_online", "cores that are online"),
    family("sysctl_*", "settings of the kernel"),
    family("boot_*", "switches of the command line"),
    family("image_*", "the image it was made from"),
];

impl Payload for HostDescription {
    fn fields(&self) -> Fields {
        let entries = self.entries.iter();
        entries
            .map(|(name, value)| (name.clone().into(), Value::Text(value.clone())))
            .collect()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Structure for HostDescription {
    const FIELDS: &'static [FieldSpec] = FAMILIES;

    fn read(fields: &Fields) -> Result<Self, Malformed> {
        let text = |(name, value): &(_, Value)| -> Option<(String, String)> {
            let name: &std::borrow::Cow<'static, str> = name;
            Some((name.to_string(), value.as_text()?.to_owned()))
        };
        Ok(Self {
            entries: fields.iter().filter_map(text).collect(),
        })
    }
}

facts! {
    /// what the machine is: kernel, distribution, hypervisor, settings, image
    event HOST_DESCRIPTION = "host_description" of HostDescription;
    /// CPUs that are online
    gauge HOST_CPUS = "host_cpus" in Count,
        metric: Metric::gauge("sexton_node_cpus");
    /// NUMA nodes that are online
    gauge HOST_NUMA_NODES = "host_numa_nodes" in Count,
        metric: Metric::gauge("sexton_node_numa_nodes");
    /// memory that the kernel has to give
    gauge HOST_MEMORY_BYTES = "host_memory_bytes" in Bytes,
        metric: Metric::gauge("sexton_node_memory_bytes");
}
