//! perf.data is read as perf itself reads it: sample for sample, frame for frame.

use std::collections::BTreeMap;

use sexton_model::stack::{CodeKind, Frame, StackSample, StackTables};
use sexton_profile::import::Format;

use crate::support::{RECORDINGS, Read, bytes, perf, read, series};

/// Samples of each program, process and core.
fn totals(read: &Read) -> BTreeMap<(String, u32, u32), u64> {
    let mut totals = BTreeMap::new();
    for sample in &read.samples {
        let comm = read.tables.name(sample.comm).to_owned();
        *totals.entry((comm, sample.pid, sample.cpu)).or_default() += 1;
    }
    totals
}

#[test]
fn totals_of_processes_and_cores_are_those_of_perf_script() {
    for name in RECORDINGS {
        let (ours, theirs) = both(name);
        assert!(!theirs.samples.is_empty(), "{name}");
        assert_eq!(totals(&ours), totals(&theirs), "{name}");
    }
}

/// What we read of a recording, and what we read of perf's text of it.
fn both(name: &str) -> (Read, Read) {
    let script = bytes(&perf(&format!("{name}.script")));
    (read(&[&bytes(&perf(name))]), read(&[&script]))
}

#[test]
fn every_sample_is_that_of_perf_script() {
    for name in RECORDINGS {
        let (ours, theirs) = both(name);
        assert_eq!(ours.samples.len(), theirs.samples.len(), "{name}");
        for (our, their) in ours.samples.iter().zip(&theirs.samples) {
            let key = |sample: &StackSample, tables: &StackTables| {
                (
                    sample.at,
                    sample.cpu,
                    sample.pid,
                    sample.tid,
                    sample.weight,
                    tables.name(sample.comm).to_owned(),
                    tables.name(sample.event).to_owned(),
                )
            };
            assert_eq!(key(our, &ours.tables), key(their, &theirs.tables), "{name}");
            let (our, their) = (frames(&ours, our), frames(&theirs, their));
            if name == "dwarf.data" {
                // perf unwinds the copied stack; here only its innermost frame is known.
                let n_kernel = their.iter().filter(|frame| frame.0).count();
                assert_eq!(our[..n_kernel], their[..n_kernel], "{name}");
            } else {
                assert_eq!(our, their, "{name}");
            }
        }
    }
}

/// Whether it is the kernel's, the file and, where the test has symbols, the function.
fn frames(read: &Read, sample: &StackSample) -> Vec<(bool, String, String)> {
    let tables = &read.tables;
    let frame = |frame: &Frame| {
        let module = frame.module.map_or("[unknown]", |name| tables.name(name));
        let is_kernel = frame.kind == CodeKind::Kernel;
        let is_known = is_kernel || module == "/tmp/burn/burn";
        let symbol = frame
            .symbol
            .filter(|_| is_known)
            .map_or("", |name| tables.name(name));
        (is_kernel, module.to_owned(), symbol.to_owned())
    };
    let ids = tables.frames_of(sample.stack);
    ids.map(|id| frame(tables.frame(id).unwrap())).collect()
}

#[test]
fn a_series_is_one_recording() {
    let files: Vec<Vec<u8>> = series().iter().map(|name| bytes(&perf(name))).collect();
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let whole = read(&files);
    let n: usize = files.iter().map(|file| read(&[file]).samples.len()).sum();
    assert_eq!(whole.samples.len(), n);
    assert!(whole.samples.is_sorted_by_key(|sample| sample.at));
    assert!(whole.reports.iter().all(|report| report.stopped.is_none()));
}

#[test]
fn reports_say_what_a_file_is() {
    for (name, format) in [
        ("fp.data", Format::PerfData),
        ("pipe.data", Format::PerfPipe),
    ] {
        assert_eq!(read(&[&bytes(&perf(name))]).reports[0].format, format);
    }
    let dwarf = read(&[&bytes(&perf("dwarf.data"))]);
    assert!(dwarf.reports[0].n_not_unwound > 0);
    let packed = &bytes(&perf("packed.data"));
    const COMPRESSED: [u8; 4] = 81u32.to_le_bytes();
    assert!(
        packed.windows(4).any(|word| word == COMPRESSED),
        "the fixture is packed"
    );
}

#[test]
fn cgroups_have_their_paths() {
    let read = read(&[&bytes(&perf("cgroups.data"))]);
    let is_path = |sample: &StackSample| {
        let cgroup = sample.cgroup.expect("every sample has one");
        read.tables.name(cgroup).starts_with('/')
    };
    assert!(read.samples.iter().all(is_path));
}

#[test]
fn functions_have_their_shares() {
    // 60, 30 and 10 of 100 rounds, in half a second on a busy machine.
    let files: Vec<Vec<u8>> = series().iter().map(|name| bytes(&perf(name))).collect();
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let read = read(&files);
    let innermost = |sample: &&StackSample| {
        let frame = read.tables.frames_of(sample.stack).next()?;
        let symbol = read.tables.frame(frame)?.symbol?;
        Some(read.tables.name(symbol).to_owned())
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for name in read.samples.iter().filter_map(|sample| innermost(&sample)) {
        *counts.entry(name).or_default() += 1;
    }
    let burnt: usize = ["burn_sixty", "burn_thirty", "burn_ten"]
        .iter()
        .map(|name| counts[*name])
        .sum();
    for (name, share) in [("burn_sixty", 60), ("burn_thirty", 30), ("burn_ten", 10)] {
        let measured = counts[name] * 100 / burnt;
        assert!(
            measured.abs_diff(share) <= 6,
            "{name}: {measured} of 100, not {share}"
        );
    }
}
