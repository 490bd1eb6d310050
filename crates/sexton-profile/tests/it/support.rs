//! Fixtures, and a reader that knows their symbols.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::import::{Importer, Report, Sink};
use sexton_profile::symbols::{Function, Place, Symbols};
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

impl Symbols for Names {
    fn resolve(&mut self, place: &Place<'_>) -> Option<Function> {
        let named = if place.is_kernel {
            self.kernel.function(place.address)?
        } else {
            let file = Recording {
                path: place.module,
                build_id: place.build_id,
                inode: place.inode,
            };
            self.files.function(file, place.address)?
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
