//! `sexton check`: counts what can be counted at once, and compares it with limits.
//!
//! Loads no BPF program and walks no tree of cgroups to its end.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sexton_agent::{Member, SensorPool};
use sexton_analysis::gate::{self, GatePolicy, Seen};
use sexton_host::{Host, clock};
use sexton_model::fact::container::CONTAINER_RUNNING;
use sexton_model::fact::sexton::SEXTON_POLL_NS;
use sexton_model::gap::{Gap, Why};
use sexton_model::gate::{Check, Passed, worst};
use sexton_model::record::{Body, Record, Sink};
use sexton_model::subject::Subject;
use sexton_model::timeline::Records;
use sexton_report::check as report;
use sexton_sensors::units::Places;
use sexton_sensors::{SENSORS, memcg, unit_files, units};
use sexton_signatures::Signatures;

use crate::cli::{CheckArgs, CheckFormat};
use crate::exit::Exit;
use crate::{policy, terminal};

/// Sensors that answer at once, and the checks that need them.
const QUICK: [(&str, &str); 14] = [
    ("cores", "cpu_saturated"),
    ("host", "cpu_saturated"),
    ("pressure", "cpu_saturated"),
    ("containers", "young_containers"),
    ("klog", "nic_resets"),
    ("nics", "nic_resets"),
    ("pressure", "memory_pressure"),
    ("pressure", "io_pressure"),
    ("klog", "oom_kills"),
    ("filesystems", "bad_filesystems"),
    ("klog", "bad_filesystems"),
    ("processes", "defunct_processes"),
    ("processes", "uninterruptible_tasks"),
    ("limits", "limit_used"),
];

/// Runtimes that the sensor may not speak with, and their sockets.
const OTHER_RUNTIMES: [(&str, &str); 2] = [
    ("containerd", "/run/containerd/containerd.sock"),
    ("cri-o", "/run/crio/crio.sock"),
];

/// How often a sensor is asked whether it has something.
const BEAT: Duration = Duration::from_millis(10);

/// Whoever has not answered by then is unknown. node-problem-detector waits 5 s.
const DEADLINE: Duration = Duration::from_secs(2);

/// Makes the checks and writes them.
pub fn run(args: &CheckArgs) -> Result<Exit> {
    let mut policy = policy::read(args.policy.as_deref())?.gate;
    policy.shape = args.shape.clone().or(policy.shape);
    let signatures = args.signatures.read()?;
    known_shape(&signatures, policy.shape.as_deref())?;
    for name in &args.only {
        if gate::limits().all(|limit| limit.name != name) {
            let known: Vec<&str> = gate::limits().map(|limit| limit.name).collect();
            bail!("no check is called {name}; there are {}", known.join(", "));
        }
    }
    let host = Arc::new(Host::live()?);
    let checks = look(&host, &signatures, &policy, &args.only);
    if checks.is_empty() {
        bail!("the policy leaves no check to make");
    }
    let mut written = Vec::new();
    write(&mut written, args, &checks)?;
    match &args.output {
        Some(file) => replace(file, &written)?,
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            out.write_all(&written)?;
            out.flush()?;
        }
    }
    Ok(exit(args.format.format(), worst(&checks)))
}

fn exit(format: CheckFormat, worst: Passed) -> Exit {
    match (worst, format) {
        (Passed::Yes, _) => Exit::NothingFound,
        // Monitoring plugins: 1 is a warning, 2 is critical.
        (Passed::No, CheckFormat::Nagios) => Exit::Failed,
        (Passed::No, _) => Exit::Found,
        (Passed::Unknown, _) => Exit::Blind,
    }
}

fn write(out: &mut dyn Write, args: &CheckArgs, checks: &[Check]) -> io::Result<()> {
    match args.format.format() {
        CheckFormat::Text if args.output.is_some() => {
            report::text(out, checks, sexton_report::Paint::Plain)
        }
        CheckFormat::Text => report::text(out, checks, terminal::paint()),
        CheckFormat::Json => report::json(out, checks),
        CheckFormat::Junit => report::junit(out, checks),
        CheckFormat::Sarif => report::sarif(out, env!("SEXTON_VERSION"), checks),
        CheckFormat::Nagios => report::nagios(out, checks),
        CheckFormat::Npd => report::npd(out, checks),
        CheckFormat::Prom => report::prom(out, checks),
    }
}

/// Writes a file so that a reader sees the old one or the new one, never a part. Readable
/// by all: whoever collects it runs as somebody else.
fn replace(file: &Path, content: &[u8]) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let written = tempfile::Builder::new()
        .prefix(".sexton-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .and_then(|mut temporary| {
            temporary.write_all(content)?;
            temporary.persist(file).map_err(|error| error.error)
        });
    written.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

/// Whether the shape that is given is one.
fn known_shape(signatures: &Signatures, shape: Option<&str>) -> Result<()> {
    if let Some(name) = shape.filter(|name| signatures.units.shape(name).is_none()) {
        let shapes = signatures.units.shapes.iter();
        let known: Vec<&str> = shapes.map(|shape| &*shape.name).collect();
        bail!("no shape is called {name}; there are {}", known.join(", "));
    }
    Ok(())
}

