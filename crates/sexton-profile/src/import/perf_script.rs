//! The text of `perf script`: an event line, then a line for each frame, innermost first,
//! then an empty line. Which fields an event line has differs; that it has a thread, a time
//! and an event is enough.

mod event;
mod frame;

use std::io::Read;

use ahash::AHashMap;
use memchr::memchr_iter;
use sexton_model::moment::Moment;
use sexton_model::stack::{CodeKind, CoreState, FrameId, NameId, StackId, StackSample};
use sexton_model::text::escape;

use super::bytes::Window;
use super::lines::{Lines, NoLine};
use super::{Format, Importer, Position, Report};
use crate::idle;
use crate::tables::TableBuilder;
use event::EventLine;

/// Its stack says whether a core is idle.
const IDLE_THREAD: &[u8] = idle::THREAD.as_bytes();

/// Distinct frame lines that are remembered; then it starts anew.
const MAX_KNOWN_LINES: usize = 1 << 20;

/// Distinct stacks whose text is remembered, and how long that may be.
const N_KNOWN_BLOCKS: usize = 1 << 12;
const MAX_KNOWN_BLOCK: usize = 16 << 10;

/// So many lines in a row that are no event: this is some other text.
const MAX_STRANGE_LINES: u64 = 1000;

/// Whether the first lines look like this.
pub(super) fn is_likely(start: &[u8]) -> bool {
    let lines = start.split(|&b| b == b'\n');
    let mut lines = lines.filter(|line| !line.trim_ascii().is_empty() && line[0] != b'#');
    lines.next().and_then(EventLine::parse).is_some()
}

/// Reads the text.
pub(super) fn read<R: Read>(importer: &mut Importer<'_>, window: Window<R>) -> Report {
    let mut report = Report::new(Format::PerfScript);
    let mut lines = Lines::new(window);
    let mut known = Known {
        drops_addresses: !importer.sink.wants_addresses(),
        ..Known::default()
    };
    let mut latest = 0;
    let mut n_strange = 0;
    let failed = loop {
        let line = match lines.next() {
            Ok(line) => line,
            Err(why) => break why,
        };
        if line.first() == Some(&b'#') || line.trim_ascii().is_empty() {
            continue;
        }
        let Some(event) = EventLine::parse(line) else {
            report.n_skipped += 1;
            n_strange += 1;
            if n_strange >= MAX_STRANGE_LINES {
                let why = format!("{n_strange} lines without an event among them");
                break NoLine::Failed(why);
            }
            continue;
        };
        n_strange = 0;
        let mut sample = known.sample(&mut importer.tables, &event);
        let single = event.stack_line.map(<[u8]>::to_vec);
        let is_wanted =
            importer.sink.wants_stacks() || memchr::memmem::find(event.comm, IDLE_THREAD).is_some();
        let ended = match single {
            Some(line) => {
                sample.stack = known.single(&mut importer.tables, &line, &mut report);
                Ok(())
            }
            None if !is_wanted => pass_over(&mut lines),
            None => known
                .stack(&mut importer.tables, &mut lines, &mut report)
                .map(|stack| sample.stack = stack),
        };
        finish(&mut sample, &importer.tables);
        report.n_unordered += u64::from(sample.at.as_ns() < latest);
        latest = latest.max(sample.at.as_ns());
        report.n_samples += 1;
        importer.sink.sample(&sample, importer.tables.tables());
        if let Err(why) = ended {
            break why;
        }
    };
    if let NoLine::Failed(why) = failed {
        report.stop(Position::Line(lines.number().max(1)), why);
    }
    report
}

/// Passes over a stack that nobody looks at.
fn pass_over<R: Read>(lines: &mut Lines<R>) -> Result<(), NoLine> {
    if let Some(block) = lines.rest_of_block() {
        let (len, n_lines) = (block.len(), memchr_iter(b'\n', block).count() as u64);
        lines.pass(len, n_lines);
        return Ok(());
    }
    loop {
        match lines.next() {
            Ok(line) if line.trim_ascii().is_empty() => return Ok(()),
            Ok(_) => {}
            Err(NoLine::End) => return Ok(()),
            Err(failed) => return Err(failed),
        }
    }
}

/// Says what the core did, now that the stack is known.
fn finish(sample: &mut StackSample, tables: &TableBuilder) {
    let innermost = tables.tables().frames_of(sample.stack).next();
    let kind = innermost
        .and_then(|frame| tables.tables().frame(frame))
        .map(|frame| frame.kind);
    let is_idle_thread = || tables.tables().name(sample.comm).contains(idle::THREAD);
    sample.state = if tables.has_idle_frame(sample.stack) && is_idle_thread() {
        CoreState::Idle
    } else {
        match kind {
            Some(CodeKind::Kernel) => CoreState::Kernel,
            Some(CodeKind::User) => CoreState::User,
            Some(CodeKind::Unknown) | None => CoreState::Unknown,
        }
    };
}

