//! The configuration of an agent, as people write it. What is unknown or out of range stops
//! the start, with its line and its key.

pub mod export;
pub mod fleet;
pub mod kubernetes;
mod listen;
mod reader;
pub mod remedy;

use std::fs::File;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use sexton_sensors::{SENSORS, stacks};
use sexton_store::Limits;

use crate::cli::agent::SOCKET;
use crate::quantity;
use export::ExportConfig;
use fleet::FleetConfig;
use kubernetes::KubernetesConfig;
pub use listen::TlsFiles;
use reader::{Entry, Reader, Wrong};
use remedy::RemedyConfig;

/// The file that is read if none is named and it is there.
pub const USUAL: &str = "/etc/sexton/agent.toml";

/// A configuration is a page; more is a mistake in the name of the file.
const MAX_BYTES: u64 = 1 << 20;

/// The shortest beat of a sensor: the kernel's own counters are no finer.
const SHORTEST_BEAT: Duration = Duration::from_millis(10);

/// The shortest wait that may count: shorter ones are too many.
const SHORTEST_WAIT: Duration = Duration::from_micros(100);

/// What an agent is told to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub ring: PathBuf,
    pub max_size: u64,
    pub max_age: Duration,
    pub incidents_max: u64,
    pub incidents_size: u64,
    pub socket: Option<PathBuf>,
    pub http: Option<SocketAddr>,
    pub token_file: Option<PathBuf>,
    pub tls: Option<TlsFiles>,
    pub off: Vec<String>,
    pub hz: u32,
    pub off_cpu: Option<Duration>,
    pub every: Vec<(String, Duration)>,
    pub btf: Option<PathBuf>,
    pub cpu_percent: f64,
    pub memory: u64,
    pub policy: Option<PathBuf>,
    pub signatures: Vec<PathBuf>,
    pub kubernetes: KubernetesConfig,
    pub remedy: RemedyConfig,
    pub fleet: FleetConfig,
    pub export: ExportConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ring: "/var/lib/sexton".into(),
            max_size: 2 << 30,
            max_age: Duration::from_secs(7 * 86_400),
            incidents_max: 20,
            incidents_size: 1 << 30,
            socket: Some(SOCKET.into()),
            http: Some(SocketAddr::from(([127, 0, 0, 1], 8642))),
            token_file: None,
            tls: None,
            off: Vec::new(),
            hz: stacks::DEFAULT_RATE_HZ,
            off_cpu: None,
            every: Vec::new(),
            btf: None,
            cpu_percent: 2.0,
            memory: 96 << 20,
            policy: None,
            signatures: Vec::new(),
            kubernetes: KubernetesConfig::default(),
            remedy: RemedyConfig::default(),
            fleet: FleetConfig::default(),
            export: ExportConfig::default(),
        }
    }
}

impl Config {
    /// Reads a file: the one that is named, or the usual one if it is there. Without either,
    /// every default holds.
    pub fn read(file: Option<&Path>) -> Result<Self> {
        let usual = Path::new(USUAL);
        let Some(path) = file.or(usual.exists().then_some(usual)) else {
            return Ok(Self::default());
        };
        let mut text = String::new();
        File::open(path)
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
            .with_context(|| format!("cannot read {}", path.display()))?;
        if text.len() as u64 > MAX_BYTES {
            bail!(
                "{} is larger than a configuration may be (1 MiB)",
                path.display()
            );
        }
        let parsed = Self::parse(&text);
        parsed.map_err(|wrong| anyhow::anyhow!("{}:{}: {}", path.display(), wrong.line, wrong.text))
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        let reader = Reader { text };
        let mut config = Self::default();
        for entry in &reader.entries()? {
            match entry.name() {
                "ring" => reader.each(entry, |key| config.ring_key(&reader, key))?,
                "listen" => config.listen(&reader, entry)?,
                "sensors" => reader.each(entry, |key| config.sensors_key(&reader, key))?,
                "budget" => reader.each(entry, |key| config.budget_key(&reader, key))?,
                "judge" => reader.each(entry, |key| config.judge_key(&reader, key))?,
                "kubernetes" => {
                    reader.each(entry, |key| config.kubernetes.key(&reader, key))?;
                }
                "remedy" => reader.each(entry, |key| config.remedy.key(&reader, key))?,
                "fleet" => reader.each(entry, |key| config.fleet.key(&reader, key))?,
                "export" => reader.each(entry, |key| config.export.key(&reader, key))?,
                name => {
                    let text = format!(
                        "there is no table [{name}]; there are ring, listen, sensors, budget, judge, \
                         kubernetes, export, fleet, remedy"
                    );
                    return Err(reader.wrong(entry, text));
                }
            }
        }
        config.check(&reader)?;
        Ok(config)
    }

