//! Packages and image as `cargo xtask dist` makes them, installed in a real systemd: the agent
//! runs as its own user, sees all but what is named here, an upgrade keeps its ring, and purging
//! removes it.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use sexton_agent::{FindingStatus, Status};
use sexton_kernel_tests::release::part;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::systemd::{ROOTFS, Systemd};
use sexton_model::gap::Why;
use sexton_model::moment::Moment;
use sexton_model::timeline::Timeline as _;
use sexton_store::Bundle;

/// What the agent does not see because it is not root, by sensor, and why.
const UNSEEN: [(&str, &str); 2] = [
    (
        "containers",
        "sockets of container runtimes belong to root, and whoever may write to one is root",
    ),
    (
        "units",
        "managers of users answer only their user and root; that of the system is seen",
    ),
];

/// A node with container runtimes and a user who has logged in.
const NODE: &str = r#"
exec 2> said
set -x
await() { for i in $(seq 400); do "$@" > /dev/null 2>&1 && return; sleep 0.2; done; echo "in vain: $*"; exit 9; }
mkdir -p /var/lib/docker /var/lib/containerd
mount -t tmpfs none /var/lib/docker
mount -t tmpfs none /var/lib/containerd
containerd > containerd.log 2>&1 &
await ctr version
dockerd --bridge=none --iptables=false --ip6tables=false \
    --containerd=/run/containerd/containerd.sock > dockerd.log 2>&1 &
await docker version
"#;

/// Installs, upgrades, removes and purges the one for dpkg.
const DEB: &str = r#"
# What this small /dev lacks: the kernel log, and what systemd copies to a private one.
mknod /dev/kmsg c 1 11
ln -s pts/ptmx /dev/ptmx
useradd --create-home visitor
systemctl start user@$(id -u visitor).service
deb=$(ls sexton_*.deb)
status() { sexton status --json > $1 || test $? != 2; }
answers() { sexton status --json | grep -q '"sexton.status/1"'; }
is_judged() { status now && grep -q '"judged_wall_ns": [0-9]' now; }

dpkg --install $deb > dpkg.log 2>&1
systemctl is-enabled sexton-agent > enabled
systemctl is-active sexton-agent > active || { journalctl -o cat -u sexton-agent >&2; exit 8; }
systemctl show --value -p User sexton-agent > user
grep Cap /proc/$(systemctl show --value -p MainPID sexton-agent)/status > capabilities
stat -c '%U %a' /var/lib/sexton /run/sexton /run/sexton/agent.sock > owners
await is_judged
status first
sleep 3
status second
sexton status > text || test $? != 2
curl --silent --fail http://127.0.0.1:8642/healthz > healthz
cp -r /var/lib/sexton/boots as-user

# The same node, seen as root.
printf '[ring]\npath = "/tmp/root"\n[listen]\nsocket = "/tmp/root.sock"\nhttp = ""\n' > root.toml
sexton agent --config root.toml 2> root.log &
sleep 12
sexton status --agent /tmp/root.sock --json > root || test $? != 2
kill $!
wait $! || true
cp -r /tmp/root/boots as-root

dpkg-deb --raw-extract $deb newer
sed -i 's/^Version: .*/&+newer/' newer/DEBIAN/control
echo '# by the owner of this node' >> /etc/sexton/agent.toml
dpkg-deb -Znone --build newer newer.deb > /dev/null
dpkg --install newer.deb >> dpkg.log 2>&1
systemctl is-active sexton-agent > upgraded
await answers
status third
tail -n 1 /etc/sexton/agent.toml > config
cp -r /var/lib/sexton/boots upgraded-ring
journalctl -u sexton-agent -o cat > journal

