//! Two network devices in a namespace of their own; what is sent to one of them is polled by
//! a kernel thread that may only run on the core that is held.
//!
//! All of it ends with this process: the namespace has no name.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use sexton_host::own;

use super::{Orders, Part, say_ready};
use crate::core_choice::stay_off;
use crate::error::DrillError;
use crate::sandbox::Sandbox;

pub(super) static PART: Part = Part {
    name: "network",
    work,
};

const NEAR: &str = "drill-near";

/// The device whose polling starves. Its name says what it is for.
pub(crate) const FAR: &str = "drill-far";

/// From the block for documentation (RFC 5737): no one's.
const FROM: &str = "192.0.2.1";
const TO: &str = "192.0.2.2";

const DISCARD: u16 = 9;

fn work(_: &Sandbox, orders: &Orders) -> Result<(), DrillError> {
    stay_off(orders.core)?;
    own::leave_network().map_err(|error| {
        DrillError::NotPossible(format!("cannot have a network of its own: {error}"))
    })?;
    set_up()?;
    bind_poller(orders.core)?;
    let socket = UdpSocket::bind((FROM, 0));
    let socket = socket.map_err(DrillError::file("open a socket on", NEAR.as_ref()))?;
    say_ready()?;
    loop {
        // A full queue loses packets; the next one is as good.
        let _ = socket.send_to(b"sexton drill", (TO, DISCARD));
        thread::sleep(Duration::from_millis(1));
    }
}

fn set_up() -> Result<(), DrillError> {
    run(&[
        "ip", "link", "add", NEAR, "type", "veth", "peer", "name", FAR,
    ])?;
    run(&["ip", "addr", "add", &format!("{FROM}/24"), "dev", NEAR])?;
    run(&["ip", "link", "set", NEAR, "up"])?;
    run(&["ip", "link", "set", FAR, "up"])?;
    // There is no one to ask who has the address, as both ends are in one place.
    let path = Path::new("/sys/class/net").join(FAR).join("address");
    let address = fs::read_to_string(&path).map_err(DrillError::file("read", &path))?;
    run(&[
        "ip",
        "neigh",
        "add",
        TO,
        "lladdr",
        address.trim(),
        "dev",
        NEAR,
    ])?;
    // A veth device is polled only if it merges packets that come unmerged.
    run(&["ethtool", "-K", FAR, "gro", "on"])?;
    run(&["ethtool", "-K", NEAR, "tso", "off"])?;
    let path = Path::new("/sys/class/net").join(FAR).join("threaded");
    fs::write(&path, "1").map_err(DrillError::file("have threads poll by", &path))
}

/// Lets the thread that polls run on that core only.
fn bind_poller(core: u32) -> Result<(), DrillError> {
    let prefix = format!("napi/{FAR}-");
    let mut only = CpuSet::new();
    only.set(core as usize);
    let mut found = false;
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let comm = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        let pid = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let (true, Some(pid)) = (
            comm.starts_with(&prefix),
            pid.and_then(rustix::process::Pid::from_raw),
        ) {
            sched_setaffinity(Some(pid), &only).map_err(|error| {
                DrillError::NotPossible(format!("cannot bind {} to a core: {error}", comm.trim()))
            })?;
            found = true;
        }
    }
    match found {
        true => Ok(()),
        false => Err(DrillError::NotPossible(
            "this kernel has no thread that polls a device (Linux 5.12 and later do)".into(),
        )),
    }
}

fn run(words: &[&str]) -> Result<(), DrillError> {
    let path = std::env::var("PATH").unwrap_or_default();
    let failed = |said: String| DrillError::Program {
        command: words.join(" "),
        said,
    };
    let output = Command::new(words[0])
        .args(&words[1..])
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .output()
        .map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        )),
    }
}