    fn ring_key(&mut self, reader: &Reader<'_>, key: &Entry<'_>) -> Result<(), Wrong> {
        match key.name() {
            "path" => self.ring = reader.path(key)?,
            "max_size" => {
                let least = Limits::MIN_SEGMENT_BYTES * Limits::MIN_SEGMENTS;
                self.max_size = reader.size(key, least.max(1 << 20))?;
            }
            "max_age" => self.max_age = reader.time(key, Duration::from_secs(60))?,
            "incidents_max" => self.incidents_max = reader.count(key, 0..=10_000)?,
            "incidents_size" => self.incidents_size = reader.size(key, 1 << 20)?,
            _ => {
                return Err(reader.unknown(
                    key,
                    "path, max_size, max_age, incidents_max, incidents_size",
                ));
            }
        }
        Ok(())
    }

    fn sensors_key(&mut self, reader: &Reader<'_>, key: &Entry<'_>) -> Result<(), Wrong> {
        match key.name() {
            "off" => {
                self.off = reader.texts(key)?;
                let unknown = self.off.iter().find(|name| !is_sensor(name));
                if let Some(name) = unknown {
                    return Err(reader.wrong(key, no_such(name)));
                }
            }
            "hz" => {
                let (least, most) = (*stacks::RATES_HZ.start(), *stacks::RATES_HZ.end());
                let hz = reader.count(key, least.into()..=most.into())?;
                self.hz = u32::try_from(hz).unwrap_or(most);
            }
            "off_cpu" => self.off_cpu = Some(reader.time(key, SHORTEST_WAIT)?),
            "every" => reader.each(key, |beat| {
                if !is_sensor(beat.name()) {
                    return Err(reader.wrong(beat, no_such(beat.name())));
                }
                let time = reader.time(beat, SHORTEST_BEAT)?;
                self.every.push((beat.name().to_owned(), time));
                Ok(())
            })?,
            "btf" => self.btf = Some(reader.path(key)?),
            _ => return Err(reader.unknown(key, "off, hz, off_cpu, every, btf")),
        }
        Ok(())
    }

    fn budget_key(&mut self, reader: &Reader<'_>, key: &Entry<'_>) -> Result<(), Wrong> {
        match key.name() {
            "cpu_percent" => self.cpu_percent = reader.number(key, 0.1..=1000.0)?,
            "memory" => self.memory = reader.size(key, 16 << 20)?,
            _ => return Err(reader.unknown(key, "cpu_percent, memory")),
        }
        Ok(())
    }

    fn judge_key(&mut self, reader: &Reader<'_>, key: &Entry<'_>) -> Result<(), Wrong> {
        match key.name() {
            "policy" => self.policy = Some(reader.path(key)?),
            "signatures" => self.signatures = reader.paths(key)?,
            _ => return Err(reader.unknown(key, "policy, signatures")),
        }
        Ok(())
    }

    /// What no key tells by itself.
    fn check(&self, reader: &Reader<'_>) -> Result<(), Wrong> {
        self.remedy.check(reader)
    }
}

fn is_sensor(name: &str) -> bool {
    SENSORS.iter().any(|spec| spec.name == name)
}

fn no_such(name: &str) -> String {
    let known: Vec<&str> = SENSORS.iter().map(|spec| spec.name).collect();
    format!("no sensor is called {name}; there are {}", known.join(", "))
}

/// Reads a time or a size by the words that the command line takes.
fn duration(text: &str) -> Result<Duration, String> {
    quantity::duration(text)
}

#[cfg(test)]
mod tests;
