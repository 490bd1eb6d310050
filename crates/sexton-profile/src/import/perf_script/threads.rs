//! Reads text on several threads: it is cut between samples, each thread makes samples of
//! some of the pieces, and they are put together in the order of the text. Names, frames and
//! stacks get the numbers that they would have without threads.
//!
//! As soon as something is strange where a piece begins or ends, the rest is read on one
//! thread, so that what is said of it does not depend on where the text was cut.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use sexton_model::stack::{Frame, FrameId, NameId, StackId, StackNode, StackSample};

use super::cutter::{Cut, Cutter};
use super::{Lines, NoLine, Parser, TableBuilder};
use crate::import::bytes::Window;
use crate::import::{Format, Importer, Position, Report};

/// Each thread has tables of its own, so that many of them take much memory.
pub(super) const MAX_WORKERS: usize = 8;

/// What was made of a piece.
struct Made {
    worker: usize,
    text: Vec<u8>,
    /// `None` when the piece must be read together with its neighbours.
    parsed: thread::Result<Option<Parsed>>,
}

/// Samples, in the numbers of the thread that made them, and what is new in its tables.
struct Parsed {
    samples: Vec<StackSample>,
    names: Vec<Arc<str>>,
    frames: Vec<Frame>,
    stacks: Vec<StackNode>,
    n_skipped: u64,
    n_untimed: u64,
    n_lines: u64,
}

/// What the numbers of a thread are in the whole.
#[derive(Default)]
struct Numbers {
    names: Vec<NameId>,
    frames: Vec<FrameId>,
    stacks: Vec<StackId>,
}

/// The text as it is put together.
struct Whole<'a, 'b> {
    importer: &'a mut Importer<'b>,
    report: Report,
    latest_ns: u64,
    n_lines: u64,
    numbers: Vec<Numbers>,
}

/// Reads the text with so many threads beside this one, in pieces of about this size.
pub(super) fn read<R: Read>(
    importer: &mut Importer<'_>,
    reader: R,
    n_workers: usize,
    piece_bytes: usize,
) -> Report {
    let mut whole = Whole {
        importer,
        report: Report::new(Format::PerfScript),
        latest_ns: 0,
        n_lines: 0,
        numbers: Vec::new(),
    };
    let mut cutter = Cutter::new(reader, piece_bytes);
    let left = if n_workers > 0 {
        whole.read_beside(&mut cutter, n_workers)
    } else {
        Vec::new()
    };
    whole.read_rest(Cursor::new(left).chain(cutter));
    whole.report
}

impl Whole<'_, '_> {
    /// Reads all that can be cut into pieces, and returns the text that is left.
    fn read_beside<R: Read>(&mut self, cutter: &mut Cutter<R>, n_workers: usize) -> Vec<u8> {
        let first = match cutter.next(Vec::new()) {
            Cut::Piece(first) => first,
            // Not worth a thread.
            Cut::Rest(text) => return text,
        };
        self.numbers.resize_with(n_workers, Numbers::default);
        let (jobs, pieces) = channel();
        let pieces = Mutex::new(pieces);
        thread::scope(|scope| {
            let (give, made) = channel();
            let mut n_started = 0;
            for worker in 0..n_workers {
                let (parser, pieces) = (Parser::new(&*self.importer.sink), &pieces);
                let give = give.clone();
                let named = thread::Builder::new().name("parse".into());
                let spawned =
                    named.spawn_scoped(scope, move || work(worker, parser, pieces, &give));
                n_started += usize::from(spawned.is_ok());
            }
            let mut desk = Desk {
                jobs,
                made,
                n_given: 0,
                n_done: 0,
                early: BTreeMap::new(),
            };
            if n_started == 0 {
                return [first, cutter.rest()].concat();
            }
            desk.give(first);
            self.put_together(cutter, &mut desk, n_started + 2)
        })
    }

    fn put_together<R: Read>(
        &mut self,
        cutter: &mut Cutter<R>,
        desk: &mut Desk,
        max_open: usize,
    ) -> Vec<u8> {
        let (mut spare, mut last) = (Vec::new(), None);
        loop {
            while last.is_none() && desk.n_open() < max_open {
                match cutter.next(spare.pop().unwrap_or_default()) {
                    Cut::Piece(text) => desk.give(text),
                    Cut::Rest(text) => last = Some(text),
                }
            }
            let Some(made) = desk.next() else {
                return last.unwrap_or_default();
            };
            match made.parsed {
                Ok(Some(parsed)) => self.add(made.worker, parsed),
                Ok(None) => {
                    let mut left = made.text;
                    while let Some(made) = desk.next() {
                        left.extend_from_slice(&made.text);
                    }
                    left.extend(last.unwrap_or_else(|| cutter.rest()));
                    return left;
                }
                Err(panic) => resume_unwind(panic),
            }
            spare.push(made.text);
        }
    }

