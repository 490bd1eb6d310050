//! Which runtimes are here, and whether asking them would start them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sexton_host::{Host, HostError};
use sexton_model::gap::Why;
use sexton_model::sight::Sight;

use crate::docker::api;
use crate::http::ask_whole;
use crate::reactor::Reactor;
use crate::trouble::Trouble;
use crate::{containerd, cri};

/// What helps when a socket is closed to us.
pub const REMEDY: &str = "run as root: sudo sexton";

/// How long `examine` waits for a daemon.
const PATIENCE: Duration = Duration::from_secs(2);

/// A runtime, and how it is asked.
#[derive(Debug)]
pub struct Runtime {
    /// As records call it.
    pub name: &'static str,
    /// How it is asked.
    pub speaks: Speaks,
    sockets: &'static [&'static str],
    /// The process without which asking could start it.
    process: Option<Process>,
}

/// A process by its name, and an argument that it has.
#[derive(Debug)]
struct Process {
    name: &'static str,
    argument: Option<&'static str>,
}

/// What a runtime understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaks {
    /// The Docker API, by HTTP/1.
    Docker,
    /// The services of containerd, by gRPC.
    Containerd,
    /// The interface of the kubelet, by gRPC.
    Cri,
}

static RUNTIMES: [Runtime; 4] = [
    Runtime {
        name: "docker",
        speaks: Speaks::Docker,
        sockets: &["/run/docker.sock", "/var/run/docker.sock"],
        process: Some(Process {
            name: "dockerd",
            argument: None,
        }),
    },
    Runtime {
        name: "podman",
        speaks: Speaks::Docker,
        sockets: &["/run/podman/podman.sock", "/var/run/podman/podman.sock"],
        process: Some(Process {
            name: "podman",
            // Every `podman run` is a process of that name too.
            argument: Some("service"),
        }),
    },
    // systemd does not listen on these two for them: without a daemon, connecting fails.
    Runtime {
        name: "containerd",
        speaks: Speaks::Containerd,
        sockets: &[
            "/run/containerd/containerd.sock",
            "/var/run/containerd/containerd.sock",
            "/run/k3s/containerd/containerd.sock",
        ],
        process: None,
    },
    Runtime {
        name: "cri-o",
        speaks: Speaks::Cri,
        sockets: &["/run/crio/crio.sock", "/var/run/crio/crio.sock"],
        process: None,
    },
];

/// The sockets there are, each once: `/var/run` is most often a link to `/run`.
pub fn sockets(host: &Host) -> Vec<(&'static Runtime, Result<PathBuf, HostError>)> {
    let mut found: Vec<(&'static Runtime, Result<PathBuf, HostError>)> = Vec::new();
    for runtime in &RUNTIMES {
        for path in runtime.sockets {
            let socket = host.socket(path);
            let is_known = |(_, known): &(_, Result<PathBuf, HostError>)| matches!((known, &socket), (Ok(a), Ok(b)) if a == b);
            let is_absent = socket.as_ref().is_err_and(HostError::is_absent);
            if !is_absent && !found.iter().any(is_known) {
                found.push((runtime, socket));
            }
        }
    }
    found
}

/// Whether a daemon is behind its socket.
#[derive(Debug)]
pub enum Daemon {
    /// It runs, or connecting fails without one.
    Runs,
    /// It does not, or we cannot tell.
    Rests(Why, String),
}

/// Looks for the daemon's process. Where systemd holds the socket, to connect is to
/// start the daemon, and sexton changes nothing on a node.
pub fn daemon(host: &Host, runtime: &Runtime) -> Daemon {
    let Some(process) = &runtime.process else {
        return Daemon::Runs;
    };
    match find_process(host, process) {
        Ok(true) => Daemon::Runs,
        Ok(false) => Daemon::Rests(
            Why::Unsupported,
            format!("no {} runs, and asking could start it", process.name),
        ),
        Err(error) => Daemon::Rests(error.why(), error.chain()),
    }
}

fn find_process(host: &Host, process: &Process) -> Result<bool, HostError> {
    let entries = host.list(host.proc("")?)?;
    let mut pids = entries
        .iter()
        .filter_map(|entry| entry.name.to_str())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(pids.any(|pid| is_daemon(host, pid, process).unwrap_or(false)))
}

/// An error is a process that went away meanwhile.
fn is_daemon(host: &Host, pid: &str, process: &Process) -> Result<bool, HostError> {
    let comm = host.read_text(host.proc(&format!("{pid}/comm"))?)?;
    if comm.trim_end() != process.name {
        return Ok(false);
    }
    let Some(argument) = process.argument else {
        return Ok(true);
    };
    let cmdline = host.read(host.proc(&format!("{pid}/cmdline"))?)?;
    Ok(cmdline
        .split(|&byte| byte == 0)
        .any(|part| part == argument.as_bytes()))
}

/// What is seen here. A daemon that runs is asked whether it is well.
pub fn examine(host: &Host) -> Vec<Sight> {
    if !host.is_live() {
        let because = "this is not a running node, so no container runtime can be asked";
        return vec![Sight::blind("container runtimes", because)];
    }
    let mut reactor = Reactor::default();
    let mut sights: Vec<Sight> = sockets(host)
        .into_iter()
        .map(|(runtime, socket)| examine_socket(host, &mut reactor, runtime, socket))
        .collect();
    if sights.is_empty() {
        let because = "no container runtime has a socket here";
        sights.push(Sight::sees("container runtimes", because));
    }
    sights
}

fn examine_socket(
    host: &Host,
    reactor: &mut Reactor,
    runtime: &Runtime,
    socket: Result<PathBuf, HostError>,
) -> Sight {
    let what = format!("containers of {}", runtime.name);
    let socket = match socket {
        Ok(socket) => socket,
        Err(error) => return Sight::blind(what, error.chain()),
    };
    if let Daemon::Rests(_, text) = daemon(host, runtime) {
        return Sight::blind(what, text);
    }
    let (speaks, at) = (runtime.speaks, socket.clone());
    let greeted = reactor.run(async move { greet(speaks, &at).await });
    match greeted.unwrap_or_else(|error| Err(Trouble::NoThread(error))) {
        Ok(who) => Sight::sees(what, format!("{who} answers at {}", socket.display())),
        Err(trouble) => {
            let because = format!("{}: {}", socket.display(), trouble.chain());
            let sight = Sight::blind(what, because);
            match trouble.why() {
                Why::Denied => sight.with_remedy(REMEDY),
                _ => sight,
            }
        }
    }
}

/// Has the daemon say that it is well, and who it is as far as it says so.
async fn greet(speaks: Speaks, socket: &Path) -> Result<String, Trouble> {
    match speaks {
        Speaks::Docker => {
            ask_whole(socket, api::PING, PATIENCE).await?;
            Ok("it".into())
        }
        Speaks::Containerd => {
            let version = containerd::version(socket, PATIENCE).await?;
            Ok(format!("{version} (Docker reports its own containers)"))
        }
        Speaks::Cri => cri::version(socket, PATIENCE).await,
    }
}
