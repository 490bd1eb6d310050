//! Which node it is, as its recording says.

use std::collections::BTreeMap;

use crate::fact::host::{HOST_CPUS, HOST_DESCRIPTION, HOST_MEMORY_BYTES};
use crate::record::Record;
use crate::timeline::Timeline;

/// A node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    /// Its host name, escaped.
    pub name: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The boot that was watched.
    pub boot_id: String,
    /// CPUs that were online at the end.
    pub cpus: Option<f64>,
    /// Memory that the kernel has to give.
    pub memory_bytes: Option<f64>,
    /// More about it: the details of the last `host_description`.
    pub description: BTreeMap<String, String>,
}

impl Node {
    /// The same, with what a recording says of it.
    #[must_use]
    pub fn described_by(mut self, timeline: &dyn Timeline) -> Self {
        let last = |fact| timeline.of(fact).last().and_then(Record::value);
        self.cpus = last(&HOST_CPUS);
        self.memory_bytes = last(&HOST_MEMORY_BYTES);
        let described = timeline.of(&HOST_DESCRIPTION).last();
        if let Some(says) = described.and_then(|record| record.says(&HOST_DESCRIPTION)) {
            self.description = says.entries.clone();
        }
        self
    }
}
