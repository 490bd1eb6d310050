//! Small helpers for tests.

use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, NameId, StackId, StackSample};

/// A sample without a stack.
pub(crate) fn sample_at(at_ns: u64, cpu: u32) -> StackSample {
    StackSample {
        at: Moment::from_ns(at_ns),
        cpu,
        pid: 7,
        tid: 7,
        comm: NameId(0),
        cgroup: None,
        state: CoreState::Kernel,
        event: NameId(0),
        weight: 1,
        stack: StackId::EMPTY,
    }
}
