//! Samples of a window, chunk by chunk.

use std::collections::VecDeque;
use std::sync::Arc;

use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::stack::StackSample;

use super::log::{Block, StackLog};
use super::names::StackSegment;
use super::sealed::SealedStacks;
use super::{StackChunk, StackPiece};
use crate::SENSOR;
use crate::bundle::Bundle;
use crate::sealed::{Damage, Group};

/// Samples of a window, in chunks in the order they were recorded. See [`Bundle::stacks`].
#[derive(Debug)]
pub struct StackStream<'a> {
    bundle: &'a Bundle,
    from_ns: u64,
    to_ns: u64,
    segments: VecDeque<&'a StackSegment>,
    open: Option<(u64, SealedStacks, VecDeque<Group>)>,
    blocks: VecDeque<Block>,
    torn: Option<(Moment, Gap)>,
}

impl<'a> StackStream<'a> {
    pub(crate) fn new(bundle: &'a Bundle, (from_ns, to_ns): (u64, u64)) -> Self {
        let overlaps = |from: u64, to: u64| from <= to_ns && to >= from_ns;
        let segments = bundle.stack_segments.iter();
        let log = bundle.stack_log.as_ref();
        let blocks = log.map_or(&[][..], |log| &log.blocks);
        Self {
            bundle,
            from_ns,
            to_ns,
            segments: segments
                .filter(|segment| overlaps(segment.from_ns, segment.to_ns))
                .collect(),
            open: None,
            blocks: blocks
                .iter()
                .filter(|block| overlaps(block.from_ns, block.to_ns))
                .copied()
                .collect(),
            torn: torn(bundle, to_ns),
        }
    }

    fn open_next(&mut self) -> Option<StackPiece> {
        let segment = self.segments.pop_front()?;
        match SealedStacks::open(&self.bundle.dir, segment) {
            Ok(sealed) => {
                let wanted = |group: &&Group| {
                    group.checked.from_ns <= self.to_ns && group.checked.to_ns >= self.from_ns
                };
                let groups = sealed.groups().iter().filter(wanted).copied().collect();
                self.open = Some((segment.sequence, sealed, groups));
                None
            }
            Err(damage) => Some(missing((segment.from_ns, segment.to_ns), &damage)),
        }
    }

    fn next_group(&mut self) -> Option<StackPiece> {
        let (segment, sealed, groups) = self.open.as_mut()?;
        let Some(group) = groups.pop_front() else {
            self.open = None;
            return None;
        };
        let segment = *segment;
        Some(match sealed.samples(&group) {
            Ok(samples) => {
                let tables = Arc::clone(&sealed.tables);
                StackPiece::Chunk(StackChunk {
                    segment,
                    tables,
                    samples: self.within(samples),
                })
            }
            Err(damage) => missing((group.checked.from_ns, group.checked.to_ns), &damage),
        })
    }

    fn next_block(&mut self, log: &StackLog) -> Option<StackPiece> {
        let block = self.blocks.pop_front()?;
        Some(match log.samples(&block) {
            Ok(mut samples) => {
                samples.sort_by_key(|sample| (sample.at, sample.cpu));
                StackPiece::Chunk(StackChunk {
                    segment: log.sequence,
                    tables: Arc::clone(&log.tables),
                    samples: self.within(samples),
                })
            }
            Err(error) => missing((block.from_ns, block.to_ns), &error.into()),
        })
    }

    fn within(&self, mut samples: Vec<StackSample>) -> Vec<StackSample> {
        let window = self.from_ns..=self.to_ns;
        samples.retain(|sample| window.contains(&sample.at.as_ns()));
        samples
    }
}

impl Iterator for StackStream<'_> {
    type Item = StackPiece;

    fn next(&mut self) -> Option<StackPiece> {
        loop {
            if self.open.is_some() {
                if let Some(piece) = self.next_group() {
                    return Some(piece);
                }
            } else if !self.segments.is_empty() {
                if let Some(gap) = self.open_next() {
                    return Some(gap);
                }
            } else {
                break;
            }
        }
        if let Some(log) = &self.bundle.stack_log {
            let piece = self.next_block(log);
            if piece.is_some() {
                return piece;
            }
        }
        let (at, gap) = self.torn.take()?;
        Some(StackPiece::Gap(at, gap))
    }
}

/// What is said of an open segment that is not whole.
pub(super) fn torn(bundle: &Bundle, to_ns: u64) -> Option<(Moment, Gap)> {
    let end_ns = bundle.stacks_span().map_or(0, |span| span.end().as_ns());
    let trouble = match (&bundle.stack_log_trouble, &bundle.stack_log) {
        (Some(trouble), _) => trouble.clone(),
        (None, Some(log)) if log.torn_bytes > 0 => format!(
            "its last {} bytes are not whole: cut, or being written",
            log.torn_bytes
        ),
        _ => return None,
    };
    let text = format!("samples from {end_ns} ns after boot on cannot be read: {trouble}");
    (end_ns <= to_ns).then(|| gap(end_ns, Why::Lost(0), text))
}

fn missing(span_ns: (u64, u64), damage: &Damage) -> StackPiece {
    let (at, gap) = damaged(span_ns, damage);
    StackPiece::Gap(at, gap)
}

/// What is said of samples that cannot be read.
pub(super) fn damaged((from_ns, to_ns): (u64, u64), damage: &Damage) -> (Moment, Gap) {
    let why = match damage {
        Damage::Gone => Why::Vanished,
        Damage::Denied => Why::Denied,
        Damage::Malformed(_) => Why::Malformed,
    };
    let text = format!("samples from {from_ns} to {to_ns} ns after boot cannot be read: {damage}");
    gap(from_ns, why, text)
}

fn gap(at_ns: u64, why: Why, text: String) -> (Moment, Gap) {
    (Moment::from_ns(at_ns), Gap::new(SENSOR, why, text))
}
