//! A limit that the test uses up is told as used up.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::Fact;
use sexton_model::fact::limit as fact;
use sexton_model::record::Sink;
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

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_cgroup_that_is_refused_a_task_is_told() {
    require(Need::Root);
    let host = Host::live().expect("a mount table");
    let limited = Limited::new(&host);
    let spec = SENSORS.iter().find(|spec| spec.name == "limits");
    let spec = spec.expect("there is one");
    limited.exhaust();
    let mut sensor = (spec.open)(&host).expect("procfs is there");
    let mut out = Sink::new(spec.name, clock::now());
    sensor.poll(&host, &mut out);
    let records = out.into_records();
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
