//! Makes something of every stack, callers first.
//!
//! A stack is a node that names its caller, and whoever copies stacks (into a tree, into the
//! tables of another format) needs what the caller became before the stack itself. What
//! became of a stack is remembered, so that each is visited once.

use sexton_model::stack::{FrameId, StackId, StackTables};

/// What stacks became. Their numbers are those of one set of tables.
#[derive(Debug)]
pub struct Walk<T> {
    /// By number; only what has the present generation is known.
    known: Vec<(u32, T)>,
    generation: u32,
    path: Vec<(StackId, FrameId)>,
}

impl<T> Default for Walk<T> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            generation: 1,
            path: Vec::new(),
        }
    }
}

impl<T: Copy> Walk<T> {
    /// Forgets what stacks became: they are to become something else, or the numbers are
    /// those of other tables.
    pub fn forget(&mut self) {
        match self.generation.checked_add(1) {
            Some(next) => self.generation = next,
            None => *self = Self::default(),
        }
    }

    /// What `stack` becomes: `call` says it from what the caller became and the frame that it
    /// called, `outermost` is what no stack at all is. Without recursion: stacks of hostile
    /// files may be deep, and may name callers that cannot be.
    pub fn walk(
        &mut self,
        tables: &StackTables,
        stack: StackId,
        outermost: T,
        mut call: impl FnMut(T, FrameId) -> T,
    ) -> T {
        let mut next = stack;
        let mut became = loop {
            if let Some(&(generation, known)) = self.known.get(next.0 as usize)
                && generation == self.generation
            {
                break known;
            }
            let Some(node) = tables.stacks.get(next.0 as usize) else {
                break outermost;
            };
            self.path.push((next, node.frame));
            next = if node.caller < next {
                node.caller
            } else {
                StackId::EMPTY
            };
        };
        if !self.path.is_empty() && self.known.len() < tables.stacks.len() {
            self.known.resize(tables.stacks.len(), (0, outermost));
        }
        while let Some((stack, frame)) = self.path.pop() {
            became = call(became, frame);
            self.known[stack.0 as usize] = (self.generation, became);
        }
        became
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::stack::StackNode;

    fn tables(nodes: &[(u32, u32)]) -> StackTables {
        let node = |&(caller, frame)| StackNode {
            caller: StackId(caller),
            frame: FrameId(frame),
        };
        StackTables {
            stacks: nodes.iter().map(node).collect(),
            ..StackTables::default()
        }
    }

    /// What each stack becomes when it becomes its frames as decimal digits, and how many
    /// frames were looked at.
    fn digits(walk: &mut Walk<u32>, tables: &StackTables, stacks: &[u32]) -> (Vec<u32>, usize) {
        let mut n = 0;
        let became = stacks.iter().map(|&stack| {
            walk.walk(tables, StackId(stack), 0, |caller, frame| {
                n += 1;
                caller * 10 + frame.0
            })
        });
        (became.collect(), n)
    }

    #[test]
    fn callers_come_first_and_each_once() {
        let tables = tables(&[(u32::MAX, 7), (0, 8), (1, 9), (0, 6)]);
        let mut walk = Walk::default();
        let stacks = [2, 3, 2, u32::MAX, 0];
        let expected = vec![789, 76, 789, 0, 7];
        assert_eq!(digits(&mut walk, &tables, &stacks), (expected.clone(), 4));
        assert_eq!(digits(&mut walk, &tables, &stacks), (expected.clone(), 0));
        walk.forget();
        assert_eq!(digits(&mut walk, &tables, &stacks), (expected, 4));
    }

    #[test]
    fn stacks_that_call_themselves_end() {
        let tables = tables(&[(1, 7), (0, 8), (2, 9), (u32::MAX - 1, 5)]);
        let mut walk = Walk::default();
        let (became, _) = digits(&mut walk, &tables, &[1, 2, 3]);
        assert_eq!(became, [78, 9, 5]);
    }
}
