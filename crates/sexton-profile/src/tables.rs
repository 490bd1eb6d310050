//! Builds the dictionaries of a recording: every name, frame and stack in them once.

use std::sync::Arc;

use ahash::AHashMap;
use sexton_model::stack::{Frame, FrameId, NameId, StackId, StackNode, StackTables};

use crate::idle;

/// More stacks, frames or names than this are not kept: a file that holds more is broken
/// or hostile. The stacks of a busy node's day are some hundred thousands.
///
/// Chosen: about 1 GiB of tables at most.
pub const MAX_ENTRIES: usize = 16_000_000;

/// Dictionaries that are being built.
#[derive(Debug, Default)]
pub struct TableBuilder {
    tables: StackTables,
    names: AHashMap<Arc<str>, NameId>,
    frames: AHashMap<Frame, FrameId>,
    stacks: AHashMap<u64, StackId>,
    frame_is_idle: Vec<bool>,
    stack_is_idle: Vec<bool>,
    is_full: bool,
}

impl TableBuilder {
    /// What was built so far.
    pub fn tables(&self) -> &StackTables {
        &self.tables
    }

    /// What was built.
    pub fn into_tables(self) -> StackTables {
        self.tables
    }

    /// Whether something had to be left out because there was too much.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The number of this name. When there are too many, that of the first one.
    pub fn name(&mut self, text: &str) -> NameId {
        if let Some(&id) = self.names.get(text) {
            return id;
        }
        if self.tables.names.len() >= MAX_ENTRIES {
            self.is_full = true;
            return NameId(0);
        }
        let id = NameId(number(self.tables.names.len()));
        let text: Arc<str> = text.into();
        self.tables.names.push(Arc::clone(&text));
        self.names.insert(text, id);
        id
    }

    /// The number of this frame. When there are too many, that of the first one.
    pub fn frame(&mut self, frame: Frame) -> FrameId {
        if let Some(&id) = self.frames.get(&frame) {
            return id;
        }
        if self.tables.frames.len() >= MAX_ENTRIES {
            self.is_full = true;
            return FrameId(0);
        }
        let id = FrameId(number(self.tables.frames.len()));
        let is_idle = idle::is_idle_frame(&self.tables, &frame);
        self.frame_is_idle.push(is_idle);
        self.tables.frames.push(frame);
        self.frames.insert(frame, id);
        id
    }

    /// The stack of `frame` called from `caller`. When there are too many, the caller's.
    pub fn push(&mut self, caller: StackId, frame: FrameId) -> StackId {
        let key = u64::from(caller.0) << 32 | u64::from(frame.0);
        if let Some(&id) = self.stacks.get(&key) {
            return id;
        }
        if self.tables.stacks.len() >= MAX_ENTRIES {
            self.is_full = true;
            return caller;
        }
        let id = StackId(number(self.tables.stacks.len()));
        let is_idle = self.frame_is_idle.get(frame.0 as usize) == Some(&true);
        self.stack_is_idle
            .push(is_idle || self.has_idle_frame(caller));
        self.tables.stacks.push(StackNode { caller, frame });
        self.stacks.insert(key, id);
        id
    }

    /// The stack of these frames, innermost first.
    pub fn stack(&mut self, innermost_first: &[FrameId]) -> StackId {
        let outermost_first = innermost_first.iter().rev();
        outermost_first.fold(StackId::EMPTY, |caller, &frame| self.push(caller, frame))
    }

    /// Whether a frame of this stack is one that an idle core waits in.
    pub fn has_idle_frame(&self, stack: StackId) -> bool {
        self.stack_is_idle.get(stack.0 as usize) == Some(&true)
    }
}

/// `MAX_ENTRIES` is far below what 32 bits hold.
fn number(len: usize) -> u32 {
    u32::try_from(len).expect("tables have at most MAX_ENTRIES entries")
}
