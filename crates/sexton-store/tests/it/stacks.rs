//! Samples of stacks come back as they were given, whatever happens to the writer.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use sexton_model::moment::Moment;
use sexton_model::stack::{
    CodeKind, CoreState, Frame, FrameId, NameId, StackId, StackNode, StackSample, StackTables,
};
use sexton_store::{Bundle, CELL_NS, Limits, StackPiece};

use crate::support::*;

/// A sample without numbers that mean something in one table only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Plain {
    at_ns: u64,
    cpu: u32,
    pid: u32,
    comm: String,
    cgroup: Option<String>,
    /// Outermost first: function, file, address.
    stack: Vec<(Option<String>, Option<String>, u64)>,
}

fn plain(sample: &StackSample, tables: &StackTables) -> Plain {
    let name = |id: NameId| tables.name(id).to_owned();
    let frame = |id: FrameId| {
        let frame = tables.frame(id).expect("a frame that is there");
        (
            frame.symbol.map(name),
            frame.module.map(name),
            frame.address,
        )
    };
    let mut stack: Vec<_> = tables.frames_of(sample.stack).map(frame).collect();
    stack.reverse();
    Plain {
        at_ns: sample.at.as_ns(),
        cpu: sample.cpu,
        pid: sample.pid,
        comm: name(sample.comm),
        cgroup: sample.cgroup.map(name),
        stack,
    }
}

/// Samples of a machine that does the same few things again and again, and their tables.
pub(crate) fn busy_stacks(seed: u64, n: u64) -> (Vec<StackSample>, StackTables) {
    let mut tables = StackTables::default();
    for name in ["cpu-clock", "worker", "kubelet", "/kubepods/a", "[kernel]"] {
        tables.names.push(name.into());
    }
    for depth in 0..12 {
        tables.names.push(format!("function_{depth}").into());
        tables.frames.push(Frame {
            kind: CodeKind::Kernel,
            symbol: Some(NameId(5 + depth)),
            module: Some(NameId(4)),
            address: 0xffff_ffff_8100_0000 + u64::from(depth) * 4096,
            is_inlined: false,
        });
        tables.stacks.push(StackNode {
            caller: StackId(depth.wrapping_sub(1)),
            frame: FrameId(depth),
        });
    }
    let sample = |i: u64| {
        let mixed = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let idle = mixed >> 63 == 1;
        StackSample {
            at: Moment::from_ns(i * 10_101_010 + (mixed >> 50)),
            cpu: (i % 2) as u32,
            pid: if idle { 0 } else { 100 + (mixed >> 61) as u32 },
            tid: if idle { 0 } else { 200 },
            comm: NameId(1 + (mixed >> 62) as u32 % 2),
            cgroup: (!idle).then_some(NameId(3)),
            state: if idle {
                CoreState::Idle
            } else {
                CoreState::Kernel
            },
            event: NameId(0),
            weight: 1,
            stack: StackId((mixed >> 56) as u32 % 12),
        }
    };
    ((seed..seed + n).map(sample).collect(), tables)
}

pub(crate) fn plains(samples: &[StackSample], tables: &StackTables) -> Vec<Plain> {
    samples.iter().map(|sample| plain(sample, tables)).collect()
}

/// All samples, and the texts of all gaps.
pub(crate) fn read(dir: &Path, window: Option<(u64, u64)>) -> (Vec<Plain>, Vec<String>) {
    let bundle = Bundle::open(dir).unwrap();
    let window = window.map(|(from, to)| at(from)..=at(to));
    let (mut samples, mut gaps) = (Vec::new(), Vec::new());
    for piece in bundle.stacks(window) {
        match piece {
            StackPiece::Chunk(chunk) => {
                assert!(chunk.samples.is_sorted_by_key(|sample| sample.at));
                samples.extend(plains(&chunk.samples, &chunk.tables));
            }
            StackPiece::Gap(_, gap) => gaps.push(gap.text),
        }
    }
    samples.sort();
    (samples, gaps)
}

