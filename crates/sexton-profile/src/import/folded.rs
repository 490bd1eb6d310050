//! Folded stacks: `root;child;leaf COUNT` per line. The first name is the program's.

use std::io::Read;

use sexton_model::moment::Moment;
use sexton_model::stack::{CodeKind, CoreState, Frame, StackSample};
use sexton_model::text::escape;

use super::bytes::Window;
use super::lines::{Lines, NoLine};
use super::{Format, Importer, Position, Report};

/// The event of samples that do not say what was sampled.
const EVENT: &str = "samples";

/// Whether the first lines look like this.
pub(super) fn is_likely(start: &[u8]) -> bool {
    let lines = start.split(|&b| b == b'\n');
    let mut lines = lines.filter(|line| !line.is_empty() && line[0] != b'#');
    lines.next().and_then(parse).is_some()
}

/// Reads the text. Lines that are none of this kind are counted and passed over; text in
/// which most are not stops.
pub(super) fn read<R: Read>(importer: &mut Importer<'_>, window: Window<R>) -> Report {
    let mut report = Report::new(Format::Folded);
    let mut lines = Lines::new(window);
    loop {
        match lines.next() {
            Ok(line) => match parse(line) {
                Some((names, count)) => {
                    add(importer, names, count);
                    report.n_samples += 1;
                }
                None if line.trim_ascii().is_empty() || line[0] == b'#' => {}
                None => {
                    report.n_skipped += 1;
                    let at = Position::Line(lines.number());
                    report.stop(at, "no folded stack: expected names and a count");
                    return report;
                }
            },
            Err(NoLine::End) => return report,
            Err(NoLine::Failed(why)) => {
                report.stop(Position::Line(lines.number().max(1)), why);
                return report;
            }
        }
    }
}

/// The names and the count of a line. A count with a fraction is rounded down.
fn parse(line: &[u8]) -> Option<(&[u8], u64)> {
    let line = line.trim_ascii_end();
    let space = memchr::memrchr(b' ', line)?;
    let (names, count) = (&line[..space], &line[space + 1..]);
    let whole = count.split(|&b| b == b'.').next()?;
    let is_number = !whole.is_empty() && count.iter().all(|&b| b.is_ascii_digit() || b == b'.');
    let count = str::from_utf8(whole).ok()?.parse().ok()?;
    (is_number && !names.trim_ascii().is_empty()).then(|| (names.trim_ascii_end(), count))
}

fn add(importer: &mut Importer<'_>, names: &[u8], count: u64) {
    let tables = &mut importer.tables;
    let mut names = names.split(|&b| b == b';');
    let comm = tables.name(&escape(names.next().unwrap_or(b"")));
    let event = tables.name(EVENT);
    let mut stack = sexton_model::stack::StackId::EMPTY;
    let mut kind = CodeKind::Unknown;
    for name in names {
        let frame = frame(&escape(name), tables);
        kind = frame.kind;
        let frame = tables.frame(frame);
        stack = tables.push(stack, frame);
    }
    let sample = StackSample {
        at: Moment::from_ns(0),
        cpu: 0,
        pid: 0,
        tid: 0,
        comm,
        cgroup: None,
        state: match kind {
            CodeKind::Kernel => CoreState::Kernel,
            CodeKind::User => CoreState::User,
            CodeKind::Unknown => CoreState::Unknown,
        },
        event,
        weight: count,
        stack,
    };
    importer.sink.sample(&sample, importer.tables.tables());
}

/// The suffixes of FlameGraph: `_[k]` kernel, `_[i]` inlined, `_[j]` made at run time.
fn frame(name: &str, tables: &mut crate::tables::TableBuilder) -> Frame {
    let (name, kind, is_inlined) = if let Some(name) = name.strip_suffix("_[k]") {
        (name, CodeKind::Kernel, false)
    } else if let Some(name) = name.strip_suffix("_[i]") {
        (name, CodeKind::Unknown, true)
    } else {
        (name, CodeKind::Unknown, false)
    };
    Frame {
        kind,
        symbol: Some(tables.name(name)),
        module: None,
        address: 0,
        is_inlined,
    }
}
