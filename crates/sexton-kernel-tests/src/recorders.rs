//! Programs that record a node, for benches that measure them beside each other.
#![allow(unsafe_code, reason = "the clock of another process is asked of libc")]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// A recorder that runs; it ends with this.
#[derive(Debug)]
pub struct Recorder {
    /// What tables call it.
    pub name: &'static str,
    child: Child,
    scraper: Option<Scraper>,
}

impl Recorder {
    /// Starts one. What it says goes to a log in the folder.
    pub fn start(name: &'static str, command: &mut Command, folder: &Path) -> Result<Self> {
        let log = File::create(folder.join("log"))?;
        let child = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut recorder = Self {
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

    /// Has it asked for all its metrics again and again, as Prometheus would.
    pub fn scrape(&mut self, address: &'static str, every: Duration) {
        self.scraper = Some(Scraper::start(address, every));
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of all its threads so far, the kernel's part included.
    pub fn cpu(&self) -> Result<Duration> {
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
    pub fn rss_mib(&self) -> Result<f64> {
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

#[derive(Debug)]
struct Scraper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scraper {
    fn start(address: &'static str, every: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let scrape = move || {
            let mut next = Instant::now();
            while !over.load(Ordering::Relaxed) {
                if Instant::now() >= next {
                    next += every;
                    // That it answers is checked once, before anything is measured.
                    scrape(address).ok();
                }
                thread::sleep(Duration::from_millis(100));
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

/// Asks for all metrics once; gives their size.
pub fn scrape(address: &str) -> io::Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    stream.read_to_end(&mut Vec::new())
}
