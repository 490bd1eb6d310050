//! What the path of a cgroup shows, as the events of several sensors have it.

use sexton_model::origin::Origin;
use sexton_model::text::escape;

/// The origin of a cgroup, escaped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Lineage {
    /// Its kind.
    pub(crate) origin: Option<String>,
    /// The unit, where the path shows one.
    pub(crate) unit: Option<String>,
    /// The id of the container, where the path shows one.
    pub(crate) container: Option<String>,
}

impl Lineage {
    /// Of a cgroup at this path.
    pub(crate) fn of(path: &[u8]) -> Self {
        let origin = Origin::of(path);
        let container = origin.container();
        Self {
            origin: Some(origin.kind().to_string()),
            unit: origin.host_unit().map(|unit| escape(unit.as_bytes())),
            container: container.map(|container| escape(container.id.as_bytes())),
        }
    }
}