fn look(
    host: &Arc<Host>,
    signatures: &Arc<Signatures>,
    policy: &GatePolicy,
    only: &[String],
) -> Vec<Check> {
    let is_wanted = |check: &str| {
        !policy.is_skipped(check) && (only.is_empty() || only.iter().any(|name| name == check))
    };
    thread::scope(|scope| {
        let wants_units = is_wanted("failed_units") || is_wanted("restarts_per_hour");
        let units = wants_units.then(|| {
            scope.spawn(|| {
                let places = Places {
                    within: DEADLINE,
                    ..Places::default()
                };
                units::survey(host, &places)
            })
        });
        let files = is_wanted("unwanted_units").then(|| UnitFiles::read(host, signatures, policy));
        let mut records = ask_sensors(host, is_wanted);
        let memory = memcg::tally(host, |total| gate::enough_live(total, policy));
        let units = units.map(|units| units.join().unwrap_or_else(|_| Err(panicked())));
        let nobody_looked = panicked();
        records.extend(files.into_iter().flat_map(UnitFiles::records));
        let records = Records::new(records);
        let seen = Seen {
            memory: &memory,
            units: units.as_ref().map_or(Err(&nobody_looked), Result::as_ref),
            records: &records,
            other_runtimes: &other_runtimes(host),
            signatures,
        };
        gate::judge(&seen, policy, only)
    })
}

fn panicked() -> Gap {
    Gap::new("units", Why::Bug, "the look at units ended in a panic")
}

/// A look at the files of units, in a thread of its own: a folder of them may lie on a
/// filesystem that does not answer.
struct UnitFiles {
    told: mpsc::Receiver<Vec<Record>>,
    until: Instant,
}

impl UnitFiles {
    fn read(host: &Arc<Host>, signatures: &Arc<Signatures>, policy: &GatePolicy) -> Self {
        let (tell, told) = mpsc::channel();
        let (host, shape) = (Arc::clone(host), policy.shape.clone());
        let signatures = Arc::clone(signatures);
        // Not waited for: it ends with the process. Nobody listens any more if it is late.
        thread::spawn(move || {
            let records = unit_files::of_use(&host, &signatures.units, shape.as_deref());
            tell.send(records).ok();
        });
        Self {
            told,
            until: Instant::now() + DEADLINE,
        }
    }

    fn records(self) -> Vec<Record> {
        let left = self.until.saturating_duration_since(Instant::now());
        self.told.recv_timeout(left).unwrap_or_else(|_| {
            let text = "files of units could not be read in time";
            let mut out = Sink::new(unit_files::NAME, clock::now());
            let gap = Gap::new(unit_files::NAME, Why::Overrun, text);
            out.gap(&Subject::node(), gap);
            out.into_records()
        })
    }
}

/// Runtimes whose socket is there and that the sensor of containers does not speak with.
fn other_runtimes(host: &Host) -> Vec<&'static str> {
    let is_there = |socket: &str| {
        let absent = |error: &sexton_host::HostError| error.is_absent();
        !host.socket(socket).as_ref().is_err_and(absent)
    };
    let others = OTHER_RUNTIMES.iter().filter(|(_, socket)| is_there(socket));
    others.map(|(name, _)| *name).collect()
}

/// One answer of each quick sensor that some check needs.
fn ask_sensors(host: &Arc<Host>, is_wanted: impl Fn(&str) -> bool) -> Vec<Record> {
    let is_needed = |sensor: &str| {
        QUICK
            .iter()
            .any(|(name, check)| *name == sensor && is_wanted(check))
    };
    let members: Vec<Member> = SENSORS
        .iter()
        .filter(|spec| is_needed(spec.name))
        .map(|spec| Member::new(spec).every(BEAT))
        .collect();
    let mut waiting: Vec<&str> = members.iter().map(|member| member.spec.name).collect();
    let mut pool = SensorPool::start(host, &members);
    let until = Instant::now() + DEADLINE;
    let mut all = Vec::new();
    while !waiting.is_empty() && Instant::now() < until {
        let records = pool.collect(BEAT / 2);
        waiting.retain(|sensor| !records.iter().any(|record| answers(record, sensor)));
        all.extend(records);
    }
    // Not told to stop and waited for: their threads end with the process.
    all
}

/// Whether a record shows that a sensor has said all it can say at once.
fn answers(record: &Record, sensor: &str) -> bool {
    match &record.body {
        Body::Gap(gap) => gap.sensor == sensor,
        // A daemon that is asked over a socket takes a moment.
        Body::Sample { fact, .. } if sensor == "containers" => *fact == &CONTAINER_RUNNING,
        Body::Sample { fact, .. } => {
            *fact == &SEXTON_POLL_NS && record.subject.name.as_ref() == sensor
        }
        Body::Event { .. } => false,
    }
}