dpkg --remove sexton >> dpkg.log 2>&1
systemctl is-active sexton-agent > removed || true
ls /var/lib/sexton > left-by-remove
dpkg --purge sexton >> dpkg.log 2>&1
ls -d /var/lib/sexton /etc/sexton /usr/bin/sexton /etc/systemd/system/*/sexton-agent.service \
    /etc/systemd/system/sexton-agent.service > left-by-purge 2> /dev/null || true
"#;

/// Installs and removes the one for rpm, in the same node.
const RPM: &str = r#"
rpm --force-debian --nodeps --install sexton-*.rpm > rpm.log 2>&1
systemctl start sexton-agent
systemctl is-active sexton-agent > rpm-active
systemctl show --value -p User sexton-agent > rpm-user
rpm --force-debian --verify --nodeps sexton > rpm-verify 2>&1 || true
await answers
rpm --force-debian --erase sexton >> rpm.log 2>&1
systemctl is-active sexton-agent > rpm-removed || true
ls -d /usr/bin/sexton /usr/lib/systemd/system/sexton-agent.service > left-by-erase 2> /dev/null || true
"#;

/// Runs the image by both engines, as the agent and as a command.
const IMAGE: &str = r#"
archive=$(ls sexton-*.oci.tar)
docker load --input $archive > loaded
docker run --rm --net=none $(sed 's/Loaded image: //' loaded) --version > by-docker
mkdir /var/lib/sexton
# This Docker does not know BPF and PERFMON, which were part of SYS_ADMIN.
docker run --detach --name agent --net=none --pid=host --cap-drop=ALL --cap-add=SYS_ADMIN \
    --cap-add=SYS_PTRACE --cap-add=SYSLOG --cap-add=DAC_READ_SEARCH \
    -v /sys:/sys:ro -v /var/lib/sexton:/var/lib/sexton $(sed 's/Loaded image: //' loaded) > /dev/null
answers() { docker exec agent /usr/bin/sexton status --json | grep -q '"sexton.status/1"'; }
await answers
docker stop agent > /dev/null
docker logs agent > agent.log 2>&1
docker inspect --format '{{.State.ExitCode}}' agent > agent.code
ctr images import $archive > imported
ctr run --rm docker.io/library/$(sed 's/Loaded image: //' loaded) once /usr/bin/sexton --version > by-containerd
"#;

/// What came of a job.
struct Installed {
    systemd: Systemd,
}

impl Installed {
    fn read(&self, name: &str) -> String {
        let text = self.systemd.read(name).expect("the job wrote it");
        text.trim().to_owned()
    }

    fn status(&self, name: &str) -> Status {
        serde_json::from_str(&self.read(name)).expect("a status")
    }
}

fn run(job: &str, endings: &[&'static str], within: u64) -> Installed {
    require(Need::Root);
    require(Need::Bpf);
    require(Need::Systemd);
    let mut parts = Vec::new();
    for ending in endings {
        require(Need::Part(ending));
        parts.extend(part(ending));
    }
    let rootfs = std::env::var_os(ROOTFS).expect("a tree to boot");
    let within = Duration::from_secs(within);
    let played = Systemd::play(Path::new(&rootfs), &parts, job, within, &mut |_| ());
    let (systemd, done) = played.expect("it boots");
    if let Err(error) = done {
        let said = systemd.read("said").unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(20).collect();
        panic!("{error:#}; the job, last line first: {last:#?}");
    }
    Installed { systemd }
}

/// The first moment of the one boot of a ring.
fn begins(boots: &Path) -> Moment {
    let mut boots = std::fs::read_dir(boots).expect("boots");
    let boot = boots.next().expect("a boot").expect("a folder");
    let bundle = Bundle::open(&boot.path()).expect("a bundle");
    *bundle.span().expect("records").start()
}

/// Sensors that were refused something, as a recording tells it.
fn refused(boots: &Path) -> BTreeSet<String> {
    let mut refused = BTreeSet::new();
    for boot in std::fs::read_dir(boots).expect("boots") {
        let bundle = Bundle::open(&boot.expect("a boot").path()).expect("a bundle");
        let records = bundle.load(None, None);
        let denied = records.gaps().filter(|(_, _, gap)| gap.why == Why::Denied);
        refused.extend(denied.map(|(_, _, gap)| format!("{}: {}", gap.sensor, gap.text)));
    }
    refused
}

#[test]
#[ignore = "needs root, bpf and systemd: run cargo xtask test kernel"]
fn packages_are_installed_upgraded_and_purged() {
    let job = [NODE, DEB, RPM].concat();
    let run = run(&job, &[".deb", ".rpm"], 240);
    is_installed(&run);
    sees_all_but_what_is_named(&run);
    is_upgraded(&run);
    is_removed(&run);
    assert_eq!(run.read("rpm-active"), "active");
    assert_eq!(run.read("rpm-user"), "sexton");
    assert_eq!(run.read("rpm-verify"), "");
    assert_eq!(run.read("rpm-removed"), "inactive");
    assert_eq!(run.read("left-by-erase"), "");
}

fn is_installed(run: &Installed) {
    assert_eq!(run.read("enabled"), "enabled");
    assert_eq!(run.read("active"), "active");
    assert_eq!(run.read("user"), "sexton");
    assert_eq!(
        run.read("owners"),
        "sexton 750\nsexton 755\nsexton 660",
        "ring, folder of the socket, socket"
    );
    // The capabilities of the unit and no others, in every set of the process.
    let unit = include_str!("../../../../deploy/systemd/sexton-agent.service");
    let granted = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let n_granted = granted.expect("a set").split_whitespace().count();
    for line in run.read("capabilities").lines() {
        let (set, mask) = line.split_once(':').expect("a set");
        let mask = u64::from_str_radix(mask.trim(), 16).expect("a mask");
        assert_eq!(mask.count_ones() as usize, n_granted, "{set}");
    }
    let (first, second) = (run.status("first"), run.status("second"));
    assert_eq!(first.disk_trouble, None);
    assert!(first.state.is_some(), "{first:?}");
    assert!(second.records > first.records, "{first:?}, {second:?}");
    assert!(
        second.ring_bytes > first.ring_bytes,
        "{first:?}, {second:?}"
    );
    assert_eq!(run.read("healthz"), "ok");
    // It finds nothing wrong with its own unit.
    let own = |finding: &&FindingStatus| finding.subject.contains("sexton-agent");
    assert_eq!(second.findings.iter().find(own), None);
}

/// Compared with root on the same node, only the sensors that are named see less.
fn sees_all_but_what_is_named(run: &Installed) {
    let named: BTreeSet<&str> = UNSEEN.iter().map(|(sensor, _)| *sensor).collect();
    let root = run.status("root");
    for (name, sensor) in &run.status("second").sensors {
        let as_root = &root.sensors[name];
        let is_as_good = sensor.state == as_root.state || named.contains(name.as_str());
        assert!(is_as_good, "{name}: {sensor:?}, as root {as_root:?}");
    }
    let folder = run.systemd.folder();
    let (user, root) = (
        refused(&folder.join("as-user")),
        refused(&folder.join("as-root")),
    );
    let only_user: Vec<&String> = user.difference(&root).collect();
    let sensor = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let refused: BTreeSet<String> = only_user.iter().map(|text| sensor(text)).collect();
    // Those that are named are refused something indeed: the list is no longer than it must be.
    assert!(refused.iter().eq(named.iter()), "{only_user:#?}");
}

fn is_upgraded(run: &Installed) {
    let (second, third) = (run.status("second"), run.status("third"));
    assert_eq!(run.read("upgraded"), "active");
    assert_ne!(second.pid, third.pid);
    assert_eq!((third.boots, &third.bundle), (1, &second.bundle));
    // What was recorded before is still there.
    let folder = run.systemd.folder();
    assert_eq!(
        begins(&folder.join("upgraded-ring")),
        begins(&folder.join("as-user"))
    );
    assert_eq!(run.read("config"), "# by the owner of this node");
    let journal = run.read("journal");
    assert!(
        journal.contains("continuing the ring of this boot"),
        "{journal}"
    );
}

fn is_removed(run: &Installed) {
    assert_eq!(run.read("removed"), "inactive");
    assert!(run.read("left-by-remove").contains("boots"));
    assert_eq!(run.read("left-by-purge"), "");
}

#[test]
#[ignore = "needs root, bpf and systemd: run cargo xtask test kernel"]
fn the_image_runs_in_docker_and_containerd() {
    let run = run(&[NODE, IMAGE].concat(), &[".oci.tar"], 120);
    let version = run.read("by-docker");
    assert!(version.starts_with("sexton "), "{version}");
    assert_eq!(run.read("by-containerd"), version);
    let log = run.read("agent.log");
    assert_eq!(run.read("agent.code"), "0", "{log}");
    assert!(log.contains("agent stops"), "{log}");
}
