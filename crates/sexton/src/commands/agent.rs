//! `sexton agent`: the daemon. Wires configuration, signals, systemd, socket and page to the
//! agent itself, which is in `sexton-agent`.

mod act;
pub mod config;
mod export;
mod fleet;
pub mod kubernetes;
mod outlets;
mod page;
mod remedy;
mod ring;
mod scrape;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sexton_agent::{Agent, Budget, Level, Log, Member, Notify, Settings, Shared, serve_status};
use sexton_host::{Host, machine};
use sexton_sensors::{SENSORS, stacks, unit_files};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register;

use crate::cli::agent::{AgentArgs, AgentCommand};
use crate::cli::btf;
use crate::exit::Exit;
use crate::policy;
use config::Config;
use outlets::Outlets;
use remedy::Remedy;

/// How long one step of the agent takes: what comes meanwhile is kept together.
const BEAT: Duration = Duration::from_millis(500);

/// How often systemd is told what the agent does.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Runs until a signal comes, or checks a configuration.
pub fn run(args: &AgentArgs) -> Result<Exit> {
    match &args.command {
        Some(AgentCommand::CheckConfig { file }) => {
            settings(&Config::read(Some(file))?)?;
            eprintln!("{} is right", file.display());
            Ok(Exit::NothingFound)
        }
        Some(AgentCommand::Act { config, user }) => act::run(config.as_deref(), user),
        None => run_agent(args.config.as_deref()),
    }
}

fn run_agent(file: Option<&Path>) -> Result<Exit> {
    sexton_host::own::keep_memory_small();
    let config = Config::read(file)?;
    let settings = settings(&config)?;
    let stop = Arc::new(AtomicBool::new(false));
    let reload = Arc::new(AtomicBool::new(false));
    for (signal, flag) in [(SIGTERM, &stop), (SIGINT, &stop), (SIGHUP, &reload)] {
        register(signal, Arc::clone(flag)).context("cannot listen for signals")?;
    }
    let shared = Shared::default();
    let host = Arc::new(Host::live()?);
    take_types(&host, &config);
    let policy = settings.policy.clone();
    let mut agent = Agent::start(&host, settings, shared.clone(), log())?;
    if let Some(socket) = &config.socket {
        serve_status(socket, &shared)
            .with_context(|| format!("cannot listen on {}", socket.display()))?;
    }
    let scrape = scrape::Scrape::new();
    let shown = config.http.map(|_| scrape.tap());
    let outlets = Outlets::start(&config, &host, &mut agent, &shared)?;
    outlets.connect(&mut agent, shown);
    let page = page::Page::start(&config, policy, agent.bundle(), &shared, scrape)?;
    let mut log = log();
    let notify = Notify::from_environment();
    notify.say("READY=1\nSTATUS=recording; not judged yet");
    log(
        Level::Info,
        &format!("agent started, ring {}", config.ring.display()),
    );
    let mut heart = Heart::new(notify);
    while !stop.load(Ordering::Relaxed) {
        agent.step(BEAT);
        heart.beat(&shared);
        outlets.tell_status(&mut agent, &shared);
        page.rest();
        if reload.swap(false, Ordering::Relaxed) {
            heart.notify.say("RELOADING=1");
            reload_config(&mut agent, &outlets.remedy, file, &config, &mut log);
            renew_certificate(&page, &mut log);
            heart.notify.say("READY=1");
        }
    }
    heart.notify.say("STOPPING=1");
    log(Level::Info, "agent stops: sealing what is open");
    page.stop();
    // A bucket that does not answer must not cost the end of the ring.
    let finished = agent.finish();
    outlets.stop();
    finished?;
    if let Some(socket) = &config.socket {
        let _ = std::fs::remove_file(socket);
    }
    Ok(Exit::NothingFound)
}

/// Types that are missing are no reason not to start: sensors say what they do instead.
fn take_types(host: &Host, config: &Config) {
    if let Some(place) = &config.btf
        && !machine::has_type_information(host)
        && let Err(error) = btf::take_types_from(host, place)
    {
        let text = format!("no types of this kernel: {error:#}");
        log()(Level::Warning, &text);
    }
}

fn renew_certificate(page: &page::Page, log: &mut Log) {
    if let Err(error) = page.reload() {
        let text = format!("certificate not renewed, the old one holds: {error:#}");
        log(Level::Error, &text);
    }
}

