//! The tables of one batch of samples: places in code, and the stacks of them.

use std::collections::HashMap;
use std::sync::Arc;

use sexton_model::stack::{Frame, FrameId, NameId, StackBatch, StackId, StackNode, StackSample};
use sexton_symbols::live::Place;

/// A batch in the making. Everything is in its tables once.
#[derive(Debug, Default)]
pub(super) struct Batch {
    batch: StackBatch,
    names: HashMap<Arc<str>, NameId>,
    frames: HashMap<Place, FrameId>,
    stacks: HashMap<StackNode, StackId>,
}

impl Batch {
    pub(super) fn name(&mut self, name: &Arc<str>) -> NameId {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let id = NameId(self.names.len() as u32);
        self.batch.tables.names.push(Arc::clone(name));
        self.names.insert(Arc::clone(name), id);
        id
    }

    fn frame(&mut self, place: &Place) -> FrameId {
        if let Some(known) = self.frames.get(place) {
            return *known;
        }
        let mut name = |name: &Option<Arc<str>>| name.as_ref().map(|name| self.name(name));
        let frame = Frame {
            kind: place.kind,
            symbol: name(&place.symbol),
            module: name(&place.module),
            address: place.address,
            is_inlined: false,
        };
        let id = FrameId(self.frames.len() as u32);
        self.batch.tables.frames.push(frame);
        self.frames.insert(place.clone(), id);
        id
    }

    /// The stack of these places, outermost first.
    pub(super) fn stack<'a>(&mut self, places: impl Iterator<Item = &'a Place>) -> StackId {
        let mut caller = StackId::EMPTY;
        for place in places {
            let frame = self.frame(place);
            let node = StackNode { caller, frame };
            let next = StackId(self.stacks.len() as u32);
            caller = *self.stacks.entry(node).or_insert(next);
            if caller == next {
                self.batch.tables.stacks.push(node);
            }
        }
        caller
    }

    pub(super) fn push(&mut self, sample: StackSample) {
        self.batch.samples.push(sample);
    }

    /// The batch, in the order of time; `None` when it has no samples.
    pub(super) fn finish(mut self) -> Option<StackBatch> {
        self.batch
            .samples
            .sort_by_key(|sample| (sample.at, sample.cpu));
        (!self.batch.samples.is_empty()).then_some(self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::stack::CodeKind;

    #[test]
    fn equal_places_and_stacks_are_one() {
        let place = |name: &str, address| Place {
            kind: CodeKind::Kernel,
            symbol: Some(name.into()),
            module: Some("[kernel]".into()),
            address,
        };
        let (a, b, c) = (place("a", 1), place("b", 2), place("c", 3));
        let mut batch = Batch::default();
        let abc = batch.stack([&a, &b, &c].into_iter());
        let ab = batch.stack([&a, &b].into_iter());
        assert_eq!(batch.stack([&a, &b, &c].into_iter()), abc);
        assert_eq!(batch.stack([].into_iter()), StackId::EMPTY);
        let tables = batch.batch.tables;
        assert_eq!((tables.stacks.len(), tables.frames.len()), (3, 3));
        assert_eq!(tables.stacks[abc.0 as usize].caller, ab);
        assert_eq!(tables.names.len(), 4);
    }
}
