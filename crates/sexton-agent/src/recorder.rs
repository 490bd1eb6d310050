//! Keeps what a pool says in a bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_host::{Host, HostError, clock, machine, own};
use sexton_model::fact::sexton::{SEXTON_SENSORS, SensorList};
use sexton_model::gap::Why;
use sexton_model::record::{Body, Record, Sink};
use sexton_model::stack::StackBatch;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_store::{BundleWriter, Limits, Node, StoreError, Summary};

use crate::pool::{Member, SensorPool};

/// Files that say what a node is, kept as they are. Not the kernel's command line, which
/// may hold secrets: the `host` sensor tells what matters of it.
const RAW: [&str; 3] = ["/etc/os-release", "/proc/cgroups", "/proc/self/mountinfo"];

/// How often what was recorded is made safe. What a kill may cost.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// How often memory that is not needed any more is given back, and after how many records
/// of one step that is done at once.
const GIVE_BACK_EVERY: Duration = Duration::from_secs(60);
const MANY_RECORDS: usize = 2_000;

/// How often a recording says which sensors there are: its oldest part may be dropped.
const LIST_SENSORS_EVERY: Duration = Duration::from_secs(600);

/// Why a recording could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The node does not say which one it is.
    #[error("cannot tell which node this is")]
    Node(#[source] HostError),
    /// The bundle could not be written.
    #[error("cannot record")]
    Store(#[source] StoreError),
}

/// How far a recording is.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Records kept so far.
    pub n_records: u64,
    /// Samples of stacks kept so far.
    pub n_samples: u64,
    /// Size of the bundle.
    pub bytes: u64,
    /// Sensors that have said anything.
    pub heard: BTreeSet<String>,
    /// Sensors that see nothing now, and why.
    pub blind: BTreeMap<String, String>,
    /// Sensors that want a privilege which this process lacks, to see anything or to see more.
    pub denied: BTreeSet<String>,
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    pool: SensorPool,
    writer: BundleWriter,
    progress: Progress,
    synced: Instant,
    gave_back: Instant,
    listed: Option<Instant>,
}

impl Recorder {
    /// Begins one, or continues one of this boot.
    pub fn start(
        host: &Arc<Host>,
        members: &[Member],
        folder: &Path,
        limits: Limits,
    ) -> Result<Self, RecordError> {
        let node = node(host)?;
        let mut writer =
            BundleWriter::create(folder, limits, node, clock::now()).map_err(RecordError::Store)?;
        keep_raw(host, &mut writer)?;
        let mut pool = SensorPool::start(host, members);
        pool.keep_stacks();
        Ok(Self {
            pool,
            writer,
            progress: Progress::default(),
            synced: Instant::now(),
            gave_back: Instant::now(),
            listed: None,
        })
    }

    /// Records for a while.
    pub fn step(&mut self, time: Duration) -> Result<&Progress, RecordError> {
        self.list_sensors()?;
        let records = self.pool.collect(time);
        keep(&mut self.writer, &mut self.progress, &records)?;
        let stacks = self.pool.take_stacks();
        keep_stacks(&mut self.writer, &mut self.progress, &stacks)?;
        if self.synced.elapsed() >= SYNC_EVERY {
            self.writer.sync(clock::now()).map_err(RecordError::Store)?;
            self.writer
                .seal_if_due(clock::now())
                .map_err(RecordError::Store)?;
            self.synced = Instant::now();
        }
        let n_records = records.len();
        drop((records, stacks));
        if n_records >= MANY_RECORDS || self.gave_back.elapsed() >= GIVE_BACK_EVERY {
            own::give_back_memory();
            self.gave_back = Instant::now();
        }
        Ok(&self.progress)
    }

    fn list_sensors(&mut self) -> Result<(), RecordError> {
        let is_due = |at: Instant| at.elapsed() >= LIST_SENSORS_EVERY;
        if !self.listed.is_none_or(is_due) {
            return Ok(());
        }
        self.listed = Some(Instant::now());
        keep(&mut self.writer, &mut self.progress, &sensor_list())
    }

    /// Ends it: everything is sealed.
    pub fn finish(self) -> Result<(Summary, Progress), RecordError> {
        let Self {
            pool,
            mut writer,
            mut progress,
            ..
        } = self;
        let (records, stacks) = pool.stop_with_stacks();
        keep(&mut writer, &mut progress, &records)?;
        keep_stacks(&mut writer, &mut progress, &stacks)?;
        let summary = writer.finish(clock::now()).map_err(RecordError::Store)?;
        Ok((summary, progress))
    }
}

fn keep(
    writer: &mut BundleWriter,
    progress: &mut Progress,
    records: &[Record],
) -> Result<(), RecordError> {
    writer.append(records).map_err(RecordError::Store)?;
    progress.n_records += records.len() as u64;
    progress.bytes = writer.bytes();
    for record in records {
        progress.note(record);
    }
    Ok(())
}

fn keep_stacks(
    writer: &mut BundleWriter,
    progress: &mut Progress,
    stacks: &[StackBatch],
) -> Result<(), RecordError> {
    for batch in stacks {
        let kept = writer.append_stacks(&batch.samples, &batch.tables);
        kept.map_err(RecordError::Store)?;
        progress.n_samples += batch.samples.len() as u64;
    }
    Ok(())
}

impl Progress {
    /// A sensor that says a gap about itself is blind until it says something else.
    pub(crate) fn note(&mut self, record: &Record) {
        if !self.heard.contains(record.sensor.as_ref()) {
            self.heard.insert(record.sensor.to_string());
        }
        match &record.body {
            Body::Gap(gap) if record.subject.kind == SubjectKind::Sensor => {
                self.blind
                    .insert(record.sensor.to_string(), gap.text.clone());
                if gap.why == Why::Denied {
                    self.denied.insert(record.sensor.to_string());
                }
            }
            Body::Sample { .. } | Body::Event { .. } if !self.blind.is_empty() => {
                self.blind.remove(record.sensor.as_ref());
            }
            _ => {}
        }
    }
}

/// Says which sensors this sexton has, so that a later one does not take those that came
/// after it for sensors that failed.
pub(crate) fn sensor_list() -> Vec<Record> {
    let sensors = sexton_sensors::SENSORS.iter();
    let sensors = sensors.map(|spec| spec.name.to_owned()).collect();
    let mut out = Sink::new("sexton", clock::now());
    let list = SensorList { sensors };
    out.event(out.now(), &Subject::node(), &SEXTON_SENSORS, list);
    out.into_records()
}

/// Which node this is.
pub(crate) fn node(host: &Host) -> Result<Node, RecordError> {
    Ok(Node {
        name: machine::host_name(host).map_err(RecordError::Node)?,
        kernel: machine::kernel_release(host).map_err(RecordError::Node)?,
        boot_id: machine::boot_id(host).map_err(RecordError::Node)?,
    })
}

/// A file that is not there, or not ours to read, is left out: rules see that it is.
pub(crate) fn keep_raw(host: &Host, writer: &mut BundleWriter) -> Result<(), RecordError> {
    for path in RAW {
        if let Ok(content) = host.read(path) {
            let name = Path::new(path.trim_start_matches('/'));
            writer.add_raw(name, &content).map_err(RecordError::Store)?;
        }
    }
    Ok(())
}