/// What was read before, so that it need not be read again: most lines of such a text
/// repeat.
#[derive(Default)]
struct Known {
    lines: AHashMap<Box<[u8]>, (u32, u32)>,
    frames: Vec<FrameId>,
    blocks: Vec<Option<Block>>,
    hasher: ahash::RandomState,
    names: AHashMap<Box<[u8]>, NameId>,
    chain: Vec<FrameId>,
    drops_addresses: bool,
}

struct Block {
    text: Box<[u8]>,
    stack: StackId,
    n_lines: u64,
    n_skipped: u64,
}

impl Known {
    fn sample(&mut self, tables: &mut TableBuilder, event: &EventLine<'_>) -> StackSample {
        StackSample {
            at: Moment::from_ns(event.time_ns),
            cpu: event.cpu.unwrap_or(crate::NO_CPU),
            pid: event.pid.unwrap_or(0),
            tid: event.tid,
            comm: self.name(tables, event.comm),
            cgroup: None,
            state: CoreState::Unknown,
            event: self.name(tables, event.event),
            weight: event.period.unwrap_or(1),
            stack: StackId::EMPTY,
        }
    }

    fn name(&mut self, tables: &mut TableBuilder, text: &[u8]) -> NameId {
        if let Some(&id) = self.names.get(text) {
            return id;
        }
        let id = tables.name(&escape(text));
        if self.names.len() < MAX_KNOWN_LINES {
            self.names.insert(text.into(), id);
        }
        id
    }

    /// The stack of a frame that is on the event's own line.
    fn single(&mut self, tables: &mut TableBuilder, line: &[u8], report: &mut Report) -> StackId {
        self.chain.clear();
        report.n_skipped += u64::from(!self.frame_line(tables, line));
        tables.stack(&self.chain)
    }

    /// The stack in the lines to come. An error also has the stack as far as it could be
    /// read: the text ended inside it.
    fn stack<R: Read>(
        &mut self,
        tables: &mut TableBuilder,
        lines: &mut Lines<R>,
        report: &mut Report,
    ) -> Result<StackId, NoLine> {
        if let Some(block) = lines.rest_of_block().filter(|b| b.len() <= MAX_KNOWN_BLOCK) {
            let len = block.len();
            let (stack, n_lines, n_skipped) = self.block(tables, block);
            lines.pass(len, n_lines);
            report.n_skipped += n_skipped;
            return Ok(stack);
        }
        self.chain.clear();
        loop {
            match lines.next() {
                Ok(line) if line.trim_ascii().is_empty() => break,
                Ok(line) => report.n_skipped += u64::from(!self.frame_line(tables, line)),
                Err(NoLine::End) => break,
                Err(failed) => return Err(failed),
            }
        }
        Ok(tables.stack(&self.chain))
    }

    /// The stack of a whole block of lines, how many they are, and how many are strange.
    fn block(&mut self, tables: &mut TableBuilder, text: &[u8]) -> (StackId, u64, u64) {
        let hash = self.hasher.hash_one(text);
        let slot = usize::try_from(hash % N_KNOWN_BLOCKS as u64).unwrap_or(0);
        if self.blocks.is_empty() {
            self.blocks.resize_with(N_KNOWN_BLOCKS, || None);
        }
        if let Some(Some(block)) = self.blocks.get(slot)
            && *block.text == *text
        {
            return (block.stack, block.n_lines, block.n_skipped);
        }
        self.chain.clear();
        let (mut n_lines, mut n_skipped, mut start) = (0, 0, 0);
        for end in memchr_iter(b'\n', text) {
            let line = &text[start..end];
            n_lines += 1;
            start = end + 1;
            n_skipped += u64::from(!self.frame_line(tables, line));
        }
        let stack = tables.stack(&self.chain);
        self.blocks[slot] = Some(Block {
            text: text.into(),
            stack,
            n_lines,
            n_skipped,
        });
        (stack, n_lines, n_skipped)
    }

    /// Adds the frames of a line to the chain; `false` when it is no such line.
    fn frame_line(&mut self, tables: &mut TableBuilder, line: &[u8]) -> bool {
        if let Some(&(start, len)) = self.lines.get(line) {
            let (start, len) = (start as usize, len as usize);
            self.chain
                .extend_from_slice(&self.frames[start..start + len]);
            return true;
        }
        let Some(mut parsed) = frame::FrameLine::parse(line) else {
            return false;
        };
        if self.drops_addresses {
            parsed = parsed.without_address();
        }
        if self.frames.len() >= MAX_KNOWN_LINES {
            self.lines.clear();
            self.frames.clear();
        }
        let start = self.frames.len();
        parsed.add(tables, &mut self.frames);
        self.chain.extend_from_slice(&self.frames[start..]);
        if let (Ok(at), Ok(len)) = (
            u32::try_from(start),
            u32::try_from(self.frames.len() - start),
        ) {
            self.lines.insert(line.into(), (at, len));
        }
        true
    }
}
