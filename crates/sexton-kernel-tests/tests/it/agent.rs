//! The agent on a real node: real dying cgroups open a finding, which outlives a kill; a full
//! disk is survived.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sexton_kernel_tests::nursery::{Nursery, Pin};
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::sexton::binary;
use sexton_store::{Bundle, Ring};

const LEAKER: &str = env!("CARGO_BIN_EXE_leaker");

/// One of the primes that tests make their trouble in.
const N: u32 = 23;

struct Agent {
    child: Child,
    folder: PathBuf,
}

impl Agent {
    /// Starts one on this node, with sensors of cgroups and the node alone.
    fn start(folder: &Path, ring: &Path) -> Self {
        let off = [
            "stacks",
            "runq",
            "napi",
            "journal",
            "containers",
            "exits",
            "nics",
            "units",
        ];
        let policy = folder.join("policy.toml");
        fs::write(&policy, "[rules.MCG003]\nmost = 1\nmost_per_live = 1\n").expect("a file");
        let config = folder.join("agent.toml");
        let text = format!(
            "[ring]\npath = {ring:?}\nmax_size = \"8MiB\"\n[listen]\nsocket = {:?}\nhttp = \"\"\n\
             [sensors]\noff = {off:?}\nevery = {{ memcg = \"5s\" }}\n\
             [budget]\ncpu_percent = 1000\nmemory = \"1GiB\"\n[judge]\npolicy = {policy:?}\n",
            folder.join("agent.sock"),
        );
        fs::write(&config, text).expect("a file");
        let sexton = binary().expect("SEXTON names the binary: run cargo xtask test kernel");
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(folder.join("log"));
        let child = Command::new(sexton)
            .args(["agent", "--config"])
            .arg(&config)
            .stderr(Stdio::from(log.expect("a log")))
            .spawn();
        Self {
            child: child.expect("it starts"),
            folder: folder.to_owned(),
        }
    }

    fn status(&self) -> Option<sexton_agent::Status> {
        sexton_agent::ask(&self.folder.join("agent.sock")).ok()
    }

    /// Waits until the status says so.
    fn wait(
        &self,
        what: &str,
        is_so: impl Fn(&sexton_agent::Status) -> bool,
    ) -> sexton_agent::Status {
        let deadline = Instant::now() + Duration::from_secs(100);
        loop {
            if let Some(status) = self.status().filter(&is_so) {
                return status;
            }
            let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(
                Instant::now() < deadline,
                "{what}: {:#?}\n{log}",
                self.status()
            );
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_opened(status: &sexton_agent::Status) -> bool {
    status
        .findings
        .iter()
        .any(|finding| finding.id == "MCG003:node")
}

#[test]
#[ignore = "needs root and bpf: run cargo xtask test kernel"]
fn dying_cgroups_open_a_finding_that_outlives_a_kill() {
    require(Need::Root);
    require(Need::Bpf);
    let nursery = Nursery::new("agent").expect("a cgroup of our own");
    let _leak = nursery
        .leak(LEAKER, "z", N, Pin::OwnFile)
        .expect("dying ones");
    let folder = tempfile::tempdir().expect("a folder");
    let ring = folder.path().join("ring");
    let agent = Agent::start(folder.path(), &ring);
    let status = agent.wait("no finding opened", has_opened);
    let opened = status.findings[0].opened_wall_ns;
    agent.kill();
    let boots = Ring::at(&ring).boots().expect("a ring");
    let lives = sexton_agent::lives_of(&boots[0].findings).expect("a log").0;
    assert!(
        lives
            .iter()
            .any(|it| it.life.finding.code == "MCG003" && it.life.resolved.is_none())
    );
    let agent = Agent::start(folder.path(), &ring);
    let status = agent.wait("the finding is forgotten", |status| {
        status.records > 0 && has_opened(status)
    });
    let second_ns = 1_000_000_000;
    assert!(status.findings[0].opened_wall_ns.abs_diff(opened) < 2 * second_ns);
    assert_eq!(status.boots, 1);
    agent.kill();
    let bundle = Bundle::open(&boots[0].records).expect("a bundle");
    let records = bundle.load(None, None);
    let gaps: Vec<String> = sexton_model::timeline::Timeline::gaps(&records)
        .map(|(_, _, gap)| gap.text.clone())
        .collect();
    assert!(
        gaps.iter().any(|text| text.contains("was killed")),
        "{gaps:?}"
    );
}

/// A small filesystem in memory that is gone at the end of a test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn new(folder: PathBuf) -> Self {
        fs::create_dir(&folder).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=3m", "sexton-test"])
            .arg(&folder)
            .status();
        assert!(mounted.expect("mount is there").success());
        Self(folder)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_full_disk_is_said_and_survived() {
    require(Need::Root);
    let folder = tempfile::tempdir().expect("a folder");
    let disk = SmallDisk::new(folder.path().join("disk"));
    let agent = Agent::start(folder.path(), &disk.0.join("ring"));
    agent.wait("nothing is recorded", |status| status.records > 50);
    let filler = disk.0.join("filler");
    // Writes until the disk is full; the error is the point of it.
    let _ = fs::write(&filler, vec![7; 4 << 20]);
    agent.wait("a full disk goes unnoticed", |status| {
        status.disk_trouble.is_some()
    });
    fs::remove_file(&filler).expect("it is there");
    agent.wait("it never recovers", |status| status.disk_trouble.is_none());
    let log = fs::read_to_string(folder.path().join("log")).expect("a log");
    assert!(
        log.contains("cannot record") && log.contains("recording works again"),
        "{log}"
    );
    drop(agent);
    drop(disk);
}
