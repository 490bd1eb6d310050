//! When cores were sampled, and what they did: all that the heat map of a machine needs, at
//! a fraction of what whole samples cost to read.

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::reader::RowGroupReader;
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, StackSample};

use super::cells::{self, TickCell};
use super::log::StackLog;
use super::names::StackSegment;
use super::seal::STATES;
use super::sealed::{CORE_STATES, place_of, word};
use super::stream::{damaged, torn};
use super::table::SAMPLES;
use super::texts::Texts;
use crate::bundle::Bundle;
use crate::sealed::{Damage, Sealed, malformed, read_required};

/// A sample without who ran and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick {
    /// When it was taken.
    pub at: Moment,
    /// On which CPU.
    pub cpu: u32,
    /// What the core did.
    pub state: CoreState,
}

/// Goes through the ticks of a window.
struct Visit<'a> {
    from_ns: u64,
    to_ns: u64,
    take: Take<'a>,
    gaps: Vec<(Moment, Gap)>,
}

/// Tables that are read before they are asked for.
const N_AHEAD: usize = 4;

/// The cells of the segment of this number; `None` when it does not know them.
type Table = (u64, Option<Vec<TickCell>>);

/// Who takes them, and as what.
enum Take<'a> {
    Ticks(&'a mut dyn FnMut(&[Tick])),
    Cells(&'a mut dyn FnMut(&[TickCell])),
}

/// Hands over the ticks of a window in pieces, each in the order of time. Returns what
/// should be there and cannot be read.
pub(crate) fn visit(
    bundle: &Bundle,
    (from_ns, to_ns): (u64, u64),
    take: &mut dyn FnMut(&[Tick]),
) -> Vec<(Moment, Gap)> {
    let visit = Visit {
        from_ns,
        to_ns,
        take: Take::Ticks(take),
        gaps: Vec::new(),
    };
    let (_, no_tables) = sync_channel(0);
    visit.all(bundle, &no_tables)
}

/// The same in cells, from segments that know them; see [`Bundle::tick_cells`].
pub(crate) fn visit_cells(
    bundle: &Bundle,
    (from_ns, to_ns): (u64, u64),
    take: &mut dyn FnMut(&[TickCell]),
) -> Vec<(Moment, Gap)> {
    let visit = Visit {
        from_ns,
        to_ns,
        take: Take::Cells(take),
        gaps: Vec::new(),
    };
    // To read them takes a quarter of the time, and another core can do it meanwhile.
    let (give, tables) = sync_channel(N_AHEAD);
    thread::scope(|scope| {
        let wanted = bundle.stack_segments.iter();
        let wanted = wanted.filter(|segment| visit.wants((segment.from_ns, segment.to_ns)));
        let wanted: Vec<&StackSegment> = wanted.collect();
        let read = move || {
            for segment in wanted {
                let table = read_table(&bundle.dir, segment);
                if give.send((segment.sequence, table)).is_err() {
                    return;
                }
            }
        };
        // Without a thread there are no tables, and the samples are read.
        let named = thread::Builder::new().name("cells".into());
        let _ = named.spawn_scoped(scope, read);
        visit.all(bundle, &tables)
    })
}

/// The table of a segment, if it has one that fits.
fn read_table(dir: &Path, segment: &StackSegment) -> Option<Vec<TickCell>> {
    let sealed = open(dir, segment).ok()?;
    cells::parse(sealed.note(cells::KEY)?, sealed.n_rows())
}

fn open(dir: &Path, segment: &StackSegment) -> Result<Sealed, Damage> {
    let columns = SAMPLES.each_ref().map(|column| column.name);
    Sealed::open_table(&segment.path(dir, "samples"), &columns)
}

impl Visit<'_> {
    /// Tables of segments come in their order; where none comes, samples are read.
    fn all(mut self, bundle: &Bundle, tables: &Receiver<Table>) -> Vec<(Moment, Gap)> {
        for segment in &bundle.stack_segments {
            let span = (segment.from_ns, segment.to_ns);
            if !self.wants(span) {
                continue;
            }
            if let Ok((sequence, Some(cells))) = tables.recv()
                && sequence == segment.sequence
            {
                self.hand_over_cells(cells);
            } else if let Err(damage) = self.segment(&bundle.dir, segment) {
                self.gaps.push(damaged(span, &damage));
            }
        }
        if let Some(log) = &bundle.stack_log {
            self.log(log);
        }
        self.gaps.extend(torn(bundle, self.to_ns));
        self.gaps
    }

    fn wants(&self, (from_ns, to_ns): (u64, u64)) -> bool {
        from_ns <= self.to_ns && to_ns >= self.from_ns
    }

    fn segment(&mut self, dir: &Path, segment: &StackSegment) -> Result<(), Damage> {
        let sealed = open(dir, segment)?;
        for group in &sealed.groups {
            let span = (group.checked.from_ns, group.checked.to_ns);
            if !self.wants(span) {
                continue;
            }
            match sealed.read(group, read_ticks) {
                Ok(ticks) => self.hand_over(ticks),
                Err(damage) => self.gaps.push(damaged(span, &damage)),
            }
        }
        Ok(())
    }

    fn log(&mut self, log: &StackLog) {
        for block in &log.blocks {
            let span = (block.from_ns, block.to_ns);
            if !self.wants(span) {
                continue;
            }
            match log.samples(block) {
                Ok(samples) => self.hand_over(samples.iter().map(tick).collect()),
                Err(error) => self.gaps.push(damaged(span, &error.into())),
            }
        }
    }

    fn hand_over_cells(&mut self, mut cells: Vec<TickCell>) {
        let window = self.from_ns..=self.to_ns;
        if window != (0..=u64::MAX) {
            cells.retain(|cell| window.contains(&cell.at.as_ns()));
        }
        if let Take::Cells(take) = &mut self.take {
            take(&cells);
        }
    }

    fn hand_over(&mut self, mut ticks: Vec<Tick>) {
        let window = self.from_ns..=self.to_ns;
        ticks.retain(|tick| tick.state != CoreState::Waiting && window.contains(&tick.at.as_ns()));
        ticks.sort_by_key(|tick| (tick.at, tick.cpu));
        match &mut self.take {
            Take::Ticks(take) => take(&ticks),
            Take::Cells(take) => take(&ticks.iter().map(cell).collect::<Vec<_>>()),
        }
    }
}

