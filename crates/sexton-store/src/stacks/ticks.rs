//! When cores were sampled, and what they did: all that the heat map of a machine needs, at
//! a fraction of what whole samples cost to read.

use std::path::Path;

use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::reader::RowGroupReader;
use sexton_model::gap::Gap;
use sexton_model::moment::Moment;
use sexton_model::stack::{CoreState, StackSample};

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
    take: &'a mut dyn FnMut(&[Tick]),
    gaps: Vec<(Moment, Gap)>,
}

/// Hands over the ticks of a window in pieces, each in the order of time. Returns what
/// should be there and cannot be read.
pub(crate) fn visit(
    bundle: &Bundle,
    (from_ns, to_ns): (u64, u64),
    take: &mut dyn FnMut(&[Tick]),
) -> Vec<(Moment, Gap)> {
    let mut visit = Visit {
        from_ns,
        to_ns,
        take,
        gaps: Vec::new(),
    };
    for segment in &bundle.stack_segments {
        let span = (segment.from_ns, segment.to_ns);
        if visit.wants(span)
            && let Err(damage) = visit.segment(&bundle.dir, segment)
        {
            visit.gaps.push(damaged(span, &damage));
        }
    }
    if let Some(log) = &bundle.stack_log {
        visit.log(log);
    }
    visit.gaps.extend(torn(bundle, to_ns));
    visit.gaps
}

impl Visit<'_> {
    fn wants(&self, (from_ns, to_ns): (u64, u64)) -> bool {
        from_ns <= self.to_ns && to_ns >= self.from_ns
    }

    fn segment(&mut self, dir: &Path, segment: &StackSegment) -> Result<(), Damage> {
        let columns = SAMPLES.each_ref().map(|column| column.name);
        let sealed = Sealed::open_table(&segment.path(dir, "samples"), &columns)?;
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

    fn hand_over(&mut self, mut ticks: Vec<Tick>) {
        let window = self.from_ns..=self.to_ns;
        ticks.retain(|tick| window.contains(&tick.at.as_ns()));
        ticks.sort_by_key(|tick| (tick.at, tick.cpu));
        (self.take)(&ticks);
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
