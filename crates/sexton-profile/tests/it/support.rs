//! Fixtures, and a reader that knows their symbols.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::import::{Importer, Report, Sink};
use sexton_profile::symbols::{Function, Place, Symbols, UnwindTables};
use sexton_symbols::recorded::{Kernel, Recorded, Recording};

/// All recordings of one program, each with what `perf script` says of it.
pub const RECORDINGS: [&str; 9] = [
    "fp.data",
    "packed.data",
    "pipe.data",
    "dwarf.data",
    "cgroups.data",
    "flat.data",
    "series.data.2026111520352927",
    "series.data.2026111520353048",
    "series.data.2026111520353083",
];

/// The files of `perf record --switch-output`.
pub fn series() -> &'static [&'static str] {
    &RECORDINGS[6..]
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub fn perf(name: &str) -> PathBuf {
    fixtures().join("6.18-debian12/perf").join(name)
}

pub fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names of the machine that was recorded.
pub struct Names {
    kernel: Kernel,
    files: Recorded,
}

impl Names {
    pub fn new() -> Self {
        Self {
            kernel: Kernel::read(Some(perf("kallsyms"))),
            files: Recorded::new(Some(perf("root")), None),
        }
    }
}

fn recording<'a>(place: &Place<'a>) -> Recording<'a> {
    Recording {
        path: place.module,
        build_id: place.build_id,
        is_id_of_mapping: place.is_id_of_mapping,
        inode: place.inode,
    }
}

impl Symbols for Names {
    fn unwind_tables(&mut self, place: &Place<'_>) -> Option<UnwindTables> {
        let tables = self.files.unwind_tables(recording(place))?;
        let section = |(address, bytes): (u64, Vec<u8>)| (address, bytes.into());
        let code = tables.code.iter();
        Some(UnwindTables {
            code: code
                .map(|part| (part.offset, part.address, part.size))
                .collect(),
            text: tables.text,
            got: tables.got,
            eh_frame: section(tables.eh_frame),
            eh_frame_hdr: tables.eh_frame_hdr.map(section),
        })
    }

    fn resolve(&mut self, place: &Place<'_>) -> Option<Function> {
        let named = if place.is_kernel {
            self.kernel.function(place.address)?
        } else {
            self.files.function(recording(place), place.address)?
        };
        Some(Function {
            name: named.name,
            start: named.start,
        })
    }
}

/// What was read.
pub struct Read {
    pub samples: Vec<StackSample>,
    pub tables: StackTables,
    pub reports: Vec<Report>,
}

/// Reads files into one recording.
pub fn read(files: &[&[u8]]) -> Read {
    let mut samples = Vec::new();
    let mut names = Names::new();
    let mut importer = Importer::new(&mut names, &mut samples);
    let reports = files
        .iter()
        .map(|file| importer.read_file(Cursor::new(file)).unwrap())
        .collect();
    let tables = importer.into_tables().into_tables();
    Read {
        samples,
        tables,
        reports,
    }
}

/// Hands what was read to a question.
pub fn ask(read: &Read, sink: &mut dyn Sink) {
    for sample in &read.samples {
        sink.sample(sample, &read.tables);
    }
}
