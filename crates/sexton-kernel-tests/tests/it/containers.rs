//! Lives of containers of real engines are told, each of them once, whichever engine they
//! are of, through its restart, and with the exit codes and kills that there were.

use std::time::Duration;

use serde_json::Value;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::systemd::Systemd;

const DUMP: &str = env!("CARGO_BIN_EXE_sensor-dump");
const POD: &str = env!("CARGO_BIN_EXE_cri-pod");

/// Real engines, and an image that both have. They want a filesystem that can be the
/// upper one of an overlay, which one that is an overlay itself cannot.
const ENGINES: &str = r#"
mkdir -p /var/lib/docker /var/lib/containerd
mount -t tmpfs none /var/lib/docker
mount -t tmpfs none /var/lib/containerd
mount -t tmpfs none /tmp
await() { for i in $(seq 200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; exit 9; }
start_containerd() {
    containerd --config containerd.toml >> containerd.log 2>&1 &
    containerd=$!
    await ctr version
}
start_dockerd() {
    rm -f /var/run/docker.pid
    dockerd --live-restore --bridge=none --iptables=false --ip6tables=false \
        --containerd=/run/containerd/containerd.sock >> dockerd.log 2>&1 &
    dockerd=$!
    await docker version
}
cat > containerd.toml << 'END'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/library/tiny:1"
restrict_oom_score_adj = true
END
start_containerd
start_dockerd
mkdir -p tree/bin
cp /bin/busybox tree/bin/
for name in sh sleep tail; do ln -s busybox tree/bin/$name; done
tar -C tree -c . | docker import --change 'CMD ["/bin/sleep", "1000"]' - tiny:1
docker save tiny:1 > tiny.tar
for namespace in default other k8s.io; do ctr -n $namespace image import tiny.tar; done
image=docker.io/library/tiny:1
"#;

/// Both engines at once, and Docker restarted under the sensor: seven lives, one that
/// goes on, then five more.
const BOTH: &str = r#"
./sensor-dump containers 32 500 > records &
dump=$!
await grep -q container_running records
for i in 1 2 3 4 5 6 7; do docker run --rm --net=none tiny:1 /bin/sh -c 'exit 3' || true; done
docker run -d --name stays --net=none tiny:1
docker run --rm --net=none --memory=20m --name eats tiny:1 /bin/sh -c 'tail /dev/zero' || true
for i in 1 2 3; do ctr run --rm $image quick$i /bin/sh -c 'exit 5' || true; done
for i in 1 2; do ctr -n other run --rm $image quick$i /bin/sh -c 'exit 6' || true; done
ctr run --rm --memory-limit 20000000 $image eater /bin/sh -c 'tail /dev/zero' || true
ctr run -d $image goes-on /bin/sleep 1000
kill $dockerd
wait $dockerd || true
await grep -q 'docker at .* is not heard' records
start_dockerd
kill $containerd
wait $containerd || true
await grep -q 'containerd at .* is not heard' records
start_containerd
sleep 12
for i in 1 2 3 4 5; do docker run --rm --net=none tiny:1 /bin/sh -c 'exit 3' || true; done
for i in 4 5 6 7; do ctr run --rm $image quick$i /bin/sh -c 'exit 5' || true; done
docker kill stays
wait $dump
"#;

/// The same containers are seen twice: through containerd itself, and through CRI on a
/// second door to it, where CRI-O has its own.
const PODS: &str = r#"
mkdir /run/crio
touch /run/crio/crio.sock
mount --bind /run/containerd/containerd.sock /run/crio/crio.sock
socket=/run/containerd/containerd.sock
./cri-pod $socket early $image /bin/sleep 1000 > early.id
ATTEMPT=7 ./cri-pod $socket backs-off $image /bin/sh -c 'exit 1' > backs-off.id
sleep 1
./sensor-dump containers 20 500 > records &
dump=$!
await grep -q container_running records
./cri-pod $socket fails $image /bin/sh -c 'sleep 1; exit 9' > fails.id
./cri-pod $socket eats $image /bin/sh -c 'tail /dev/zero' > eats.id
wait $dump
"#;

/// Podman has no daemon; its API answers while somebody serves it. What `podman run` does
/// beside that is told through the journal of events that all of them share.
const PODMAN: &str = r#"
mkdir -p /var/lib/containers /run/podman
mount -t tmpfs none /var/lib/containers
mount -t tmpfs none /tmp
await() { for i in $(seq 200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done; exit 9; }
cat > /etc/containers/containers.conf << 'END'
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
END
serve() {
    podman system service --time=0 unix:///run/podman/podman.sock >> podman.log 2>&1 &
    served=$!
    await curl --fail --unix-socket /run/podman/podman.sock http://d/_ping
}
mkdir -p tree/bin
cp /bin/busybox tree/bin/
for name in sh sleep tail; do ln -s busybox tree/bin/$name; done
tar -C tree -c . | podman import --change 'CMD ["/bin/sleep", "1000"]' - tiny:1
podman run -d --name early --net=none tiny:1
serve
./sensor-dump containers 20 500 > records &
dump=$!
await grep -q container_running records
for i in 1 2 3; do podman run --rm --net=none tiny:1 /bin/sh -c 'exit 3' || true; done
podman run --rm --net=none --memory=20m tiny:1 /bin/sh -c 'tail /dev/zero' || true
podman kill early
kill $served
wait $served || true
await grep -q 'podman at .* is not heard' records
serve
wait $dump
"#;

struct Seen(Vec<Value>);

impl Seen {
    fn by(engines: &Systemd) -> Self {
        let records = engines.read("records").expect("records");
        let lines = records.lines().map(serde_json::from_str);
        Self(lines.collect::<Result<_, _>>().expect("lines of JSON"))
    }

    /// What the events of one runtime say, `-` for what is not there.
    fn events(&self, fact: &str, runtime: &str, keys: &[&str]) -> Vec<String> {
        let is_it = |line: &&Value| line["fact"] == fact && line["says"]["runtime"] == runtime;
        let tell = |line: &Value| {
            let value = |key: &&str| match &line["says"][key] {
                Value::Null => "-".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            keys.iter().map(value).collect::<Vec<_>>().join(" ")
        };
        self.0.iter().filter(is_it).map(tell).collect()
    }

    fn births(&self, image: &str) -> f64 {
        let is_it = |line: &&Value| line["fact"] == "container_births" && line["name"] == image;
        let samples = self.0.iter().filter(is_it);
        samples.filter_map(|line| line["value"].as_f64()).sum()
    }

    fn gaps(&self) -> Vec<&str> {
        self.0
            .iter()
            .filter_map(|line| line["text"].as_str())
            .collect()
    }
}

fn run(job: &str) -> (Systemd, Seen) {
    run_bare(&format!("{ENGINES}\n{job}"))
}

fn run_bare(job: &str) -> (Systemd, Seen) {
    require(Need::Systemd);
    let limit = Duration::from_secs(120);
    let engines = Systemd::run_bare(&[DUMP, POD], job, limit).expect("a run");
    let seen = Seen::by(&engines);
    (engines, seen)
}

fn count(lines: &[String], expected: &str) -> usize {
    lines.iter().filter(|line| *line == expected).count()
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn two_engines_are_heard_at_once_and_through_a_restart() {
    let (_engines, seen) = run(BOTH);
    // Seven, `stays`, `eats`; five after the restart.
    let started = seen.events("container_started", "docker", &["image"]);
    assert_eq!(count(&started, "tiny:1"), 14, "{:#?}", seen.0);
    assert_eq!(started.len(), 14, "{started:#?}");
    assert_eq!(seen.births("tiny:1"), 14.0);
    let exited = seen.events("container_exited", "docker", &["exit_code", "oom"]);
    assert_eq!(count(&exited, "3 no"), 12, "{exited:#?}");
    assert_eq!(count(&exited, "137 yes"), 1, "{exited:#?}");
    assert_eq!(count(&exited, "137 no"), 1, "{exited:#?}");
    assert_eq!(exited.len(), 14);

    let keys = ["namespace", "name", "image"];
    let mut started = seen.events("container_started", "containerd", &keys);
    started.sort();
    let name = |namespace: &str, name: &str| format!("{namespace} {name} docker.io/library/tiny:1");
    let mut expected = vec![name("default", "eater"), name("default", "goes-on")];
    expected.extend((1..=7).map(|i| name("default", &format!("quick{i}"))));
    expected.extend((1..=2).map(|i| name("other", &format!("quick{i}"))));
    assert_eq!(started, expected);
    assert_eq!(seen.births("docker.io/library/tiny:1"), 11.0);
    let keys = ["namespace", "exit_code", "oom"];
    let exited = seen.events("container_exited", "containerd", &keys);
    assert_eq!(count(&exited, "default 5 no"), 7, "{exited:#?}");
    assert_eq!(count(&exited, "other 6 no"), 2);
    let eaten = count(&exited, "default 137 yes") + count(&exited, "default 137 unknown");
    assert_eq!(eaten, 1, "{exited:#?}");
    assert_eq!(exited.len(), 10);

    // Each engine was away once, and nothing ended unseen.
    let gaps = seen.gaps();
    let away = |engine: &str| {
        let begin = format!("{engine} at ");
        gaps.iter().filter(|gap| gap.starts_with(&begin)).count()
    };
    assert!(away("docker") >= 1 && away("containerd") >= 1, "{gaps:#?}");
    assert!(!gaps.iter().any(|gap| gap.contains("unseen")), "{gaps:#?}");
    let mut running = seen
        .0
        .iter()
        .filter(|line| line["fact"] == "container_running");
    let last = running.next_back().map(|line| line["value"].clone());
    assert_eq!(last, Some(1.0.into()));
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn pods_are_heard_through_containerd_and_through_cri() {
    let (engines, seen) = run(PODS);
    for (runtime, gone_by) in [("containerd", "k8s.io"), ("cri-o", "-")] {
        let keys = [
            "id",
            "name",
            "pod",
            "pod_namespace",
            "namespace",
            "exit_code",
        ];
        let exited = seen.events("container_exited", runtime, &keys);
        for (pod, code) in [("fails", 9), ("eats", 137)] {
            let id = engines.read(&format!("{pod}.id")).expect("an id");
            let expected = format!("{} main {pod} tests {gone_by} {code}", id.trim());
            assert_eq!(count(&exited, &expected), 1, "{expected}: {exited:#?}");
            let started = seen.events("container_started", runtime, &["id", "image"]);
            let is_it = |line: &&String| line.starts_with(id.trim()) && line.ends_with("tiny:1");
            assert_eq!(started.iter().filter(is_it).count(), 1, "{started:#?}");
        }
        // One that a kubelet waits with longer and longer, and that ended before.
        let keys = ["id", "pod", "attempt", "exit_code", "before_open"];
        let id = engines.read("backs-off.id").expect("an id");
        let expected = format!("{} backs-off 7 1 true", id.trim());
        let exited = seen.events("container_exited", runtime, &keys);
        assert_eq!(count(&exited, &expected), 1, "{expected}: {exited:#?}");
        let lived = seen.events("container_exited", runtime, &["pod", "lifetime_ms"]);
        let lived = lived.iter().find_map(|line| line.strip_prefix("fails "));
        let lived_ms: u64 = lived.and_then(|ms| ms.parse().ok()).expect("a lifetime");
        assert!(lived_ms >= 1_000, "it slept for a second: {lived_ms}");
    }
    // CRI says itself what the kernel killed it for.
    let killed = seen.events("container_exited", "cri-o", &["pod", "oom"]);
    assert_eq!(count(&killed, "eats yes"), 1, "{killed:#?}");
    assert_eq!(seen.gaps(), Vec::<&str>::new());
}

#[test]
#[ignore = "needs systemd: run cargo xtask test kernel"]
fn podman_is_heard_while_its_api_is_served() {
    let (_engines, seen) = run_bare(PODMAN);
    let image = "localhost/tiny:1";
    let started = seen.events("container_started", "podman", &["image"]);
    // Four, and the one that began a moment before: the past is asked for, too.
    assert_eq!(count(&started, image), 5, "{:#?}", seen.0);
    assert_eq!(started.len(), 5, "{started:#?}");
    assert_eq!(seen.births(image), 4.0);
    let exited = seen.events("container_exited", "podman", &["exit_code"]);
    assert_eq!(count(&exited, "3"), 3, "{exited:#?}");
    // The one that ate its memory, and the one that was there before and was killed.
    assert_eq!(count(&exited, "137"), 2, "{exited:#?}");
    let gaps = seen.gaps();
    assert!(
        gaps.iter().any(|gap| gap.starts_with("podman at ")),
        "{gaps:#?}"
    );
}
