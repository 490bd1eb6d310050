//! `sexton profile import`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sexton_model::moment::Moment;
use sexton_model::stack::{NameId, StackSample, StackTables};
use sexton_profile::import::Sink;
use sexton_store::{BundleWriter, Limits, Node, StoreError, Summary};

use super::input::{self, Answer};
use crate::cli::profile::{ImportArgs, SymbolArgs};
use crate::exit::Exit;

/// Samples that go to the store at once.
const BATCH: usize = 8192;

/// Writes samples to a bundle, in batches.
struct ToBundle {
    writer: BundleWriter,
    batch: Vec<StackSample>,
    /// Events in the order of the recording's list, then in that of the samples.
    events: Vec<NameId>,
    latest: Moment,
    failed: Option<StoreError>,
}

impl ToBundle {
    fn flush(&mut self, tables: &StackTables) {
        if self.failed.is_some() || self.batch.is_empty() {
            return;
        }
        let kept = self.writer.append_stacks(&self.batch, tables);
        self.failed = kept.and_then(|()| self.writer.sync(self.latest)).err();
        self.batch.clear();
    }
}

/// More events than this are not written down.
const MAX_EVENTS: usize = 256;

impl ToBundle {
    fn add_event(&mut self, event: NameId) {
        if self.events.len() < MAX_EVENTS && !self.events.contains(&event) {
            self.events.push(event);
        }
    }
}

impl Sink for ToBundle {
    fn events(&mut self, names: &[NameId], _: &StackTables) {
        names.iter().for_each(|event| self.add_event(*event));
    }

    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        self.latest = self.latest.max(sample.at);
        if self.events.last() != Some(&sample.event) {
            self.add_event(sample.event);
        }
        self.batch.push(*sample);
        if self.batch.len() >= BATCH {
            self.flush(tables);
        }
    }
}

/// Reads recordings into a bundle.
pub fn run(args: &ImportArgs) -> Result<Exit> {
    if args.output.exists() {
        bail!(
            "{} is there already: choose another name",
            args.output.display()
        );
    }
    let (answer, (n_kept, summary)) = into_bundle(&args.files, &args.symbols, &args.output)?;
    writeln!(
        io::stdout(),
        "Imported {n_kept} samples into {}: {} bytes{}.",
        args.output.display(),
        summary.bytes,
        per_sample(summary.bytes, n_kept)
    )?;
    Ok(answer.exit())
}

/// Reads recordings into a bundle that is not there yet. Gives back how many samples it
/// holds, too.
pub fn into_bundle(
    files: &[PathBuf],
    symbols: &SymbolArgs,
    output: &Path,
) -> Result<(Answer, (u64, Summary))> {
    let mut sink = ToBundle {
        writer: create(output)?,
        batch: Vec::with_capacity(BATCH),
        events: Vec::new(),
        latest: Moment::from_ns(0),
        failed: None,
    };
    let answer = input::read(files, symbols, &mut sink)?;
    sink.flush(&answer.tables);
    if let Some(error) = sink.failed {
        return Err(error).with_context(|| format!("cannot write {}", output.display()));
    }
    if sink.events.len() > 1 {
        let name = |event: &NameId| answer.tables.name(*event).to_owned();
        let names: Vec<String> = sink.events.iter().map(name).collect();
        sink.writer.name_events(&names)?;
    }
    let n_kept = sink.writer.n_samples();
    let summary = sink.writer.finish(sink.latest)?;
    Ok((answer, (n_kept, summary)))
}

/// A bundle of another machine: nothing is dropped from it, and it has no boot of ours.
fn create(folder: &Path) -> Result<BundleWriter> {
    let limits = Limits {
        max_bytes: 1 << 50,
        max_age: Duration::from_secs(100 * 366 * 86_400),
        segment_bytes: 64 << 20,
        segment_age: Duration::from_secs(100 * 366 * 86_400),
    };
    let node = Node {
        name: "imported".to_owned(),
        kernel: String::new(),
        boot_id: "imported".to_owned(),
    };
    Ok(BundleWriter::create(
        folder,
        limits,
        node,
        Moment::from_ns(0),
    )?)
}

/// What a sample takes; nothing where there is none.
fn per_sample(bytes: u64, n_samples: u64) -> String {
    if n_samples == 0 {
        return String::new();
    }
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let (bytes, n) = (bytes as f64, n_samples as f64);
    format!(", {:.1} for each sample", bytes / n)
}
