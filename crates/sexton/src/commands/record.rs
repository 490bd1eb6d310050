//! `sexton record`

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sexton_agent::{Member, Progress, Recorder};
use sexton_host::Host;
use sexton_report::record as report;
use sexton_sensors::{ON_REQUEST, SENSORS, SensorSpec, stacks};
use sexton_store::Limits;

use crate::cli::RecordArgs;
use crate::exit::Exit;
use crate::signals;

/// How often the line on the terminal is renewed.
const BEAT: Duration = Duration::from_millis(500);

/// The shortest beat of a sensor: the kernel's own counters are no finer.
const SHORTEST_BEAT: Duration = Duration::from_millis(10);

/// Records until the time is up or a signal comes.
pub fn run(args: &RecordArgs) -> Result<Exit> {
    args.btf.apply()?;
    sexton_host::own::keep_memory_small();
    let members = members(args)?;
    let stop = signals::asked_to_stop()?;
    let host = Arc::new(Host::live()?);
    let limits = Limits::ring(args.max_size, args.max_age);
    let mut recorder = Recorder::start(&host, &members, &args.output, limits)?;
    let began = Instant::now();
    let mut out = io::stderr().lock();
    let terminal = out.is_terminal() && !args.quiet;
    if !terminal && !args.quiet {
        writeln!(out, "{}", report::begun_line(&args.output, args.time))?;
    }
    while !stop.load(Ordering::Relaxed) && args.time.is_none_or(|time| began.elapsed() < time) {
        let left = args
            .time
            .map_or(BEAT, |time| time.saturating_sub(began.elapsed()));
        let progress = recorder.step(left.min(BEAT))?;
        if terminal {
            write!(
                out,
                "\r\x1b[K{}",
                line(progress, began.elapsed(), args.time)
            )?;
            out.flush()?;
        }
    }
    let (summary, progress) = recorder.finish()?;
    if terminal {
        write!(out, "\r\x1b[K")?;
    }
    report::summary(
        &mut out,
        &args.output,
        &summary_view(&summary, began.elapsed(), &progress),
    )?;
    let all_blind = members
        .iter()
        .all(|member| progress.blind.contains_key(member.spec.name));
    Ok(if all_blind {
        Exit::Blind
    } else {
        Exit::NothingFound
    })
}

fn line(progress: &Progress, elapsed: Duration, time: Option<Duration>) -> String {
    report::progress_line(&report::ProgressView {
        elapsed,
        time,
        n_records: progress.n_records,
        bytes: progress.bytes,
        n_blind: progress.blind.len() as u64,
    })
}

fn summary_view<'a>(
    summary: &sexton_store::Summary,
    elapsed: Duration,
    progress: &'a Progress,
) -> report::SummaryView<'a> {
    report::SummaryView {
        elapsed,
        n_records: summary.records,
        n_samples: summary.samples,
        bytes: summary.bytes,
        n_segments: summary.segments as u64,
        blind: progress
            .blind
            .iter()
            .map(|(sensor, why)| (sensor.as_str(), why.as_str()))
            .collect(),
    }
}

/// The sensors that were asked for, on the beats that were asked for.
fn members(args: &RecordArgs) -> Result<Vec<Member>> {
    let mut members: Vec<Member> = match &args.sensors[..] {
        [] => SENSORS.iter().map(|spec| Member::new(spec)).collect(),
        names => names
            .iter()
            .map(|name| Ok(Member::new(find(name)?)))
            .collect::<Result<_>>()?,
    };
    if args.ask_numa_stat {
        members.extend(ON_REQUEST.iter().map(|spec| Member::new(spec)));
    }
    if args.no_stacks {
        members.retain(|member| member.spec.name != stacks::NAME);
    }
    let sampled = stacks::Settings {
        hz: args.hz,
        off_cpu: args.off_cpu,
    };
    Member::set_opener(&mut members, stacks::NAME, &sampled.opener());
    for (name, every) in &args.every {
        if *every < SHORTEST_BEAT {
            bail!("--every {name}: {every:?} is shorter than {SHORTEST_BEAT:?}");
        }
        let member = members.iter_mut().find(|member| member.spec.name == name);
        member
            .with_context(|| format!("--every {name}: that sensor is not recorded"))?
            .every = *every;
    }
    Ok(members)
}

fn find(name: &str) -> Result<&'static SensorSpec> {
    let known = || {
        SENSORS
            .iter()
            .map(|spec| spec.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = SENSORS.iter().copied().find(|spec| spec.name == name);
    found.with_context(|| format!("no sensor is called {name}; there are {}", known()))
}