    /// Adds what a thread made of the next piece.
    fn add(&mut self, worker: usize, parsed: Parsed) {
        let numbers = &mut self.numbers[worker];
        let tables = &mut self.importer.tables;
        let names = parsed.names.iter().map(|name| tables.name(name));
        numbers.names.extend(names);
        for frame in parsed.frames {
            let name = |name: NameId| numbers.names[name.0 as usize];
            let frame = Frame {
                symbol: frame.symbol.map(name),
                module: frame.module.map(name),
                ..frame
            };
            numbers.frames.push(tables.frame(frame));
        }
        for node in parsed.stacks {
            let caller = numbers.stack(node.caller);
            let stack = tables.push(caller, numbers.frames[node.frame.0 as usize]);
            numbers.stacks.push(stack);
        }
        self.report.n_skipped += parsed.n_skipped;
        self.report.has_times &= parsed.n_untimed == 0;
        self.n_lines += parsed.n_lines;
        for sample in parsed.samples {
            let numbers = &self.numbers[worker];
            let sample = StackSample {
                comm: numbers.names[sample.comm.0 as usize],
                event: numbers.names[sample.event.0 as usize],
                stack: numbers.stack(sample.stack),
                ..sample
            };
            count(&mut self.report, &mut self.latest_ns, &sample);
            let tables = self.importer.tables.tables();
            self.importer.sink.sample(&sample, tables);
        }
    }

    /// Reads what is left, on this thread.
    fn read_rest<R: Read>(&mut self, rest: R) {
        let mut parser = Parser::new(&*self.importer.sink);
        let mut lines = Lines::after(Window::new(rest), self.n_lines);
        let Importer { tables, sink, .. } = &mut *self.importer;
        let (report, latest_ns) = (&mut self.report, &mut self.latest_ns);
        let failed = parser.parse(&mut lines, tables, &mut |sample, tables| {
            count(report, latest_ns, sample);
            sink.sample(sample, tables.tables());
        });
        self.report.n_skipped += parser.n_skipped;
        self.report.has_times &= parser.n_untimed == 0;
        if let NoLine::Failed(why) = failed {
            let at = Position::Line(lines.number().max(1));
            self.report.stop(at, why);
        }
    }
}

fn count(report: &mut Report, latest_ns: &mut u64, sample: &StackSample) {
    report.n_unordered += u64::from(sample.at.as_ns() < *latest_ns);
    *latest_ns = (*latest_ns).max(sample.at.as_ns());
    report.n_samples += 1;
}

impl Numbers {
    fn stack(&self, stack: StackId) -> StackId {
        let known = self.stacks.get(stack.0 as usize);
        known.copied().unwrap_or(StackId::EMPTY)
    }
}

/// Some lines of text, and which of the pieces they are.
struct Piece {
    number: u64,
    text: Vec<u8>,
}

/// Where pieces are given out, and come back in any order.
struct Desk {
    jobs: Sender<Piece>,
    made: Receiver<(u64, Made)>,
    n_given: u64,
    n_done: u64,
    early: BTreeMap<u64, Made>,
}

impl Desk {
    fn give(&mut self, text: Vec<u8>) {
        let number = self.n_given;
        self.n_given += 1;
        self.jobs
            .send(Piece { number, text })
            .expect("this thread has the other end, too");
    }

    /// How many were given out and did not come back yet.
    fn n_open(&self) -> usize {
        usize::try_from(self.n_given - self.n_done).unwrap_or(usize::MAX)
    }

    /// The next one in the order of the text; `None` when all are back.
    fn next(&mut self) -> Option<Made> {
        if self.n_open() == 0 {
            return None;
        }
        loop {
            if let Some(made) = self.early.remove(&self.n_done) {
                self.n_done += 1;
                return Some(made);
            }
            let (number, made) = self.made.recv().expect("threads give back all they take");
            self.early.insert(number, made);
        }
    }
}

/// One thread: makes samples of pieces until there are no more.
fn work(
    worker: usize,
    mut parser: Parser,
    pieces: &Mutex<Receiver<Piece>>,
    give: &Sender<(u64, Made)>,
) {
    let mut tables = TableBuilder::default();
    loop {
        let next = pieces.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Piece { number, text }) = next else {
            return;
        };
        let parse = || parse(&mut parser, &mut tables, text);
        let (parsed, text) = match catch_unwind(AssertUnwindSafe(parse)) {
            Ok((parsed, text)) => (Ok(parsed), text),
            Err(panic) => (Err(panic), Vec::new()),
        };
        let made = Made {
            worker,
            text,
            parsed,
        };
        if give.send((number, made)).is_err() {
            return;
        }
    }
}

