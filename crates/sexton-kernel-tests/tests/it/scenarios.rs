//! Makers that no signature knows, timers and the gate: a real systemd, a real Docker, and the
//! program as users run it, from a cold start. The founding incident itself, and nodes that are
//! only busy, are scenarios of the lab.

use serde_json::Value;
use sexton_kernel_tests::require::{Need, require};
use sexton_kernel_tests::scenario::Judged;

/// From the start of `sexton diagnose` to its answer.
const SECONDS: u64 = 60;

/// The engine as Debian ships it, and the agent's image: it appends 4 kB to a log of the
/// host and gives up. Both engines want a filesystem that can be the upper one of an
/// overlay. The log lies on a tmpfs: pages of a disk's file are reclaimed on a machine that needs
/// memory for other things, those of dead cgroups first, and the pile would come and go.
const ENGINE: &str = r#"
for name in docker containerd; do mkdir -p /job/$name /var/lib/$name; done
mkdir /run/ecs
mount --bind /job/docker /var/lib/docker
mount --bind /job/containerd /var/lib/containerd
mkdir -p /etc/docker
echo '{"bridge": "none", "iptables": false, "ip6tables": false}' > /etc/docker/daemon.json
systemctl start containerd.service docker.service
await docker version
mkdir -p tree/bin
cp /bin/busybox tree/bin/
for name in sh head; do ln -s busybox tree/bin/$name; done
tar -C tree -c . | docker import \
    --change 'CMD ["/bin/sh", "-c", "head -c 4096 /dev/zero >> /log/agent.log; exit 5"]' - $IMAGE
"#;

/// Ends it, and with it what it left: the log is all that pins.
const END: &str = r#"
systemctl status --no-pager $UNIT > status || true
systemctl stop $UNIT || true
docker ps -aq | xargs -r docker rm -f > /dev/null 2>&1 || true
systemctl stop docker.socket docker.service containerd.service
rm -rf /run/ecs /job/tree
umount /var/lib/docker /var/lib/containerd
rm -rf /job/docker /job/containerd
"#;

fn needs() {
    for need in [Need::Root, Need::Bpf, Need::Sexton, Need::Systemd] {
        require(need);
    }
}

fn run(unit: (&str, &str), image: &str, job: &str) -> Judged {
    needs();
    let job = format!(
        "IMAGE={image}\nUNIT={}\n{ENGINE}\nsystemctl start --no-block $UNIT\n{job}\n{END}",
        unit.0
    );
    Judged::of(&[unit], &job).expect("a run")
}

/// The root is the unit, the chain goes over its containers to what they left, and nobody
/// else is accused of anything.
fn check(judged: &Judged, root: &str, image: &str) {
    let all = &judged.verdict;
    assert_eq!(judged.state(), "cause-found", "{all:#}");
    assert_eq!(judged.number("code"), 1, "{all:#}");
    assert!(judged.number("seconds") <= SECONDS, "it took too long");
    assert_eq!(all["verdict"]["root"], root, "{all:#}");
    let chain = judged.chain();
    assert_eq!(chain.first(), Some(&root), "{all:#}");
    assert!(
        chain.contains(&format!("CTR001:{image}").as_str()),
        "{all:#}"
    );
    let is_pile = |id: &&&str| id.starts_with("MCG001:") && id.contains("/docker/");
    assert_eq!(chain.iter().filter(is_pile).count(), 1, "{all:#}");
    let (_, unit) = root.split_once(':').expect("an id");
    for id in judged.found("UNIT00") {
        assert!(
            id.ends_with(&format!(":{unit}")),
            "{id} is accused: {all:#}"
        );
    }
    assert_eq!(judged.found("CTR").len(), 1, "{all:#}");
}

/// No signature knows the unit, its image or its names: only the clients lead there.
#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn a_supervisor_that_nobody_knows_is_the_root_too() {
    const IMAGE: &str = "example/probe:2";
    let unit = (
        "poller.service",
        "[Service]\nExecStart=/bin/sh -c \"while :; do \
         docker run --rm --net=host -v /run/ecs:/log example/probe:2; sleep 0.5; done\"\n",
    );
    let judged = run(
        unit,
        IMAGE,
        r#"
        await sh -c 'test $(stat -c %s /run/ecs/agent.log) -ge 100000'
        judge
        "#,
    );
    check(&judged, "UNIT002:poller.service", IMAGE);
}

/// It speaks to the engine's socket, as the agent of the founding incident does, and neither its
/// image nor any name is known: only what it writes to the journal leads there.
#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn a_supervisor_that_asks_over_the_socket_is_found_by_its_log() {
    const IMAGE: &str = "example/probe:2";
    const LOOP: &str = r#"#!/bin/sh
