//! Where a recording was made, as far as it says.

use sexton_host::Host;
use sexton_host::machine::{host_name, kernel_release};

/// The node and the kernel of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// What the node was called.
    pub host: Option<String>,
    /// The release of its kernel.
    pub release: Option<String>,
}

impl Origin {
    /// Whether it is certain that it was made on another node.
    pub(crate) fn is_elsewhere(&self, node: &Host) -> bool {
        self.host.is_some() && self.host != host_name(node).ok()
    }

    /// Whether it was made on this node by a kernel of this release.
    pub(crate) fn is_this_kernel(&self, node: &Host) -> bool {
        let is_here = self.host.is_some() && !self.is_elsewhere(node);
        is_here && self.release.is_some() && self.release == kernel_release(node).ok()
    }

    /// Whether it was made by a kernel of another release.
    pub(crate) fn is_other_release(&self, node: &Host) -> bool {
        self.release.is_some() && self.release != kernel_release(node).ok()
    }
}
