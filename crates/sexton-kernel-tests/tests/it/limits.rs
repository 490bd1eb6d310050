//! A limit that the test uses up is told as used up.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton;
use sexton_model::fact::Fact;
use sexton_model::fact::limit as fact;
use sexton_model::record::{Record, Sink};
use sexton_sensors::SENSORS;

const MOST: u64 = 10;

/// A cgroup that limits its tasks; it and what runs in it are gone when the test ends.
struct Limited {
    folder: PathBuf,
    name: String,
}

impl Limited {
    fn new(host: &Host) -> Self {
        let mounts = || host.mounts().iter();
        let v1 = mounts().find(|mount| mount.fs_type == "cgroup" && mount.has_option("pids"));
        let mount = v1.or_else(|| host.mounts().of_type("cgroup2"));
        let name = format!("sexton-limits-{}", std::process::id());
        let folder = mount.expect("a hierarchy of cgroups").point.join(&name);
        fs::create_dir(&folder).expect("a cgroup of our own");
        fs::write(folder.join("pids.max"), MOST.to_string()).expect("it limits tasks");
        Self { folder, name }
    }

    /// A shell that starts more than it may, and exits when it is refused.
    fn exhaust(&self) {
        let join = format!("echo $$ > {}/cgroup.procs", self.folder.display());
        let script = format!("{join}; for i in $(seq 20); do sleep 60 & done");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stderr(Stdio::null());
        let status = command.status().expect("it starts");
        assert!(!status.success(), "it was refused nothing");
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let inside = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for pid in inside.lines() {
            Command::new("kill").args(["-KILL", pid]).status().ok();
        }
        for _ in 0..50 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// A program that is alive as long as this, and says when it is ready.
struct Holder(std::process::Child);

impl Holder {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut ready = [0];
        let stdout = child.stdout.as_mut().expect("a pipe");
        stdout.read_exact(&mut ready).expect("it is ready");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Instances of inotify that one user has, one of them with three watches; a child has the same
/// ones again, and adds none.
#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn inotify_of_a_user_is_counted_once() {
    require(Need::Root);
    const USER: u32 = 64_123;
    const HOLD: &str = "import ctypes, os, sys, time\n\
                        libc = ctypes.CDLL(None)\n\
                        files = [libc.inotify_init() for _ in range(90)]\n\
                        for path in (b'/', b'/usr', b'/proc'):\n    \
                        libc.inotify_add_watch(files[0], path, 2)\n\
                        os.fork()\n\
                        sys.stdout.write('r')\nsys.stdout.flush()\ntime.sleep(60)\n";
    let mut command = Command::new("python3");
    command.args(["-c", HOLD]).uid(USER).process_group(0);
    let holder = Holder::start(&mut command);
    let host = Host::live().expect("a mount table");
    let records = polled(&host);
    let group = format!("-{}", holder.0.id());
    Command::new("kill")
        .args(["-KILL", "--", &group])
        .status()
        .ok();
    let used = |setting: &str| {
        let name = format!("fs.inotify.{setting} user {USER}");
        let of_user = records.iter().find(|record| {
            record.fact() == Some(&fact::LIMIT_USED) && *record.subject.name == *name
        });
        of_user.and_then(|record| record.value())
    };
    assert_eq!(used("max_user_instances"), Some(90.0));
}

/// Connections that take all local ports to one destination, in a network of its own.
#[test]
#[ignore = "needs root and sexton: run cargo xtask test kernel"]
fn local_ports_that_run_out_are_a_finding() {
    require(Need::Root);
    require(Need::Sexton);
    const SCRIPT: &str = "ip link set lo up\n\
        echo 40000 40063 > /proc/sys/net/ipv4/ip_local_port_range\n\
        python3 -c \"import socket, sys, time\n\
server = socket.create_server(('127.0.0.1', 5432), backlog=100)\n\
all = [socket.create_connection(('127.0.0.1', 5432)) for _ in range(63)]\n\
sys.stdout.write('r')\nsys.stdout.flush()\ntime.sleep(60)\" > ready 2>&1 &\n\
        while ! test -s ready; do sleep 0.1; done\n\
        $SEXTON diagnose --for 2s --json\n\
        kill $!\n";
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", SCRIPT]);
    command.env("SEXTON", sexton::binary().expect("it is there"));
    let done = command.current_dir(&folder).output().expect("it runs");
    let told = String::from_utf8_lossy(&done.stdout);
    let title = "local ports in use to 127.0.0.1:5432 of at most 64";
    assert!(told.contains(title), "{told}");
}

/// What the sensor tells in its first look.
fn polled(host: &Host) -> Vec<Record> {
    let spec = SENSORS.iter().find(|spec| spec.name == "limits");
    let spec = spec.expect("there is one");
    let mut sensor = (spec.open)(host).expect("procfs is there");
    let mut out = Sink::new(spec.name, clock::now());
    sensor.poll(host, &mut out);
    out.into_records()
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_cgroup_that_is_refused_a_task_is_told() {
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let limited = Limited::new(&host);
    limited.exhaust();
    let records = polled(&host);
    let value = |fact: &'static Fact, limit: &str| {
        let mut own = records
            .iter()
            .filter(|record| *record.subject.name == *limit);
        own.find(|record| record.fact() == Some(fact))
            .and_then(|record| record.value())
    };
    let limit = format!("pids.max /{}", limited.name);
    // The shell has exited; the others are there.
    assert_eq!(value(&fact::LIMIT_USED, &limit), Some((MOST - 1) as f64));
    assert_eq!(value(&fact::LIMIT_MOST, &limit), Some(MOST as f64));
    assert!(value(&fact::LIMIT_HITS, &limit).is_some_and(|hits| hits >= 1.0));
    for node in ["fs.file-max", "kernel.threads-max", "kernel.pid_max"] {
        let ratio = value(&fact::LIMIT_USED_RATIO, node);
        assert!(
            ratio.is_some_and(|ratio| ratio > 0.0 && ratio < 1.0),
            "{node}: {ratio:?}"
        );
    }
}