ask() { curl -sS -X POST --unix-socket /run/docker.sock -H 'Content-Type: application/json' "$@"; }
while :; do
    echo "trying again"
    id=$(ask -d '{"Image": "example/probe:2", "HostConfig": {"NetworkMode": "host", "Binds": ["/run/ecs:/log"], "AutoRemove": true}}' http://engine/containers/create | cut -d '"' -f 4)
    ask http://engine/containers/$id/start
    sleep 3
done
"#;
    let unit = ("keeper.service", "[Service]\nExecStart=/bin/sh /job/loop\n");
    // The unit begins before its loop is written, and is then started again.
    let judged = run(
        unit,
        IMAGE,
        &format!(
            r#"
        systemctl stop keeper.service
        cat > loop <<'END'
{LOOP}
END
        systemctl start keeper.service
        await sh -c 'test $(stat -c %s /run/ecs/agent.log) -ge 32000'
        judge
        "#
        ),
    );
    let all = &judged.verdict;
    assert_eq!(judged.state(), "cause-found", "{all:#}");
    assert_eq!(all["verdict"]["root"], "UNIT002:keeper.service", "{all:#}");
    let told = judged.evidence("UNIT002:keeper.service");
    assert!(told.contains("by its log"), "{told}");
    for daemon in ["docker.service", "containerd.service"] {
        assert!(
            !judged.found("UNIT").iter().any(|id| id.ends_with(daemon)),
            "{all:#}"
        );
    }
}

/// A timer that does as it was told, and each run leaves a cgroup.
#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn a_timer_whose_runs_leak_is_led_back_to_its_unit() {
    needs();
    let units = [
        (
            "tick.timer",
            "[Timer]\nOnActiveSec=0\nOnUnitInactiveSec=200ms\nAccuracySec=1ms\n",
        ),
        (
            "tick.service",
            "[Unit]\nStartLimitIntervalSec=0\n[Service]\nType=oneshot\n\
             ExecStart=/bin/sh -c \"head -c 4096 /dev/zero >> /run/tick.log\"\n",
        ),
    ];
    let job = "systemctl start tick.timer\n\
               await sh -c 'test $(stat -c %s /run/tick.log) -ge 160000'\njudge\n\
               systemctl stop tick.timer\nrm /run/tick.log\n";
    let judged = Judged::of(&units, job).expect("a run");
    let all = &judged.verdict;
    assert_eq!(all["verdict"]["root"], "UNIT002:tick.service", "{all:#}");
    let told = judged.evidence("UNIT002:tick.service");
    assert!(told.contains("by tick.timer"), "{told}");
    assert_eq!(judged.found("UNIT001"), Vec::<&str>::new(), "{all:#}");
}

/// A loop whose program says why it cannot go on: the first screen says it too.
#[test]
#[ignore = "needs root, sexton and systemd: run cargo xtask test kernel"]
fn a_unit_in_a_loop_is_quoted_on_the_first_screen() {
    for need in [Need::Root, Need::Sexton, Need::Systemd] {
        require(need);
    }
    let unit = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=300ms\n\
                ExecStart=/bin/sh -c \"echo starting; echo cannot read /etc/broken.conf; exit 4\"\n";
    let job = "systemctl start --no-block broken.service\nsleep 2\n\
               ./sexton diagnose --for 8s --no-pager > screen || true\n\
               systemctl stop broken.service\n";
    let systemd = Judged::job(&[("broken.service", unit)], job).expect("a run");
    let screen = systemd.read("screen").expect("a screen");
    assert!(screen.contains("exit status 4"), "{screen}");
    assert!(
        screen.contains("\"cannot read /etc/broken.conf\""),
        "{screen}"
    );
}

/// The gate, on a node that carries the founding unit and has not started it.
#[test]
#[ignore = "needs root, bpf, sexton and systemd: run cargo xtask test kernel"]
fn the_gate_refuses_a_node_that_carries_the_founding_unit() {
    needs();
    let install = "[Install]\nWantedBy=multi-user.target\n";
    let ecs = format!("[Service]\nExecStart=/bin/true\nRestart=always\nRestartSec=10s\n{install}");
    let kubelet = format!("[Service]\nExecStart=/bin/sleep 1000\n{install}");
    let units = [("ecs.service", ecs.as_str()), ("kubelet.service", &kubelet)];
    let job = "systemctl enable kubelet.service\n\
               ./sexton check --only unwanted_units --json > before || echo $? > before.code\n\
               systemctl enable ecs.service\n\
               ./sexton check --only unwanted_units --json > gate || echo $? > gate.code\n";
    let systemd = Judged::job(&units, job).expect("a run");
    let gate = |file| -> Value {
        let text = systemd.read(file).expect("a gate");
        serde_json::from_str(&text).expect("JSON")
    };
    let (before, after) = (gate("before"), gate("gate"));
    let units = |gate: &Value| gate["checks"][0]["subjects"].to_string();
    assert!(!units(&before).contains("ecs.service"), "{before:#}");
    assert_eq!(after["pass"], false, "{after:#}");
    assert!(units(&after).contains("ecs.service"), "{after:#}");
    let why = after["checks"][0]["why"].to_string();
    assert!(why.contains("kubernetes-node"), "{why}");
    assert_eq!(systemd.read("gate.code").expect("it failed").trim(), "1");
}
