//! A drill as a process of its own, which tests may kill.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sexton_host::Host;
use sexton_host::cgroup::MemoryHierarchy;

/// A drill under way, or on its way.
#[derive(Debug)]
pub struct RunningDrill {
    child: Child,
    /// What it said so far.
    pub said: Vec<String>,
}

impl RunningDrill {
    /// Starts the helper `drill` and does not wait for it.
    pub fn start(drill: &str, n_dying: u32, seconds: u64) -> Result<Self> {
        let child = Command::new(drill)
            .args(["run", &n_dying.to_string(), &seconds.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {drill}"))?;
        Ok(Self {
            child,
            said: Vec::new(),
        })
    }

    /// Waits until it is under way.
    pub fn wait_ready(&mut self) -> Result<()> {
        let output = self.child.stdout.take().context("it has no output")?;
        for line in BufReader::new(output).lines() {
            let line = line?;
            if line == "ready" {
                return Ok(());
            }
            self.said.push(line);
        }
        let output = self.child.stderr.take().context("it has no output")?;
        let errors: Vec<String> = BufReader::new(output)
            .lines()
            .map_while(Result::ok)
            .collect();
        bail!("it did not begin: {}", errors.join("\n"));
    }

    /// The core that it holds.
    pub fn core(&self) -> Option<u32> {
        self.said
            .iter()
            .find_map(|line| line.strip_prefix("core ")?.parse().ok())
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for its end; whether it ended well.
    pub fn join(&mut self) -> Result<bool> {
        Ok(self.child.wait()?.success())
    }

    /// The process of one of its parts.
    pub fn part(&self, name: &str) -> Option<u32> {
        parts()
            .into_iter()
            .find(|(_, comm, parent)| comm == name && *parent == self.pid())
            .map(|(pid, ..)| pid)
    }
}

impl Drop for RunningDrill {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Every process that is part of a drill: its number, its name, its parent.
fn parts() -> Vec<(u32, String, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let is_part = ["churner", "reader", "network", "janitor"]
            .iter()
            .any(|part| comm.trim() == format!("drill-{part}"));
        if is_part {
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            let parent = parent.and_then(|pid| pid.trim().parse().ok()).unwrap_or(0);
            found.push((pid, comm.trim().to_owned(), parent));
        }
    }
    found
}

/// What there is of drills on this machine: cgroups, folders, processes, polling threads.
pub fn traces() -> Result<Vec<String>> {
    let host = Host::live()?;
    let memory = MemoryHierarchy::find(&host)?.context("no memory controller")?;
    let mount = memory
        .mount
        .context("the memory hierarchy is not mounted")?;
    let mut traces = Vec::new();
    for folder in [mount, PathBuf::from("/var/tmp")] {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("sexton-drill-")
        });
        traces.extend(ours.map(|entry| entry.path().display().to_string()));
    }
    traces.extend(
        parts()
            .into_iter()
            .map(|(pid, comm, _)| format!("{comm} {pid}")),
    );
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if comm.starts_with("napi/drill-far") {
            traces.push(comm.trim().to_owned());
        }
    }
    Ok(traces)
}

/// Waits until nothing is left of any drill; else what is.
pub fn wait_until_gone() -> Result<Vec<String>> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let left = traces()?;
        if left.is_empty() || Instant::now() >= until {
            return Ok(left);
        }
        thread::sleep(Duration::from_millis(50));
    }
}
