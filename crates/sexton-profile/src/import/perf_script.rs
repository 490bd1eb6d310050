//! The text of `perf script`: an event line, then a line for each frame, innermost first,
//! then an empty line. Which fields an event line has differs; that it has a thread and an
//! event is enough.

mod cutter;
mod event;
mod frame;
mod threads;

use std::io::Read;
use std::thread;

use ahash::AHashMap;
use memchr::memchr_iter;
use sexton_model::moment::Moment;
use sexton_model::stack::{CodeKind, CoreState, FrameId, NameId, StackId, StackSample};
use sexton_model::text::escape;

use super::bytes::Window;
use super::lines::{Lines, NoLine};
use super::{Importer, Report, Sink};
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

/// Lines at the start of a text that are looked at to tell what it is.
const SNIFFED_LINES: usize = 64;

/// Whether the first lines look like this. One that does is enough: a damaged line may come
/// before it.
pub(super) fn is_likely(start: &[u8]) -> bool {
    said_lines(start).any(|line| EventLine::parse(line).is_some())
}

/// Whether frames are there as in such a text, whatever lies between them.
pub(super) fn has_frames(start: &[u8]) -> bool {
    let is_frame =
        |line: &[u8]| line[0].is_ascii_whitespace() && frame::FrameLine::parse(line).is_some();
    said_lines(start).any(is_frame)
}

fn said_lines(start: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = start.split(|&b| b == b'\n');
    let lines = lines.filter(|line| !line.trim_ascii().is_empty() && line[0] != b'#');
    lines.take(SNIFFED_LINES)
}

/// Reads the text, on all cores where it is long.
pub(super) fn read<R: Read + Send>(importer: &mut Importer<'_>, window: Window<R>) -> Report {
    let n_cores = thread::available_parallelism().map_or(1, usize::from);
    let n_workers = if n_cores > 1 {
        n_cores.min(threads::MAX_WORKERS)
    } else {
        0
    };
    threads::read(
        importer,
        window.into_reader(),
        n_workers,
        cutter::PIECE_BYTES,
    )
}

/// Makes samples of text.
struct Parser {
    known: Known,
    wants_stacks: bool,
    /// Lines in a row that are no event.
    n_strange: u64,
    /// The same before the first event.
    n_strange_first: u64,
    n_skipped: u64,
    /// Samples without a time.
    n_untimed: u64,
}

impl Parser {
    fn new(sink: &dyn Sink) -> Self {
        Self {
            known: Known {
                drops_addresses: !sink.wants_addresses(),
                ..Known::default()
            },
            wants_stacks: sink.wants_stacks(),
            n_strange: 0,
            n_strange_first: 0,
            n_skipped: 0,
            n_untimed: 0,
        }
    }

    /// Forgets what it counted: text begins that has nothing to do with the one before.
    fn begin(&mut self) {
        (self.n_strange, self.n_strange_first) = (0, 0);
        (self.n_skipped, self.n_untimed) = (0, 0);
    }

    /// Hands over the samples of all lines, and says why there are no more.
    fn parse<R: Read>(
        &mut self,
        lines: &mut Lines<R>,
        tables: &mut TableBuilder,
        take: &mut dyn FnMut(&StackSample, &TableBuilder),
    ) -> NoLine {
        let mut has_event = false;
        loop {
            let line = match lines.next() {
                Ok(line) => line,
                Err(why) => return why,
            };
            if line.first() == Some(&b'#') || line.trim_ascii().is_empty() {
                continue;
            }
            let event = EventLine::parse(line);
            let may_be_record = |event: &EventLine<'_>| event.event.starts_with(b"PERF_RECORD_");
            if event.as_ref().is_none_or(may_be_record) && is_no_sample(line) {
                continue;
            }
            let Some(event) = event else {
                self.n_skipped += 1;
                self.n_strange += 1;
                self.n_strange_first += u64::from(!has_event);
                if self.n_strange >= MAX_STRANGE_LINES {
                    let why = format!("{} lines without an event among them", self.n_strange);
                    return NoLine::Failed(why);
                }
                continue;
            };
            self.n_strange = 0;
            has_event = true;
            self.n_untimed += u64::from(event.time_ns.is_none());
            let mut sample = self.known.sample(tables, &event);
            let single = event.stack_line.map(<[u8]>::to_vec);
            let is_wanted =
                self.wants_stacks || memchr::memmem::find(event.comm, IDLE_THREAD).is_some();
            let ended = match single {
                Some(line) => {
                    sample.stack = self.known.single(tables, &line, &mut self.n_skipped);
                    Ok(())
                }
                None if !is_wanted => pass_over(lines),
                None => self
                    .known
                    .stack(tables, lines, &mut self.n_skipped)
                    .map(|stack| sample.stack = stack),
            };
            finish(&mut sample, tables);
            take(&sample, tables);
            if let Err(why) = ended {
                return why;
            }
        }
    }
}

