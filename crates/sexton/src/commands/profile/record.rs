//! `sexton profile record`

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use sexton_host::perf::Target;
use sexton_host::{Host, clock, machine};
use sexton_model::gap::Gap;
use sexton_sensors::stacks::one::{OneProcess, has_exited};
use sexton_store::{BundleWriter, Limits, Node};

use crate::cli::profile::RecordArgs;
use crate::exit::Exit;
use crate::signals;

/// How often samples are taken from the kernel. The end of the process is noticed as soon.
const BEAT: Duration = Duration::from_millis(20);

/// More than anyone keeps of one process.
const MAX_BYTES: u64 = 1 << 40;
const MAX_AGE: Duration = Duration::from_secs(366 * 86_400);

/// What is recorded.
enum Subject {
    Process(u32),
    Program(Child),
}

impl Subject {
    /// Whether it is over.
    fn is_over(&mut self, host: &Host) -> Result<bool> {
        match self {
            Self::Process(pid) => Ok(has_exited(host, *pid)),
            Self::Program(child) => Ok(child.try_wait()?.is_some()),
        }
    }
}

/// Records until the process exits, the time is up, or a signal comes.
pub fn run(args: &RecordArgs) -> Result<Exit> {
    if args.output.exists() {
        bail!(
            "{} is there already: choose another name with -o",
            args.output.display()
        );
    }
    let stop = signals::asked_to_stop()?;
    let host = Host::live()?;
    let target = args.pid.map_or(Target::Started, Target::Process);
    let mut one =
        OneProcess::open(&host, target, args.hz, args.off_cpu).map_err(|gap| refusal(&gap))?;
    // Before the program starts: without a place for its samples there is nothing to start it for.
    let mut writer = create(&host, &args.output)?;
    // It must be this thread that starts the program: that hands on what it is sampled by.
    let mut subject = match args.pid {
        Some(pid) => Subject::Process(pid),
        None => {
            // A name that could not be used does not have to be chosen anew.
            let forget = |_: &anyhow::Error| drop(fs::remove_dir_all(&args.output));
            Subject::Program(start(args).inspect_err(forget)?)
        }
    };
    let began = Instant::now();
    loop {
        let is_over = subject.is_over(&host)?
            || stop.load(Ordering::Relaxed)
            || args.time.is_some_and(|time| began.elapsed() >= time);
        if let Some(batch) = one.poll(&host) {
            writer.append_stacks(&batch.samples, &batch.tables)?;
            writer.sync(clock::now())?;
        }
        if is_over {
            break;
        }
        thread::sleep(BEAT);
    }
    let summary = writer.finish(clock::now())?;
    tell_end(&mut subject)?;
    writeln!(
        io::stderr(),
        "sexton: recorded {} samples in {:.1} s into {}",
        summary.samples,
        began.elapsed().as_secs_f64(),
        args.output.display()
    )?;
    tell_lacks(&one, args.hz)
}

/// Says what the recording lacks, and how the command ends for it.
fn tell_lacks(one: &OneProcess, hz: u32) -> Result<Exit> {
    let mut out = io::stderr();
    let lacks = one.lacks();
    if let Some(kernel) = lacks.kernel {
        writeln!(out, "sexton: {kernel}")?;
    }
    for lost in &lacks.lost {
        writeln!(out, "sexton: {lost}")?;
    }
    if one.n_samples() == 0 && one.n_waits() > 0 {
        let text = "it used too little processor time for a sample; its waits: --event off-cpu";
        writeln!(out, "sexton: {text}")?;
    } else if one.n_samples() == 0 {
        writeln!(
            out,
            "sexton: no samples: it used less processor time than {} ms; a higher --hz samples \
             more often",
            1000_u32.div_ceil(hz)
        )?;
        return Ok(Exit::Blind);
    }
    Ok(if lacks.lost.is_empty() {
        Exit::NothingFound
    } else {
        Exit::Blind
    })
}

/// Says how a program ended, unless it ended well.
fn tell_end(subject: &mut Subject) -> Result<()> {
    let Subject::Program(child) = subject else {
        return Ok(());
    };
    let mut out = io::stderr();
    match child.try_wait()? {
        Some(status) if status.success() => {}
        Some(status) => writeln!(out, "sexton: the program ended with {status}")?,
        None => writeln!(out, "sexton: the program still runs (pid {})", child.id())?,
    }
    Ok(())
}

fn start(args: &RecordArgs) -> Result<Child> {
    let [program, arguments @ ..] = &args.command[..] else {
        bail!("no program is named: write sexton profile record -- COMMAND");
    };
    Command::new(program)
        .args(arguments)
        .spawn()
        .with_context(|| format!("cannot start {}", program.to_string_lossy()))
}

fn create(host: &Host, folder: &Path) -> Result<BundleWriter> {
    let node = Node {
        name: machine::host_name(host)?,
        kernel: machine::kernel_release(host)?,
        boot_id: machine::boot_id(host)?,
    };
    let limits = Limits::ring(MAX_BYTES, MAX_AGE);
    Ok(BundleWriter::create(folder, limits, node, clock::now())?)
}

/// Why a process cannot be sampled, and what to do.
fn refusal(gap: &Gap) -> anyhow::Error {
    match &gap.remedy {
        Some(remedy) => anyhow!("{}; {remedy}", gap.text),
        None => anyhow!("{}", gap.text),
    }
}
