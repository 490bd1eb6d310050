//! The dictionaries of the open segment: everything is in them once.

use std::sync::Arc;

use sexton_model::stack::{Frame, FrameId, NameId, StackId, StackNode, StackSample, StackTables};

use super::item::{Item, MAX_NAME_BYTES};

/// Each sample asks a few times. Names come from the node: the hash has a key of its own.
type HashMap<K, V> = std::collections::HashMap<K, V, ahash::RandomState>;

/// A segment is sealed before its dictionaries hold more: they are in memory.
const MAX_STACKS: usize = 1 << 17;
const MAX_FRAMES: usize = 1 << 16;
const MAX_NAMES: usize = 1 << 16;
const MAX_ALL_NAMES_BYTES: usize = 2 << 20;
/// One sample brings at most this many of each. A deeper stack is cut at its outer end.
const MAX_DEPTH: usize = 1 << 10;

/// Names, frames and stacks by what they are.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    names: HashMap<Arc<str>, NameId>,
    frames: HashMap<Frame, FrameId>,
    stacks: HashMap<StackNode, StackId>,
    names_bytes: usize,
}

/// What the numbers of a caller's tables are in ours; for one call.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    names: HashMap<NameId, NameId>,
    frames: HashMap<FrameId, FrameId>,
    stacks: HashMap<StackId, StackId>,
}

impl Interner {
    /// Knows what these tables hold.
    pub(crate) fn knowing(tables: &StackTables) -> Self {
        let mut interner = Self::default();
        for (name, id) in tables.names.iter().zip(0..) {
            interner.names_bytes += name.len();
            interner.names.insert(Arc::clone(name), NameId(id));
        }
        let frames = tables.frames.iter().zip(0..);
        interner.frames = frames.map(|(frame, id)| (*frame, FrameId(id))).collect();
        let stacks = tables.stacks.iter().zip(0..);
        interner.stacks = stacks.map(|(node, id)| (*node, StackId(id))).collect();
        interner
    }

    /// Whether there is no room for whatever another sample may bring.
    pub(crate) fn is_full(&self) -> bool {
        self.stacks.len() + MAX_DEPTH > MAX_STACKS
            || self.frames.len() + MAX_DEPTH > MAX_FRAMES
            || self.names.len() + 2 * MAX_DEPTH > MAX_NAMES
            || self.names_bytes > MAX_ALL_NAMES_BYTES
    }

    /// The sample in our numbers. What is new is told first.
    pub(crate) fn sample(
        &mut self,
        (sample, tables): (&StackSample, &StackTables),
        memo: &mut Memo,
        tell: &mut impl FnMut(Item),
    ) -> StackSample {
        let mut name = |id| self.name(id, tables, memo, tell);
        let comm = name(sample.comm);
        let cgroup = sample.cgroup.map(&mut name);
        let event = name(sample.event);
        StackSample {
            comm,
            cgroup,
            event,
            stack: self.stack(sample.stack, tables, memo, tell),
            ..*sample
        }
    }

    fn name(
        &mut self,
        id: NameId,
        tables: &StackTables,
        memo: &mut Memo,
        tell: &mut impl FnMut(Item),
    ) -> NameId {
        if let Some(known) = memo.names.get(&id) {
            return *known;
        }
        let text = cut(tables.name(id));
        let ours = match self.names.get(text) {
            Some(known) => *known,
            None => {
                let ours = NameId(self.names.len() as u32);
                let text: Arc<str> = text.into();
                self.names_bytes += text.len();
                tell(Item::Name(Arc::clone(&text)));
                self.names.insert(text, ours);
                ours
            }
        };
        memo.names.insert(id, ours);
        ours
    }

    fn frame(
        &mut self,
        id: FrameId,
        tables: &StackTables,
        memo: &mut Memo,
        tell: &mut impl FnMut(Item),
    ) -> Option<FrameId> {
        if let Some(known) = memo.frames.get(&id) {
            return Some(*known);
        }
        let frame = tables.frame(id)?;
        let mut name = |id: Option<NameId>| Some(self.name(id?, tables, memo, tell));
        let frame = Frame {
            symbol: name(frame.symbol),
            module: name(frame.module),
            ..*frame
        };
        let next = FrameId(self.frames.len() as u32);
        let ours = *self.frames.entry(frame).or_insert(next);
        if ours == next {
            tell(Item::Frame(frame));
        }
        memo.frames.insert(id, ours);
        Some(ours)
    }

    fn stack(
        &mut self,
        id: StackId,
        tables: &StackTables,
        memo: &mut Memo,
        tell: &mut impl FnMut(Item),
    ) -> StackId {
        if let Some(known) = memo.stacks.get(&id) {
            return *known;
        }
        let frames: Vec<FrameId> = tables.frames_of(id).take(MAX_DEPTH).collect();
        let mut caller = StackId::EMPTY;
        for frame in frames.into_iter().rev() {
            let Some(frame) = self.frame(frame, tables, memo, tell) else {
                continue;
            };
            let node = StackNode { caller, frame };
            let next = StackId(self.stacks.len() as u32);
            caller = *self.stacks.entry(node).or_insert(next);
            if caller == next {
                tell(Item::Stack(node));
            }
        }
        memo.stacks.insert(id, caller);
        caller
    }
}

/// As much of a name as is kept.
fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_NAME_BYTES)]
}