/// Whether a line tells of something else than a sample, as with `perf script
/// --show-mmap-events`. One that tells of a loss is not passed over in silence.
fn is_no_sample(line: &[u8]) -> bool {
    const RECORD: &[u8] = b": PERF_RECORD_";
    let found = memchr::memmem::find(line, RECORD);
    found.is_some_and(|at| !line[at + RECORD.len()..].starts_with(b"LOST"))
}

/// Passes over a stack that nobody looks at.
fn pass_over<R: Read>(lines: &mut Lines<R>) -> Result<(), NoLine> {
    if let Some((block, n_lines)) = lines.rest_of_block() {
        let len = block.len();
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
    n_skipped: u64,
}

impl Known {
    fn sample(&mut self, tables: &mut TableBuilder, event: &EventLine<'_>) -> StackSample {
        StackSample {
            at: Moment::from_ns(event.time_ns.unwrap_or(0)),
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
    fn single(&mut self, tables: &mut TableBuilder, line: &[u8], n_skipped: &mut u64) -> StackId {
        self.chain.clear();
        *n_skipped += u64::from(!self.frame_line(tables, line));
        tables.stack(&self.chain)
    }

    /// The stack in the lines to come. An error also has the stack as far as it could be
    /// read: the text ended inside it.
    fn stack<R: Read>(
        &mut self,
        tables: &mut TableBuilder,
        lines: &mut Lines<R>,
        n_skipped: &mut u64,
    ) -> Result<StackId, NoLine> {
        let block = lines.rest_of_block();
        if let Some((block, n_lines)) = block.filter(|(b, _)| b.len() <= MAX_KNOWN_BLOCK) {
            let len = block.len();
            let (stack, n_strange) = self.block(tables, block);
            lines.pass(len, n_lines);
            *n_skipped += n_strange;
            return Ok(stack);
        }
        self.chain.clear();
        loop {
            match lines.next() {
                Ok(line) if line.trim_ascii().is_empty() => break,
                Ok(line) => *n_skipped += u64::from(!self.frame_line(tables, line)),
                Err(NoLine::End) => break,
                Err(failed) => return Err(failed),
            }
        }
        Ok(tables.stack(&self.chain))
    }

    /// The stack of a whole block of lines, and how many of them are strange.
    fn block(&mut self, tables: &mut TableBuilder, text: &[u8]) -> (StackId, u64) {
        let hash = self.hasher.hash_one(text);
        let slot = usize::try_from(hash % N_KNOWN_BLOCKS as u64).unwrap_or(0);
        if self.blocks.is_empty() {
            self.blocks.resize_with(N_KNOWN_BLOCKS, || None);
        }
        if let Some(Some(block)) = self.blocks.get(slot)
            && *block.text == *text
        {
            return (block.stack, block.n_skipped);
        }
        self.chain.clear();
        let (mut n_skipped, mut start) = (0, 0);
        for end in memchr_iter(b'\n', text) {
            let line = &text[start..end];
            start = end + 1;
            n_skipped += u64::from(!self.frame_line(tables, line));
        }
        let stack = tables.stack(&self.chain);
        self.blocks[slot] = Some(Block {
            text: text.into(),
            stack,
            n_skipped,
        });
        (stack, n_skipped)
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
            return frame::is_source(line);
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