/// A tick is a cell of one.
fn cell(tick: &Tick) -> TickCell {
    TickCell {
        at: tick.at,
        cpu: tick.cpu,
        is_idle: tick.state == CoreState::Idle,
        n: 1,
    }
}

fn tick(sample: &StackSample) -> Tick {
    Tick {
        at: sample.at,
        cpu: sample.cpu,
        state: sample.state,
    }
}

fn read_ticks(rows: &dyn RowGroupReader) -> Result<Vec<Tick>, Damage> {
    let n = usize::try_from(rows.metadata().num_rows()).map_err(malformed)?;
    let times = read_required::<Int64Type>(rows, place_of(&SAMPLES, "time_ns")?, n)?;
    let cpus = read_required::<Int32Type>(rows, place_of(&SAMPLES, "cpu")?, n)?;
    let states = Texts::read(rows, place_of(&SAMPLES, "state")?, false, n)?;
    let words: Vec<CoreState> = states
        .words
        .iter()
        .map(|text| word(text, &STATES, &CORE_STATES))
        .collect();
    let mut ticks = Vec::with_capacity(n);
    for (row, (time, cpu)) in times.into_iter().zip(cpus).enumerate() {
        let at_ns = u64::try_from(time).map_err(|_| malformed("a time is before the boot"))?;
        let state = states.word(row).and_then(|word| words.get(word));
        ticks.push(Tick {
            at: Moment::from_ns(at_ns),
            cpu: cpu.cast_unsigned(),
            state: *state.ok_or_else(|| malformed("a word is null"))?,
        });
    }
    Ok(ticks)
}
