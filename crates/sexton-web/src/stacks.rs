//! Hands the samples of a window to questions.

use std::sync::Arc;

use sexton_model::moment::Moment;
use sexton_model::stack::StackTables;
use sexton_profile::import::Sink;
use sexton_profile::merge::Merger;
use sexton_store::{Bundle, StackChunk, StackPiece};

/// Samples that could not be read, from a moment on, and why.
pub(crate) type Unread = (u64, String);

/// Samples under one set of numbers, however many windows are read.
#[derive(Default)]
pub(crate) struct Samples {
    merger: Merger,
    /// What could not be read.
    pub(crate) unread: Vec<Unread>,
}

/// Gaps that one question reports.
const MAX_UNREAD: usize = 100;

impl Samples {
    /// Hands the samples of a window, whose end is not in it, to a question.
    pub(crate) fn read(&mut self, bundle: &Arc<Bundle>, window: (u64, u64), sink: &mut dyn Sink) {
        self.feed(bundle, window, |chunk| chunk, sink);
    }

    /// The same, without samples of events that the heat map leaves out.
    pub(crate) fn read_shown(
        &mut self,
        bundle: &Arc<Bundle>,
        window: (u64, u64),
        sink: &mut dyn Sink,
    ) {
        self.feed(bundle, window, |chunk| of_shown_event(bundle, chunk), sink);
    }

    fn feed(
        &mut self,
        bundle: &Arc<Bundle>,
        (from_ns, to_ns): (u64, u64),
        shown: impl Fn(StackChunk) -> StackChunk,
        sink: &mut dyn Sink,
    ) {
        let window = Moment::from_ns(from_ns)..=Moment::from_ns(to_ns.saturating_sub(1));
        for piece in bundle.stacks(Some(window)) {
            match piece {
                StackPiece::Chunk(chunk) => {
                    let chunk = shown(chunk);
                    self.merger
                        .feed(chunk.segment, &chunk.samples, &chunk.tables, sink);
                }
                StackPiece::Gap(at, gap) if self.unread.len() < MAX_UNREAD => {
                    self.unread.push((at.as_ns(), gap.text));
                }
                StackPiece::Gap(..) => {}
            }
        }
    }

    /// What the samples refer to.
    pub(crate) fn tables(&self) -> &StackTables {
        self.merger.tables()
    }
}

/// Of an imported profile with several events the samples of its first: cycles and page faults
/// do not add up, and heat map, flame graph and functions have to be of the same samples.
pub(crate) fn of_shown_event(bundle: &Bundle, mut chunk: StackChunk) -> StackChunk {
    if let Some(first) = bundle.events().first() {
        let tables = Arc::clone(&chunk.tables);
        chunk
            .samples
            .retain(|sample| tables.name(sample.event) == first);
    }
    chunk
}
