//! A heat map of twelve hours of two cores at 99 samples a second: 8.6 million samples of
//! the stacks of the recording, in a bundle.

use std::fs::File;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use sexton_model::moment::Moment;
use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::filter::{EventChoice, Filter, TimePoint};
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::heatmap::Shape;
use sexton_profile::heatmap::facets::{By, Facets};
use sexton_profile::import::{Importer, Sink};
use sexton_profile::kept::Kept;
use sexton_profile::merge::Merger;
use sexton_profile::names::Suffixes;
use sexton_profile::symbols::NoSymbols;
use sexton_store::{Bundle, BundleWriter, Limits, Node, StackPiece};

const HOURS: u64 = 12;
const CORES: u64 = 2;
const RATE: u64 = 99;
const SECOND: u64 = 1_000_000_000;

/// Samples that go to the store at once.
const BATCH: usize = 8192;

/// What it took.
pub(crate) struct Long {
    pub(crate) n_samples: u64,
    pub(crate) bundle_bytes: u64,
    /// From the bundle's folder to the picture.
    pub(crate) cold: Duration,
    /// The picture again, from samples in memory.
    pub(crate) warm: Duration,
    /// A flame graph of a minute in the middle, from samples in memory.
    pub(crate) flame: Duration,
    pub(crate) kept_bytes: u64,
}

/// Makes the bundle and asks it.
pub(crate) fn measure(data: &std::path::Path) -> Result<Long> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    let n_samples = write(data, &bundle)?;
    let began = Instant::now();
    let mut kept = Kept::default();
    let mut merger = Merger::default();
    let mut both = Both(picture(), &mut kept);
    for piece in Bundle::open(&bundle)?.stacks(None) {
        if let StackPiece::Chunk(chunk) = piece {
            merger.feed(chunk.segment, &chunk.samples, &chunk.tables, &mut both);
        }
    }
    let first = both.0.grids();
    let cold = began.elapsed();
    let began = Instant::now();
    let mut again = picture();
    kept.ask(merger.tables(), &mut again);
    let second = again.grids();
    let warm = began.elapsed();
    ensure!(
        first.is_some() && first == second,
        "the same samples make the same picture"
    );
    let began = Instant::now();
    let mut minute = StackCounts::new(Filter {
        from: Some(TimePoint::Offset(HOURS / 2 * 3600 * SECOND)),
        to: Some(TimePoint::Offset((HOURS / 2 * 3600 + 60) * SECOND)),
        ..Filter::default()
    });
    kept.ask(merger.tables(), &mut minute);
    let tree = Tree::of(&minute, merger.tables(), Suffixes::default());
    let flame = began.elapsed();
    ensure!(tree.nodes.len() > 1, "the minute has samples");
    let files = std::fs::read_dir(bundle.join("stacks"))?;
    let sizes = files.map(|file| Ok(file?.metadata()?.len()));
    Ok(Long {
        n_samples,
        bundle_bytes: sizes.sum::<Result<u64>>()?,
        cold,
        warm,
        flame,
        kept_bytes: kept.len() as u64 * 12,
    })
}

struct Both<'a>(Facets, &'a mut Kept);

impl Sink for Both<'_> {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        self.0.sample(sample, tables);
        self.1.sample(sample, tables);
    }
}

fn picture() -> Facets {
    let filter = Filter {
        event: EventChoice::All,
        ..Filter::default()
    };
    Facets::new(By::All, Shape::default(), filter)
}

/// Writes samples of the recording, one after the other and again, at the times they would
/// have at this rate.
fn write(data: &std::path::Path, bundle: &std::path::Path) -> Result<u64> {
    let mut samples: Vec<StackSample> = Vec::new();
    let mut none = NoSymbols;
    let mut importer = Importer::new(&mut none, &mut samples);
    importer.read_file(File::open(data)?)?;
    let tables = importer.into_tables().into_tables();
    ensure!(!samples.is_empty(), "the recording has samples");
    // The stacks of half an hour: a day does not have a million different ones.
    samples.truncate(50_000);
    let limits = Limits {
        max_bytes: 1 << 40,
        max_age: Duration::from_secs(1 << 30),
        segment_bytes: 64 << 20,
        segment_age: Duration::from_secs(1 << 30),
    };
    let node = Node {
        name: "bench".into(),
        kernel: String::new(),
        boot_id: "bench".into(),
    };
    let mut writer = BundleWriter::create(bundle, limits, node, Moment::from_ns(0))?;
    let n_samples = HOURS * 3600 * RATE * CORES;
    let mut batch = Vec::with_capacity(BATCH);
    for n in 0..n_samples {
        let (tick, cpu) = (n / CORES, n % CORES);
        let from = samples[usize::try_from(n)? % samples.len()];
        batch.push(StackSample {
            at: Moment::from_ns(1000 * SECOND + tick * SECOND / RATE + cpu * 1009),
            cpu: u32::try_from(cpu)?,
            ..from
        });
        if batch.len() == BATCH || n + 1 == n_samples {
            writer.append_stacks(&batch, &tables)?;
            writer.sync(batch[batch.len() - 1].at)?;
            batch.clear();
        }
    }
    writer.finish(Moment::from_ns((1000 + HOURS * 3600) * SECOND))?;
    Ok(n_samples)
}