fn parse(
    parser: &mut Parser,
    tables: &mut TableBuilder,
    text: Vec<u8>,
) -> (Option<Parsed>, Vec<u8>) {
    let known = tables.tables();
    let (names, frames, stacks) = (known.names.len(), known.frames.len(), known.stacks.len());
    parser.begin();
    let mut samples = Vec::new();
    let mut lines = Lines::after(Window::whole(text), 0);
    let ended = parser.parse(&mut lines, tables, &mut |sample, _| samples.push(*sample));
    let n_lines = lines.number();
    let is_strange = parser.n_strange > 0 || parser.n_strange_first > 0 || tables.is_full();
    let known = tables.tables();
    let parsed = (matches!(ended, NoLine::End) && !is_strange).then(|| Parsed {
        samples,
        names: known.names[names..].to_vec(),
        frames: known.frames[frames..].to_vec(),
        stacks: known.stacks[stacks..].to_vec(),
        n_skipped: parser.n_skipped,
        n_untimed: parser.n_untimed,
        n_lines,
    });
    (parsed, lines.into_window().into_whole())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sexton_model::stack::StackTables;

    use super::*;
    use crate::symbols::NoSymbols;

    struct Failing<'a>(&'a [u8]);

    impl Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(std::io::Error::other("no more of it")),
                n => Ok(n),
            }
        }
    }

    fn read_with<R: Read>(
        text: R,
        n_workers: usize,
        piece_bytes: usize,
    ) -> (Vec<StackSample>, StackTables, Report) {
        let (mut samples, mut none) = (Vec::new(), NoSymbols);
        let mut importer = Importer::new(&mut none, &mut samples);
        let report = read(&mut importer, text, n_workers, piece_bytes);
        let tables = importer.into_tables().into_tables();
        (samples, tables, report)
    }

    /// However it is cut, and by however many threads it is read, the text says the same.
    fn check(text: &[u8]) -> Report {
        let alone = read_with(text, 0, 1);
        for (n_workers, piece_bytes) in [(1, 1), (2, 1), (3, 40), (2, 300), (2, 5000)] {
            let (samples, tables, report) = read_with(text, n_workers, piece_bytes);
            assert_eq!(report, alone.2);
            assert_eq!(samples, alone.0);
            assert_eq!(tables.names, alone.1.names);
            assert_eq!(tables.frames, alone.1.frames);
            assert_eq!(tables.stacks, alone.1.stacks);
        }
        alone.2
    }

    #[test]
    fn a_recording_is_the_same_on_any_number_of_threads() {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../fixtures/6.18-debian12/perf/"
        );
        for name in ["fp.data.script", "cgroups.data.script", "flat.data.script"] {
            let text = std::fs::read(format!("{folder}{name}")).expect("it is a fixture");
            assert!(check(&text).n_samples > 10, "{name}");
        }
    }

    #[test]
    fn strange_lines_stop_it_where_they_do_without_threads() {
        let event = "a 1 [000] 2.000005: 1 cycles:\n\tffffffff81 f+0x1 (k)\n\n";
        let strange = "what is this\n\n".repeat(999);
        let more = format!("{event}{strange}# a comment\n\n{event}{event}");
        assert_eq!(check(more.as_bytes()).stopped, None);
        let too_many = format!("{event}{strange}# a comment\n\nand this\n\n{event}");
        let report = check(too_many.as_bytes());
        assert_eq!(report.n_samples, 1);
        let at = report.stopped.expect("it stops").at;
        assert_eq!(at, Position::Line(3 + 2 * 999 + 2 + 1));
    }

    #[test]
    fn a_sample_without_a_stack_takes_nothing_of_the_next_one() {
        let text = "a 1 [000] 2.000005: 1 cycles:\n\n\
                    a 1 [000] 3.000005: 1 cycles:\n\tffffffff81 f+0x1 (k)\n\n";
        let report = check(text.as_bytes());
        assert_eq!((report.n_samples, report.n_skipped), (2, 0));
    }

    #[test]
    fn text_that_cannot_be_read_on_gives_what_came_before() {
        let text = "a 1 [000] 2.000005: 1 cycles:\n\tffffffff81 f+0x1 (k)\n\n".repeat(50);
        for (n_workers, piece_bytes) in [(0, 1), (2, 1), (2, 200), (2, 1 << 20)] {
            let (samples, _, report) = read_with(Failing(text.as_bytes()), n_workers, piece_bytes);
            assert_eq!(samples.len(), 50);
            let stopped = report.stopped.expect("it stops");
            assert!(stopped.why.contains("no more of it"), "{}", stopped.why);
        }
    }

    fn any_text() -> impl Strategy<Value = String> {
        let event = (0u32..4, 0u32..3, 0u64..50).prop_map(|(tid, cpu, at)| {
            format!("thread {tid} [00{cpu}] 7.0000{at:02}: 250 cycles:\n")
        });
        let frame =
            (0u32..5, 0u32..3).prop_map(|(f, m)| format!("\tffffffff8{f}1 f{f}+0x1 (m{m})\n"));
        let other = prop_oneof![
            4 => Just("\n".to_owned()),
            1 => Just("# comment\n".to_owned()),
            1 => Just("strange\n".to_owned()),
            1 => Just("  \n".to_owned()),
        ];
        let line = prop_oneof![3 => event, 4 => frame, 4 => other];
        prop::collection::vec(line, 1..120).prop_map(|lines| lines.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_text_is_the_same_on_any_number_of_threads(text in any_text()) {
            check(text.as_bytes());
        }
    }
}
