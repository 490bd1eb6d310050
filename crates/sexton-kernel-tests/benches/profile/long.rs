//! A heat map of twelve hours of two cores at 99 samples a second: 8.6 million samples of
//! the stacks of the recording, in a bundle.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sexton_model::moment::Moment;
use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::filter::{EventChoice, Filter, TimePoint};
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::heatmap::Shape;
use sexton_profile::heatmap::facets::{By, Facets};
use sexton_profile::import::Importer;
use sexton_profile::kept::Kept;
use sexton_profile::merge::Merger;
use sexton_profile::names::Suffixes;
use sexton_profile::symbols::NoSymbols;
use sexton_store::{Bundle, BundleWriter, Limits, Node, StackPiece};

use crate::peers::{Figure, RUNS, best, run, run_once};

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
    /// The whole command, with files that are not in memory.
    pub(crate) cold: Figure,
    /// The same with files that are.
    pub(crate) cached: Figure,
    /// The picture again, from samples in memory.
    pub(crate) warm: Duration,
    /// A flame graph of a minute in the middle: the whole command, files in memory.
    pub(crate) minute: Figure,
    /// The same from samples in memory.
    pub(crate) flame: Duration,
    pub(crate) kept_bytes: u64,
}

/// Makes the bundle and asks it.
pub(crate) fn measure(sexton: &Path, data: &Path) -> Result<Long> {
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("bundle");
    let n_samples = write(data, &bundle)?;
    let name = bundle.display().to_string();
    let heatmap = ["profile", "heatmap", "--format", "json", "--from", &name];
    let middle = [
        "profile", "flame", "--format", "svg", "--from", &name, "--from", "6h", "--to", "6h1m",
    ];
    let mut cold = None;
    for _ in 0..RUNS {
        forget(&bundle)?;
        best(
            &mut cold,
            run_once("sexton profile heatmap", sexton, &heatmap)?,
        );
    }
    let cold = cold.context("it was never run")?;
    let cached = run("sexton profile heatmap", sexton, &heatmap)?;
    let minute = run("sexton profile flame", sexton, &middle)?;
    let (kept, tables) = keep(&bundle)?;
    let mut one_by_one = picture();
    kept.ask(&tables, &mut one_by_one);
    let began = Instant::now();
    let mut again = picture();
    again.ask(&kept, &tables);
    let grids = again.grids();
    let warm = began.elapsed();
    ensure!(
        grids.is_some() && grids == one_by_one.grids(),
        "the same samples make the same picture"
    );
    let files = std::fs::read_dir(bundle.join("stacks"))?;
    let sizes = files.map(|file| Ok(file?.metadata()?.len()));
    Ok(Long {
        n_samples,
        bundle_bytes: sizes.sum::<Result<u64>>()?,
        cold,
        cached,
        warm,
        minute,
        flame: flame(&kept, &tables)?,
        kept_bytes: kept.len() as u64 * 12,
    })
}

/// Has the kernel write out and drop what it keeps of these files, and of no others.
fn forget(bundle: &Path) -> Result<()> {
    for file in std::fs::read_dir(bundle.join("stacks"))? {
        let file = File::open(file?.path())?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

fn keep(bundle: &Path) -> Result<(Kept, StackTables)> {
    let mut kept = Kept::default();
    let mut merger = Merger::default();
    for piece in Bundle::open(bundle)?.stacks(None) {
        if let StackPiece::Chunk(chunk) = piece {
            merger.feed(chunk.segment, &chunk.samples, &chunk.tables, &mut kept);
        }
    }
    Ok((kept, merger.into_tables()))
}

fn flame(kept: &Kept, tables: &StackTables) -> Result<Duration> {
    let began = Instant::now();
    let mut minute = StackCounts::new(Filter {
        from: Some(TimePoint::Offset(HOURS / 2 * 3600 * SECOND)),
        to: Some(TimePoint::Offset((HOURS / 2 * 3600 + 60) * SECOND)),
        ..Filter::default()
    });
    kept.ask(tables, &mut minute);
    let tree = Tree::of(&minute, tables, Suffixes::default());
    let took = began.elapsed();
    ensure!(tree.nodes.len() > 1, "the minute has samples");
    Ok(took)
}

fn picture() -> Facets {
    let filter = Filter {
        event: EventChoice::OfCores,
        ..Filter::default()
    };
    Facets::new(By::All, Shape::default(), filter)
}

/// Writes samples of the recording, one after the other and again, at the times they would
/// have at this rate.
fn write(data: &Path, bundle: &Path) -> Result<u64> {
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
        // As the agent has them.
        segment_bytes: 4 << 20,
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
