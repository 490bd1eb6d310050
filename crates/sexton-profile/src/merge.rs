//! Samples whose numbers belong to different tables, under one set of tables.
//!
//! A bundle has tables for each of its segments. Questions remember what they found out by
//! number, so all samples of one question need numbers from one place.

use ahash::AHashMap;
use sexton_model::stack::{Frame, FrameId, NameId, StackId, StackSample, StackTables};

use crate::import::Sink;
use crate::tables::TableBuilder;
use crate::walk::Walk;

/// Renumbers.
#[derive(Debug, Default)]
pub struct Merger {
    tables: TableBuilder,
    segment: Option<u64>,
    names: AHashMap<NameId, NameId>,
    stacks: Walk<StackId>,
}

impl Merger {
    /// What the samples refer to under their new numbers.
    pub fn tables(&self) -> &StackTables {
        self.tables.tables()
    }

    /// The same, once all samples were handed on.
    pub fn into_tables(self) -> StackTables {
        self.tables.into_tables()
    }

    /// Hands samples on. Tables of the same `segment` have the same numbers, or more.
    pub fn feed(
        &mut self,
        segment: u64,
        samples: &[StackSample],
        tables: &StackTables,
        sink: &mut dyn Sink,
    ) {
        self.begin(segment);
        for sample in samples {
            let renumbered = StackSample {
                comm: self.name(sample.comm, tables),
                cgroup: sample.cgroup.map(|name| self.name(name, tables)),
                event: self.name(sample.event, tables),
                stack: self.stack(sample.stack, tables),
                ..*sample
            };
            sink.sample(&renumbered, self.tables.tables());
        }
    }

    /// The new numbers of names.
    pub fn names(&mut self, segment: u64, names: &[NameId], tables: &StackTables) -> Vec<NameId> {
        self.begin(segment);
        let names = names.iter().map(|name| self.name(*name, tables));
        names.collect()
    }

    fn begin(&mut self, segment: u64) {
        if self.segment != Some(segment) {
            self.segment = Some(segment);
            self.names.clear();
            self.stacks.forget();
        }
    }

    fn name(&mut self, name: NameId, tables: &StackTables) -> NameId {
        let ours = &mut self.tables;
        *self
            .names
            .entry(name)
            .or_insert_with(|| ours.name(tables.name(name)))
    }

    fn stack(&mut self, stack: StackId, tables: &StackTables) -> StackId {
        let mut stacks = std::mem::take(&mut self.stacks);
        let ours = stacks.walk(tables, stack, StackId::EMPTY, |caller, frame| {
            let frame = self.frame(frame, tables);
            frame.map_or(caller, |frame| self.tables.push(caller, frame))
        });
        self.stacks = stacks;
        ours
    }

    fn frame(&mut self, frame: FrameId, tables: &StackTables) -> Option<FrameId> {
        let frame = *tables.frame(frame)?;
        let renumbered = Frame {
            symbol: frame.symbol.map(|name| self.name(name, tables)),
            module: frame.module.map(|name| self.name(name, tables)),
            ..frame
        };
        Some(self.tables.frame(renumbered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flame::{StackCounts, Tree};
    use crate::names::Suffixes;
    use crate::testing::sample_at;
    use sexton_model::stack::CodeKind;

    fn tables_of(functions: &[&str]) -> (StackTables, StackId) {
        let mut tables = TableBuilder::default();
        let comm = tables.name("program");
        assert_eq!(comm, NameId(0));
        let stack = functions.iter().fold(StackId::EMPTY, |caller, function| {
            let symbol = Some(tables.name(function));
            let frame = Frame {
                kind: CodeKind::User,
                symbol,
                module: None,
                address: 0,
                is_inlined: false,
            };
            let frame = tables.frame(frame);
            tables.push(caller, frame)
        });
        (tables.into_tables(), stack)
    }

    #[test]
    fn the_same_numbers_of_two_segments_are_two_things() {
        let (a, stack_a) = tables_of(&["main", "work"]);
        let (b, stack_b) = tables_of(&["main", "rest"]);
        assert_eq!(stack_a, stack_b);
        let mut merger = Merger::default();
        let mut counts = StackCounts::new(crate::filter::Filter::default());
        let sample = StackSample {
            stack: stack_a,
            ..sample_at(1, 0)
        };
        merger.feed(1, &[sample, sample], &a, &mut counts);
        merger.feed(2, &[sample], &b, &mut counts);
        let tree = Tree::of(&counts, merger.tables(), Suffixes::default());
        let mut folded = Vec::new();
        crate::export::folded::write(&mut folded, &tree, false).expect("memory takes it");
        let folded = String::from_utf8(folded).expect("text");
        assert_eq!(folded, "program;main;rest 1\nprogram;main;work 2\n");
    }
}