#[test]
fn samples_come_back_from_the_log_and_from_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (samples, tables) = busy_stacks(1, 50_000);
    let mut expected = plains(&samples, &tables);
    expected.sort();
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    for part in samples.chunks(997) {
        writer.append_stacks(part, &tables).unwrap();
        writer.sync(part[0].at).unwrap();
    }
    assert_eq!(read(dir.path(), None), (expected.clone(), vec![]));
    let summary = writer.finish(at(u64::MAX)).unwrap();
    assert_eq!(summary.samples, 50_000);
    assert_eq!(read(dir.path(), None), (expected.clone(), vec![]));
    let (from, to) = (expected[20_000].at_ns, expected[20_500].at_ns);
    let window = read(dir.path(), Some((from, to))).0;
    assert_eq!(window, expected[20_000..=20_500]);
}

/// When, on which core and in what state, as whole samples say and as ticks do.
fn both_ways(dir: &Path, window: Option<(u64, u64)>) -> [Vec<(u64, u32, CoreState)>; 2] {
    let bundle = Bundle::open(dir).unwrap();
    let window = window.map(|(from, to)| at(from)..=at(to));
    let (mut ticks, mut samples) = (Vec::new(), Vec::new());
    let gaps = bundle.ticks(window.clone(), &mut |piece| {
        assert!(piece.is_sorted_by_key(|tick| tick.at));
        ticks.extend(
            piece
                .iter()
                .map(|tick| (tick.at.as_ns(), tick.cpu, tick.state)),
        );
    });
    assert_eq!(gaps, []);
    for piece in bundle.stacks(window) {
        let StackPiece::Chunk(chunk) = piece else {
            panic!("a piece is missing: {piece:?}");
        };
        let tick = |sample: &StackSample| (sample.at.as_ns(), sample.cpu, sample.state);
        samples.extend(chunk.samples.iter().map(tick));
    }
    [ticks, samples]
}

#[test]
fn ticks_are_those_of_the_samples() {
    let dir = tempfile::tempdir().unwrap();
    let (samples, tables) = busy_stacks(1, 80_000);
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    for part in samples.chunks(4096) {
        writer.append_stacks(part, &tables).unwrap();
        writer.sync(part[0].at).unwrap();
    }
    let window = Some((samples[40_000].at.as_ns(), samples[41_000].at.as_ns()));
    for asked in [None, window] {
        let [ticks, whole] = both_ways(dir.path(), asked);
        assert!(ticks.len() >= 1000);
        assert_eq!(ticks, whole);
    }
    writer.finish(at(u64::MAX)).unwrap();
    for asked in [None, window] {
        let [ticks, whole] = both_ways(dir.path(), asked);
        assert!(ticks.len() >= 1000);
        assert_eq!(ticks, whole);
    }
}

/// How many samples each cell has, as the samples say and as cells do; and how many pieces
/// of information the cells were.
fn counted(dir: &Path, window: Option<(u64, u64)>) -> ([BTreeMap<CellKey, u64>; 2], usize) {
    let bundle = Bundle::open(dir).unwrap();
    let key = |at_ns: u64, cpu: u32, is_idle: bool| {
        let is_first = at_ns % CELL_NS < 1000;
        (cpu, is_idle, at_ns / CELL_NS, is_first)
    };
    let (mut cells, mut samples) = (BTreeMap::new(), BTreeMap::new());
    let mut n_cells = 0;
    let gaps = bundle.tick_cells(window.map(|(from, to)| at(from)..=at(to)), &mut |piece| {
        n_cells += piece.len();
        for cell in piece {
            let key = key(cell.at.as_ns(), cell.cpu, cell.is_idle);
            *cells.entry(key).or_insert(0) += u64::from(cell.n);
        }
    });
    assert_eq!(gaps, []);
    let [_, whole] = both_ways(dir, window);
    for (at_ns, cpu, state) in whole {
        let key = key(at_ns, cpu, state == CoreState::Idle);
        *samples.entry(key).or_insert(0) += 1;
    }
    ([cells, samples], n_cells)
}

/// Core, idle or not, which cell, and whether in its first microsecond.
type CellKey = (u32, bool, u64, bool);

