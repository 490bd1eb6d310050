//! Starts an agent: takes the ring, goes on with what is in it, puts the sensors to work.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_analysis::live::{EVERY, Lives, Stepper, reach};
use sexton_host::{Host, clock};
use sexton_model::moment::Moment;
use sexton_sensors::SENSORS;
use sexton_store::{Boot, Bundle, BundleWriter, Limits, Ring, StoreError};

use super::judging::Retry;
use super::{Agent, AgentError, Level, Log};
use crate::boot_proof::{self, Watched};
use crate::budget::Meter;
use crate::findings::{FindingsLog, lives_of};
use crate::incidents::Incidents;
use crate::limit::OwnLimit;
use crate::pool::SensorPool;
use crate::recorder::{self, Progress};
use crate::settings::Settings;
use crate::status::{SCHEMA, Shared};

/// Segments are short, so that an incident holds little but its own time.
const SEGMENT_AGE: Duration = Duration::from_secs(600);

/// Sensors that read logs, and begin with what was written before.
pub(super) const LOGS: [&str; 2] = ["klog", "journal"];

impl Agent {
    /// Starts one. Fails when another agent has the ring, naming it.
    pub fn start(
        host: &Arc<Host>,
        settings: Settings,
        shared: Shared,
        mut log: Log,
    ) -> Result<Self, AgentError> {
        let ring = Ring::at(&settings.ring);
        let held = ring.hold().map_err(AgentError::Ring)?;
        let node = recorder::node(host).map_err(AgentError::Record)?;
        let boot = ring.boot_of(&node.boot_id).map_err(AgentError::Ring)?;
        let now = clock::now();
        for damaged in ring.mend(&boot).map_err(AgentError::Ring)? {
            let text = format!("the ring was damaged: see {}", damaged.display());
            log(Level::Warning, &text);
        }
        seal_earlier(&ring, &boot, &mut log);
        let open_before = boot_proof::open_before(&ring, &boot);
        let (stepper, known_until) = resume(&boot, &settings, now, &mut log);
        let known_until = known_until.map(|until| LOGS.map(|name| (name, until)));
        let writer = BundleWriter::create(&boot.records, limits(&settings), node.clone(), now);
        let mut writer = writer.map_err(AgentError::Ring)?;
        recorder::keep_raw(host, &mut writer).map_err(AgentError::Record)?;
        let findings = FindingsLog::open(&boot.findings, settings.max_age, node, now);
        let findings = findings.map_err(AgentError::Ring)?;
        let incidents = Incidents::open(&ring.incidents(), &boot.id);
        incidents.finish_earlier(&ring, &boot.id);
        let mut pool = SensorPool::start(host, &settings.members);
        pool.keep_stacks();
        let off = off(&settings);
        introduce(&shared, &settings, &boot.records);
        let mut agent = Self {
            settings,
            ring,
            boot,
            host: Arc::clone(host),
            pool,
            writer,
            findings,
            stepper,
            incidents,
            keeping: Retry::default(),
            meter: Meter::new(),
            limit: OwnLimit::find(host),
            limit_looked: Instant::now(),
            progress: Progress::default(),
            shared,
            log,
            tap: None,
            on_verdict: None,
            open_before,
            boot_proofs: Vec::new(),
            watched: Watched::default(),
            known_until: known_until.into_iter().flatten().collect(),
            synced: Instant::now(),
            bounded: None,
            trouble: None,
            off,
            _held: held,
        };
        agent.bound_if_due();
        agent.tell();
        agent.tell_findings(now);
        Ok(agent)
    }
}

/// What does not change of the status while it runs.
fn introduce(shared: &Shared, settings: &Settings, records: &Path) {
    shared.change(|status| {
        status.schema = SCHEMA.into();
        status.version = settings.version.into();
        status.pid = std::process::id();
        status.started_wall_ns = clock::wall_ns();
        status.ring.clone_from(&settings.ring);
        status.bundle = records.to_owned();
    });
}

fn limits(settings: &Settings) -> Limits {
    let ring = Limits::ring(settings.max_bytes, settings.max_age);
    Limits {
        segment_age: SEGMENT_AGE.min(ring.segment_age),
        ..ring
    }
}

/// The sensors that the settings turn off.
fn off(settings: &Settings) -> BTreeSet<String> {
    let members: Vec<&str> = settings.members.iter().map(|it| it.spec.name).collect();
    let off = SENSORS.iter().filter(|spec| !members.contains(&spec.name));
    off.map(|spec| spec.name.to_owned()).collect()
}

/// What a reboot left open is sealed, so that it can be kept and dropped like the rest.
fn seal_earlier(ring: &Ring, current: &Boot, log: &mut Log) {
    for boot in ring.boots().unwrap_or_default() {
        if boot.id != current.id
            && let Err(error) = seal(&boot)
        {
            let text = format!("cannot seal an earlier boot: {}", error.chain());
            log(Level::Warning, &text);
        }
    }
}

fn seal(boot: &Boot) -> Result<(), StoreError> {
    for folder in [&boot.records, &boot.findings] {
        if !folder.join("records/current.wal").exists() {
            continue;
        }
        let bundle = Bundle::open(folder)?;
        let end = bundle.span().map_or(bundle.created(), |span| *span.end());
        let node = bundle.node().clone();
        // No bounds: those of the ring are held elsewhere.
        let limits = Limits::ring(u64::MAX, Duration::from_secs(u64::from(u32::MAX)));
        BundleWriter::create(folder, limits, node, end)?.finish(end)?;
    }
    Ok(())
}

/// A stepper that knows what the ring holds of the last minutes, and which findings are open.
fn resume(
    boot: &Boot,
    settings: &Settings,
    now: Moment,
    log: &mut Log,
) -> (Stepper, Option<Moment>) {
    let lives = match lives_of(&boot.findings) {
        Ok((lived, _)) => Lives::resume(lived.into_iter().map(|lived| lived.life)),
        Err(_) => Lives::default(),
    };
    let mut stepper = Stepper::new(settings.policy.clone(), EVERY, lives);
    let Ok(bundle) = Bundle::open(&boot.records) else {
        return (stepper, None);
    };
    let reach_ns = u64::try_from(reach::USUAL.as_nanos()).unwrap_or(u64::MAX);
    let from = Moment::from_ns(now.as_ns().saturating_sub(reach_ns));
    for record in bundle.stream(Some(from..=now), None) {
        stepper.take(record);
    }
    stepper.skip_to(now);
    log(Level::Info, "continuing the ring of this boot");
    (stepper, bundle.span().map(|span| *span.end()))
}
