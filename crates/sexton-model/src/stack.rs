//! Samples of what ran: one row each, with the stacks, frames and names that rows share
//! kept once, in dictionaries. Nothing is merged: every sample keeps its core and moment.
//!
//! A stack is a node of a tree: its innermost frame, and the stack of that frame's caller.
//! Stacks that begin alike share their beginning, and a flame graph is this very tree with
//! counts on it.

use std::sync::Arc;

use crate::census::Device;
use crate::moment::Moment;

/// The module of an innermost frame that is no code: it says who woke a thread that waited.
pub const WAKER: &str = "[waker]";

/// A file of a node, as the kernel tells it from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    /// Its number in its file system.
    pub number: u64,
    /// The device of its file system.
    pub device: Device,
    /// Tells it from files that had the number before; `None` where it is not known.
    pub generation: Option<u32>,
}

/// A name in a recording's list of names: of a thread, a cgroup, a symbol, a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// A frame in a recording's list of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// A stack in a recording's list of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// No stack at all: the caller of an outermost frame, or a sample without one.
    pub const EMPTY: Self = Self(u32::MAX);
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackSample {
    /// When it was taken.
    pub at: Moment,
    /// On which CPU.
    pub cpu: u32,
    /// The process; 0 for idle and where it is not known.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The thread's name.
    pub comm: NameId,
    /// The cgroup's path, or its number where the path is not known; `None` when neither is.
    pub cgroup: Option<NameId>,
    /// What the core did.
    pub state: CoreState,
    /// What was sampled: `cpu-clock`, `cycles`, ...
    pub event: NameId,
    /// How much it stands for, in the event's unit; 1 where only samples are counted.
    pub weight: u64,
    /// Where it was.
    pub stack: StackId,
}

impl StackSample {
    /// A sample of which only is known what a core did when.
    pub fn without_owner(at: Moment, cpu: u32, state: CoreState) -> Self {
        Self {
            at,
            cpu,
            pid: 0,
            tid: 0,
            comm: NameId(0),
            cgroup: None,
            state,
            event: NameId(0),
            weight: 1,
            stack: StackId::EMPTY,
        }
    }
}

/// What a core did when it was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoreState {
    /// It ran a program.
    User,
    /// It ran the kernel.
    Kernel,
    /// It had nothing to run, as the scheduler knows.
    Idle,
    /// This says nothing of it: the thread waited, and was on no core.
    Waiting,
    /// The file does not say.
    Unknown,
}

impl CoreState {
    /// Whether something ran on the core, as far as is known.
    pub fn is_busy(self) -> bool {
        !matches!(self, Self::Idle | Self::Waiting)
    }
}

/// Where code comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeKind {
    /// The kernel, its modules, and BPF programs.
    Kernel,
    /// A program or a library.
    User,
    /// The file does not say.
    Unknown,
}

/// One place in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Whose code.
    pub kind: CodeKind,
    /// The function; `None` until, or unless, it is resolved.
    pub symbol: Option<NameId>,
    /// The file it is in, `[kernel]`, or a module of the kernel.
    pub module: Option<NameId>,
    /// The offset in the file for user code, the address for the kernel's.
    pub address: u64,
    /// Whether the compiler put this function into its caller.
    pub is_inlined: bool,
}

/// One stack: a frame, called from another stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackNode {
    /// The caller; always before this one in the list, or [`StackId::EMPTY`].
    pub caller: StackId,
    /// The innermost frame.
    pub frame: FrameId,
}

/// What the rows of samples refer to. Everything is in here once.
#[derive(Debug, Clone, Default)]
pub struct StackTables {
    /// Names by their number.
    pub names: Vec<Arc<str>>,
    /// Frames by their number.
    pub frames: Vec<Frame>,
    /// Stacks by their number.
    pub stacks: Vec<StackNode>,
}

/// Samples that belong together, and what they refer to.
#[derive(Debug, Clone, Default)]
pub struct StackBatch {
    /// The samples.
    pub samples: Vec<StackSample>,
    /// What they refer to.
    pub tables: StackTables,
}

impl StackTables {
    /// The text of a name; empty when there is none of that number.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("", |name| name)
    }

    /// The frame of that number.
    pub fn frame(&self, id: FrameId) -> Option<&Frame> {
        self.frames.get(id.0 as usize)
    }

    /// The frames of a stack, innermost first.
    pub fn frames_of(&self, stack: StackId) -> impl Iterator<Item = FrameId> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let node = self.stacks.get(next.0 as usize)?;
            // A caller comes before what it calls. Outside data may say otherwise; then the
            // stack ends here instead of going round for ever.
            next = if node.caller < next {
                node.caller
            } else {
                StackId::EMPTY
            };
            Some(node.frame)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(caller: u32, frame: u32) -> StackNode {
        StackNode {
            caller: StackId(caller),
            frame: FrameId(frame),
        }
    }

    fn check(stacks: Vec<StackNode>, stack: u32, expected: &[u32]) {
        let tables = StackTables {
            stacks,
            ..StackTables::default()
        };
        let frames: Vec<u32> = tables.frames_of(StackId(stack)).map(|id| id.0).collect();
        assert_eq!(frames, expected);
    }

    #[test]
    fn a_stack_is_told_innermost_first() {
        check(
            vec![node(u32::MAX, 7), node(0, 8), node(1, 9)],
            2,
            &[9, 8, 7],
        );
        check(vec![node(u32::MAX, 7)], u32::MAX, &[]);
    }

    #[test]
    fn a_stack_that_calls_itself_ends() {
        check(vec![node(0, 7)], 0, &[7]);
        check(vec![node(1, 7), node(0, 8)], 1, &[8, 7]);
    }
}
