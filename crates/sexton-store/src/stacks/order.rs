//! In which order a segment's frames and stacks are sealed: alike ones become neighbours,
//! which takes half the room of the order in which they were first seen.

use sexton_model::stack::{Frame, FrameId, StackId, StackNode, StackTables};

/// Frames and stacks in their new order, with their new numbers.
pub(super) struct Order {
    /// By where they are, so that alike names are neighbours.
    pub(super) frames: Vec<Frame>,
    /// Those with fewer callers first, then by caller, then by frame: callers grow slowly
    /// from row to row, and so do the frames of one caller. A caller is before what it calls.
    pub(super) stacks: Vec<StackNode>,
    /// The new number of each stack.
    places: Vec<StackId>,
}

impl Order {
    pub(super) fn of(tables: &StackTables) -> Self {
        let (frames, frame_places) = order_frames(&tables.frames);
        let mut order = Self {
            frames,
            stacks: Vec::with_capacity(tables.stacks.len()),
            places: vec![StackId::EMPTY; tables.stacks.len()],
        };
        for level in levels(&tables.stacks) {
            let mut level: Vec<(StackNode, usize)> = level
                .into_iter()
                .map(|i| {
                    let node = tables.stacks[i];
                    let frame = frame_places.get(node.frame.0 as usize).copied();
                    let node = StackNode {
                        caller: order.stack(node.caller),
                        frame: frame.unwrap_or(node.frame),
                    };
                    (node, i)
                })
                .collect();
            level.sort_unstable_by_key(|(node, i)| (node.caller, node.frame, *i));
            for (node, i) in level {
                order.places[i] = StackId(order.stacks.len() as u32);
                order.stacks.push(node);
            }
        }
        order
    }

    /// The new number of a stack.
    pub(super) fn stack(&self, stack: StackId) -> StackId {
        let place = self.places.get(stack.0 as usize);
        place.copied().unwrap_or(StackId::EMPTY)
    }
}

fn order_frames(frames: &[Frame]) -> (Vec<Frame>, Vec<FrameId>) {
    let mut order: Vec<usize> = (0..frames.len()).collect();
    order.sort_by_key(|i| {
        let frame = &frames[*i];
        (frame.kind, frame.module, frame.address, frame.symbol)
    });
    let mut places = vec![FrameId(0); order.len()];
    for (place, i) in (0..).zip(&order) {
        places[*i] = FrameId(place);
    }
    (order.iter().map(|i| frames[*i]).collect(), places)
}

/// The numbers of stacks, by how many callers they have.
fn levels(stacks: &[StackNode]) -> Vec<Vec<usize>> {
    let mut depths: Vec<usize> = Vec::with_capacity(stacks.len());
    let mut levels: Vec<Vec<usize>> = Vec::new();
    for (i, node) in stacks.iter().enumerate() {
        // The log has callers before what they call.
        let above = depths.get(node.caller.0 as usize);
        let depth = above.map_or(0, |depth| depth + 1);
        depths.push(depth);
        if levels.len() <= depth {
            levels.resize_with(depth + 1, Vec::new);
        }
        levels[depth].push(i);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::stack::CodeKind;

    fn frame(address: u64) -> Frame {
        Frame {
            kind: CodeKind::User,
            symbol: None,
            module: None,
            address,
            is_inlined: false,
        }
    }

    fn node(caller: u32, frame: u32) -> StackNode {
        StackNode {
            caller: StackId(caller),
            frame: FrameId(frame),
        }
    }

    fn addresses(tables: &StackTables, stack: StackId) -> Vec<u64> {
        let frames = tables.frames_of(stack);
        frames
            .map(|id| tables.frames[id.0 as usize].address)
            .collect()
    }

    #[test]
    fn every_stack_stays_what_it_was() {
        let none = u32::MAX;
        let before = StackTables {
            names: Vec::new(),
            frames: [30, 10, 20, 40].map(frame).to_vec(),
            stacks: vec![
                node(none, 3),
                node(0, 2),
                node(none, 0),
                node(1, 1),
                node(2, 1),
                node(0, 1),
            ],
        };
        let order = Order::of(&before);
        let after = StackTables {
            names: Vec::new(),
            frames: order.frames.clone(),
            stacks: order.stacks.clone(),
        };
        for i in 0..before.stacks.len() as u32 {
            let moved = order.stack(StackId(i));
            assert_eq!(addresses(&after, moved), addresses(&before, StackId(i)));
        }
        assert_eq!(order.stack(StackId::EMPTY), StackId::EMPTY);
        let callers: Vec<u32> = after.stacks.iter().map(|node| node.caller.0).collect();
        assert_eq!(callers, [none, none, 0, 1, 1, 4]);
    }
}