/// Tables that changed and are read only at the start.
fn waiting_for_restart(old: &Config, new: &Config) -> Vec<String> {
    fn listen(it: &Config) -> impl PartialEq + '_ {
        (it.http, &it.socket, &it.token_file, &it.tls)
    }
    fn sensors(it: &Config) -> impl PartialEq + '_ {
        (it.hz, &it.btf)
    }
    let tables = [
        ("sensors", sensors(old) != sensors(new)),
        ("listen", listen(old) != listen(new)),
        ("judge.signatures", old.signatures != new.signatures),
        ("kubernetes", old.kubernetes != new.kubernetes),
        ("fleet", old.fleet != new.fleet),
        ("export", old.export != new.export),
    ];
    let changed = tables.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(name, _)| name.to_owned()).collect()
}

/// A file that is wrong changes nothing.
fn reload_config(
    agent: &mut Agent,
    remedy: &Remedy,
    file: Option<&Path>,
    old: &Config,
    log: &mut Log,
) {
    let read = Config::read(file).and_then(|config| Ok((settings(&config)?, config)));
    match read {
        Ok((settings, config)) => {
            let waiting = agent.reload(settings, waiting_for_restart(old, &config));
            remedy.reload(&config.remedy);
            let text = match waiting.is_empty() {
                true => "configuration reloaded".to_owned(),
                false => format!(
                    "configuration reloaded; restart the agent for changes of {}",
                    waiting.join(", ")
                ),
            };
            log(Level::Info, &text);
        }
        Err(error) => {
            let text = format!("configuration not reloaded, the old one holds: {error:#}");
            log(Level::Error, &text);
        }
    }
}

fn settings(config: &Config) -> Result<Settings> {
    let members = SENSORS
        .iter()
        .filter(|spec| !config.off.iter().any(|off| off == spec.name));
    let mut members: Vec<Member> = members.map(|spec| Member::new(spec)).collect();
    for (name, every) in &config.every {
        let member = members.iter_mut().find(|member| member.spec.name == name);
        member.into_iter().for_each(|member| member.every = *every);
    }
    let policy = policy::rules(config.policy.as_deref(), &config.signatures)?;
    let asked = unit_files::opener(&policy.signatures().units);
    Member::set_opener(&mut members, unit_files::NAME, &asked);
    let sampled = stacks::Settings {
        hz: config.hz,
        off_cpu: config.off_cpu,
    };
    Member::set_opener(&mut members, stacks::NAME, &sampled.opener());
    Ok(Settings {
        ring: config.ring.clone(),
        max_bytes: config.max_size,
        max_age: config.max_age,
        max_incidents: usize::try_from(config.incidents_max).unwrap_or(usize::MAX),
        max_incident_bytes: config.incidents_size,
        members,
        budget: Budget {
            cpu_ratio: config.cpu_percent / 100.0,
            memory_bytes: config.memory,
        },
        policy,
        version: env!("SEXTON_VERSION"),
    })
}

/// Lines go to standard error; the journal reads their level from the number before them.
fn log() -> Log {
    let is_journal = std::env::var_os("JOURNAL_STREAM").is_some();
    Box::new(move |level, text| {
        let (number, word) = match level {
            Level::Error => (3, "error"),
            Level::Warning => (4, "warning"),
            Level::Info => (6, "info"),
        };
        match is_journal {
            true => eprintln!("<{number}>{text}"),
            false => eprintln!("{word}: {text}"),
        }
    })
}

/// Tells systemd that the agent is alive, and what it does.
struct Heart {
    notify: Notify,
    beat: Instant,
    told: Instant,
}

impl Heart {
    fn new(notify: Notify) -> Self {
        Self {
            notify,
            beat: Instant::now(),
            told: Instant::now(),
        }
    }

    fn beat(&mut self, shared: &Shared) {
        let watchdog = self.notify.watchdog();
        if watchdog.is_some_and(|every| self.beat.elapsed() >= every / 2) {
            self.notify.say("WATCHDOG=1");
            self.beat = Instant::now();
        }
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            let status = shared.get();
            let state = status.state.as_deref().unwrap_or("not judged yet");
            let n = status.findings.len();
            self.notify
                .say(&format!("STATUS={state}; {n} findings open"));
        }
    }
}