#[test]
fn cells_are_those_of_the_samples_with_and_without_their_table() {
    let dir = tempfile::tempdir().unwrap();
    // Ten times as many in the same time, so that a cell has several.
    let (mut samples, tables) = busy_stacks(1, 80_000);
    for sample in &mut samples {
        sample.at = at(sample.at.as_ns() / 10);
    }
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    for part in samples.chunks(4096) {
        writer.append_stacks(part, &tables).unwrap();
        writer.sync(part[0].at).unwrap();
    }
    let windows = [None, Some((100 * CELL_NS, 2000 * CELL_NS - 1))];
    let check = |has_tables: Option<bool>| {
        for window in windows {
            let ([cells, whole], n_cells) = counted(dir.path(), window);
            let n: u64 = whole.values().sum();
            assert!(n > 20_000);
            assert_eq!(cells, whole);
            if let Some(has_tables) = has_tables {
                assert_eq!((n_cells as u64) < n / 2, has_tables, "{n_cells} of {n}");
            }
        }
    };
    // Some are in the log, some in segments.
    check(None);
    writer.finish(at(u64::MAX)).unwrap();
    check(Some(true));
    // A table that is damaged is not believed.
    for file in fs::read_dir(dir.path().join("stacks")).unwrap() {
        let file = file.unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        let key = bytes.windows(12).position(|key| key == b"sexton.cells");
        let is_of_samples = file.to_string_lossy().contains("/samples-");
        assert_eq!(key.is_some(), is_of_samples);
        if let Some(key) = key {
            let at = key + 100;
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            fs::write(&file, bytes).unwrap();
        }
    }
    check(Some(false));
}

#[test]
fn tables_that_differ_from_call_to_call_meet_by_content() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    let (samples, tables) = busy_stacks(1, 20);
    // The same names, in another order.
    let mut turned = tables.clone();
    turned.names.reverse();
    let other = |id: NameId| NameId(tables.names.len() as u32 - 1 - id.0);
    for frame in &mut turned.frames {
        (frame.symbol, frame.module) = (frame.symbol.map(other), frame.module.map(other));
    }
    let turn = |sample: &StackSample| StackSample {
        comm: other(sample.comm),
        cgroup: sample.cgroup.map(other),
        event: other(sample.event),
        ..*sample
    };
    let turned_samples: Vec<StackSample> = samples.iter().map(turn).collect();
    writer.append_stacks(&samples[..10], &tables).unwrap();
    writer
        .append_stacks(&turned_samples[10..], &turned)
        .unwrap();
    writer.sync(at(1)).unwrap();
    let (there, _) = read(dir.path(), None);
    let mut expected = plains(&samples, &tables);
    expected.sort();
    assert_eq!(there, expected);
}

#[test]
fn a_log_cut_at_any_byte_gives_what_was_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (samples, tables) = busy_stacks(1, 60);
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    let log = dir.path().join("stacks/current.wal");
    let mut ends = vec![20];
    for part in samples.chunks(7) {
        writer.append_stacks(part, &tables).unwrap();
        writer.sync(part[0].at).unwrap();
        ends.push(fs::metadata(&log).unwrap().len() as usize);
    }
    drop(writer);
    let whole = fs::read(&log).unwrap();
    let all = plains(&samples, &tables);
    for cut in (0..whole.len()).rev() {
        fs::write(&log, &whole[..cut]).unwrap();
        let (there, gaps) = read(dir.path(), None);
        let n = there.len();
        assert!(n % 7 == 0 || n == 60, "{cut}: {n}");
        let mut expected = all[..n].to_vec();
        expected.sort();
        assert_eq!(there, expected, "cut at {cut}");
        let n_gaps = usize::from(!ends.contains(&cut));
        assert_eq!(gaps.len(), n_gaps, "cut at {cut}: {gaps:?}");
        if cut % 13 == 0 {
            // A writer goes on after the last whole batch.
            let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
            writer.append_stacks(&samples[n..], &tables).unwrap();
            writer.sync(at(1)).unwrap();
            drop(writer);
            let mut expected = all.clone();
            expected.sort();
            assert_eq!(read(dir.path(), None).0, expected, "continued after {cut}");
        }
    }
}

