//! Those who are measured: sexton, and others who record a node once a second.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use sexton_host::Host;

/// Where `cargo xtask bench` says that the one peer is which no package brings.
const BELOW: &str = "SEXTON_BENCH_BELOW";

/// A port that nobody is known to use.
const NODE_EXPORTER: &str = "127.0.0.1:39100";

/// A recorder that runs.
pub(crate) struct Recorder {
    pub(crate) name: &'static str,
    child: Child,
    scraper: Option<Scraper>,
}

/// Starts them all; those that cannot are told, and left out.
pub(crate) fn start_all(folder: &Path) -> Result<Vec<Recorder>> {
    let sexton = std::env::var("SEXTON").context("SEXTON does not say where it is")?;
    let below = std::env::var(BELOW).unwrap_or_else(|_| "below".into());
    let own = |name: &str| folder.join(name);
    let mut recorders = vec![start(
        "`sexton record --no-stacks`, all other sensors",
        Command::new(sexton)
            .args(["record", "--no-stacks", "-o"])
            .arg(own("sexton")),
        folder,
    )?];
    let mut of_below = Command::new(&below);
    of_below.arg("--config").arg(config_of_below(folder)?);
    of_below.args(["record", "--interval-s", "1"]);
    let mut atop = Command::new("atop");
    atop.arg("-w").arg(own("atop")).arg("1");
    let mut exporter = Command::new("prometheus-node-exporter");
    exporter.arg(format!("--web.listen-address={NODE_EXPORTER}"));
    for (name, mut command) in [
        ("`below record` at 1 s", of_below),
        ("`atop -w` at 1 s", atop),
        ("`prometheus-node-exporter`, scraped each second", exporter),
    ] {
        match start(name, &mut command, folder) {
            Ok(recorder) => recorders.push(recorder),
            Err(error) => eprintln!("{name} is not measured: {error:#}"),
        }
    }
    for recorder in &mut recorders {
        if recorder.name.contains("scraped") {
            recorder.scraper = Some(Scraper::start());
        }
    }
    Ok(recorders)
}

/// It looks for cgroup v2 at one place only, and would end where it is mounted elsewhere.
fn config_of_below(folder: &Path) -> Result<PathBuf> {
    let host = Host::live()?;
    let root = host.mounts().of_type("cgroup2").map(|mount| &mount.point);
    let root = root.context("cgroup v2 is not mounted, which below needs")?;
    let path = folder.join("below.conf");
    let (log, store) = (folder.join("below.log"), folder.join("below"));
    let text = format!("log_dir = {log:?}\nstore_dir = {store:?}\ncgroup_root = {root:?}\n");
    fs::write(&path, text)?;
    Ok(path)
}

fn start(name: &'static str, command: &mut Command, folder: &Path) -> Result<Recorder> {
    let log = File::create(folder.join("log"))?;
    let child = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let mut recorder = Recorder {
        name,
        child,
        scraper: None,
    };
    // One that does not like it here says so at once.
    thread::sleep(Duration::from_secs(1));
    let ended = recorder.child.try_wait()?;
    let said = fs::read_to_string(folder.join("log")).unwrap_or_default();
    ensure!(ended.is_none(), "it ended: {}", said.trim());
    Ok(recorder)
}

impl Recorder {
    /// CPU time of all its threads so far, the kernel's part included.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut clock = 0;
        let pid = i32::try_from(self.child.id())?;
        // SAFETY: the place for the clock is valid.
        let failed = unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) };
        ensure!(failed == 0, "{} is gone", self.name);
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the place for the time is valid.
        let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
        ensure!(failed == 0, "{} is gone", self.name);
        Ok(Duration::new(
            time.tv_sec.try_into()?,
            time.tv_nsec.try_into()?,
        ))
    }

    /// Memory that it holds now.
    pub(crate) fn rss_mib(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().strip_suffix("kB"));
        let kib: f64 = kib.context("no VmRSS")?.trim().parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.scraper.take());
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Asks for all metrics each second, as Prometheus would.
struct Scraper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let scrape = move || {
            while !over.load(Ordering::Relaxed) {
                if let Err(error) = scrape() {
                    eprintln!("a scrape failed: {error}");
                }
                thread::sleep(Duration::from_secs(1));
            }
        };
        Self {
            is_over,
            thread: Some(thread::spawn(scrape)),
        }
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn scrape() -> std::io::Result<()> {
    let mut stream = TcpStream::connect(NODE_EXPORTER)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    stream.read_to_end(&mut Vec::new()).map(drop)
}
