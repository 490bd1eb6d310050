//! A network of our own: two devices joined by a wire, in a namespace that is gone when it
//! is dropped, also on failure.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const FROM: &str = "10.231.97.1";
const TO: &str = "10.231.97.2";

/// Two devices, `near` and `far`; what is sent to `far` is polled on one core only, and before
/// all other ordinary work of that core: what a test imposes is then all that it waits for.
#[derive(Debug)]
pub struct Network {
    namespace: String,
    /// The kernel thread that polls, if it outlives the network.
    preferred: Option<u32>,
}

impl Network {
    /// Makes one where a kernel thread polls, on this core.
    pub fn new(name: &str, cpu: u32) -> Result<Self> {
        let network = Self::pair(name)?;
        // A veth device is polled only if it merges packets that come unmerged.
        network.inside(&["ethtool", "-K", "far", "gro", "on"])?;
        network.inside(&["ethtool", "-K", "near", "tso", "off"])?;
        network.inside(&["sh", "-c", "echo 1 > /sys/class/net/far/threaded"])?;
        let poller = poller_of(|comm| comm.starts_with("napi/far-"))?;
        run(&["taskset", "-p", "-c", &cpu.to_string(), &poller.to_string()])?;
        set_nice(poller, -20)?;
        Ok(network)
    }

    /// Makes one where the softirq of this core polls: packets are steered there.
    pub fn steered(name: &str, cpu: u32) -> Result<Self> {
        let mut network = Self::pair(name)?;
        let poller = poller_of(|comm| comm == format!("ksoftirqd/{cpu}"))?;
        network.preferred = Some(poller);
        set_nice(poller, -20)?;
        let steer = format!(
            "echo {:x} > /sys/class/net/far/queues/rx-0/rps_cpus",
            1_u64 << cpu
        );
        network.inside(&["sh", "-c", &steer])?;
        Ok(network)
    }

    /// The kernel thread that polls, where the softirq of a core does.
    pub fn poller(&self) -> Option<u32> {
        self.preferred
    }

    fn pair(name: &str) -> Result<Self> {
        let namespace = format!("sexton-test-{name}-{}", std::process::id());
        run(&["ip", "netns", "add", &namespace])?;
        let network = Self {
            namespace,
            preferred: None,
        };
        network.ip("link add near type veth peer name far")?;
        network.ip(&format!("addr add {FROM}/24 dev near"))?;
        network.ip("link set near up")?;
        network.ip("link set far up")?;
        // There is no one to ask who has the address, as both ends are in one place.
        let far = network.inside(&["cat", "/sys/class/net/far/address"])?;
        network.ip(&format!("neigh add {TO} lladdr {} dev near", far.trim()))?;
        Ok(network)
    }

    /// Sends a packet every millisecond from this core.
    pub fn send(&self, core_hog: &str, cpu: u32, time: Duration) -> Result<Sender> {
        self.start("send", core_hog, cpu, time)
    }

    /// Sends packets from this core, as many as it can.
    pub fn flood(&self, core_hog: &str, cpu: u32, time: Duration) -> Result<Sender> {
        self.start("flood", core_hog, cpu, time)
    }

    fn start(&self, how: &str, core_hog: &str, cpu: u32, time: Duration) -> Result<Sender> {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.namespace])
            .args(["taskset", "-c", &cpu.to_string(), core_hog, how, TO])
            .arg(time.as_millis().to_string())
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start ip netns exec")?;
        Ok(Sender(child))
    }

    fn ip(&self, words: &str) -> Result<()> {
        let words: Vec<&str> = words.split(' ').collect();
        run(&[&["ip", "-n", &self.namespace], &words[..]].concat()).map(drop)
    }

    fn inside(&self, words: &[&str]) -> Result<String> {
        run(&[&["ip", "netns", "exec", &self.namespace], words].concat())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // What cannot be removed is shown by `ip netns`; a test has nothing better to say.
        let _ = run(&["ip", "netns", "del", &self.namespace]);
        if let Some(poller) = self.preferred {
            let _ = set_nice(poller, 0);
        }
    }
}

/// A process that sends packets.
#[derive(Debug)]
pub struct Sender(Child);

impl Drop for Sender {
    fn drop(&mut self) {
        // Both fail when it has ended, which is what we want.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(words: &[&str]) -> Result<String> {
    let output = Command::new(words[0])
        .args(&words[1..])
        .output()
        .with_context(|| format!("cannot start {}", words[0]))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn set_nice(pid: u32, nice: i8) -> Result<()> {
    run(&["renice", "-n", &nice.to_string(), "-p", &pid.to_string()]).map(drop)
}

/// The one task whose name is like that.
fn poller_of(is_it: impl Fn(&str) -> bool) -> Result<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list /proc")? {
        let path = entry.context("cannot list /proc")?.path();
        let pid = path
            .file_name()
            .and_then(|name| name.to_str()?.parse::<u32>().ok());
        let comm = fs::read_to_string(path.join("comm")).unwrap_or_default();
        found.extend(pid.filter(|_| is_it(comm.trim_end())));
    }
    ensure!(found.len() == 1, "{} tasks poll", found.len());
    Ok(found[0])
}