#[test]
fn both_tables_share_the_bound_and_the_oldest_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    let max_bytes = Limits::MIN_SEGMENT_BYTES * 5 + 4321;
    let mut writer = create(dir.path(), limits(max_bytes), 0).unwrap();
    let mut next = 1;
    for round in 0_u64..250 {
        let n = 1 + (round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 53);
        // Records and samples of the same times.
        let (samples, tables) = busy_stacks(next, n);
        let mut records = busy(next, n);
        for (record, sample) in records.iter_mut().zip(&samples) {
            record.at = sample.at;
        }
        writer.append(&records).unwrap();
        writer.append_stacks(&samples, &tables).unwrap();
        next += n;
        writer.sync(at(next * 10_101_010)).unwrap();
        let is_exact = round % 5 == 0;
        if is_exact {
            until_quiet(dir.path());
        }
        let there = bytes_under(dir.path());
        if is_exact {
            assert_eq!(there, writer.bytes(), "round {round}");
        }
        assert!(there <= max_bytes, "round {round}: {there}");
    }
    let bundle = Bundle::open(dir.path()).unwrap();
    assert!(bundle.dropped().is_some());
    let span = bundle.stacks_span().unwrap();
    let (there, gaps) = read(dir.path(), None);
    assert!(gaps.is_empty());
    assert!(there.len() < next as usize - 1, "nothing was dropped");
    let (all, tables) = busy_stacks(1, next - 1);
    let mut expected = plains(&all, &tables);
    expected.retain(|sample| sample.at_ns >= span.start().as_ns());
    expected.sort();
    assert_eq!(there, expected, "all that is younger is there");
}

#[test]
fn old_samples_go() {
    let dir = tempfile::tempdir().unwrap();
    let limits = Limits {
        max_age: Duration::from_secs(10),
        segment_age: Duration::from_secs(2),
        ..limits(64 << 20)
    };
    let mut writer = create(dir.path(), limits, 0).unwrap();
    for i in 0..600 {
        let (samples, tables) = busy_stacks(1 + i * 10, 10);
        let now = samples[9].at;
        writer.append_stacks(&samples, &tables).unwrap();
        writer.sync(now).unwrap();
        writer.seal_if_due(now).unwrap();
    }
    let first = Bundle::open(dir.path()).unwrap().stacks_span().unwrap();
    let seconds = first.end().since(*first.start()).as_secs();
    assert!((10..=13).contains(&seconds), "{seconds} s are there");
}

#[test]
fn a_damaged_segment_is_a_gap_and_orphans_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (samples, tables) = busy_stacks(1, 500);
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    writer.append_stacks(&samples, &tables).unwrap();
    writer.finish(at(u64::MAX)).unwrap();
    let files = || {
        let files = fs::read_dir(dir.path().join("stacks")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        files
    };
    let [frames, samples, stacks] = &files()[..] else {
        panic!("{:?}", files());
    };
    for file in [frames, samples, stacks] {
        let whole = fs::read(file).unwrap();
        for at in (0..whole.len()).step_by(whole.len() / 40) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(file, &damaged).unwrap();
            let (there, gaps) = read(dir.path(), None);
            let all = there.len() == 500 && gaps.is_empty();
            assert!(
                all || there.is_empty() && gaps.len() == 1,
                "{file:?} at {at}"
            );
        }
        fs::write(file, &whole).unwrap();
    }
    fs::remove_file(samples).unwrap();
    assert_eq!(read(dir.path(), None), (vec![], vec![]));
    drop(create(dir.path(), limits(64 << 20), 0).unwrap());
    assert_eq!(files(), Vec::<std::path::PathBuf>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_log_of_any_bytes_is_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), keep in 0_usize..400) {
        let dir = tempfile::tempdir().unwrap();
        let (samples, tables) = busy_stacks(1, 9);
        let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
        writer.append_stacks(&samples, &tables).unwrap();
        writer.sync(at(1)).unwrap();
        drop(writer);
        let log = dir.path().join("stacks/current.wal");
        let mut content = fs::read(&log).unwrap();
        content.truncate(keep);
        content.extend(bytes);
        fs::write(&log, content).unwrap();
        let (there, _) = read(dir.path(), None);
        prop_assert!(there.len() <= 9);
    }
}
