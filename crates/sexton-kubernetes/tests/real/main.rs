//! Against a real API server with a real store: what is deployed is taken, the agent's rights are
//! enough and no more, conditions and events are there, and every fault is lived through.
//!
//! Run by `cargo xtask lab kubernetes`. One API server is shared by all steps, in their order.

mod cluster;
mod proxy;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sexton_kubernetes::conditions::Hold;
use sexton_kubernetes::{
    Access, KubernetesError, Nodes, Pace, Pod, Problem, Settings, Teller, Turn, Verdict, clean_up,
};
use sexton_model::family::Family;
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;

use cluster::Cluster;
use proxy::Fault;

const PACE: Pace = Pace {
    heartbeat: Duration::from_secs(3),
    least_between: Duration::from_millis(200),
    first_wait: Duration::from_millis(100),
    longest_wait: Duration::from_millis(500),
    hold: Hold {
        clear: Duration::from_secs(1),
        longest_clear: Duration::from_secs(1),
        blind: Duration::from_secs(2),
        remembered: Duration::from_secs(60),
    },
};

const NODE: &str = "worker-1";

#[test]
fn the_whole_way() {
    let cluster = Cluster::start();
    everything_is_taken(&cluster);
    cluster.make_node(NODE);
    let pod = make_pod(&cluster);
    rights_are_least(&cluster);
    told_and_restarted(&cluster, &pod);
    faults_are_lived_through(&cluster);
    budget_holds(&cluster);
    cleaned(&cluster);
}

/// `kubectl apply -k` of the base and of each overlay, checked by the server.
fn everything_is_taken(cluster: &Cluster) {
    let deploy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes");
    // So that the namespace is there for the dry runs.
    let said = cluster.kubectl(&["apply", "-k", &format!("{deploy}/base")]);
    assert!(said.contains("daemonset.apps/sexton created"), "{said}");
    for overlay in [
        "containerd",
        "docker",
        "cgroup-v1",
        "cgroup-v2",
        "restricted",
    ] {
        let path = format!("{deploy}/overlays/{overlay}");
        let said = cluster.kubectl(&["apply", "--dry-run=server", "-k", &path]);
        assert!(said.contains("daemonset.apps/sexton"), "{overlay}: {said}");
        println!("taken: {overlay}");
    }
    // Applied again, nothing changes.
    let said = cluster.kubectl(&["apply", "-k", &format!("{deploy}/base")]);
    assert!(
        said.lines().all(|line| line.ends_with("unchanged")),
        "{said}"
    );
    let set = cluster.get("/apis/apps/v1/namespaces/sexton/daemonsets/sexton");
    let security = &set["spec"]["template"]["spec"]["containers"][0]["securityContext"];
    assert_eq!(security["privileged"], false, "{security}");
    let said = cluster.kubectl(&["apply", "-k", &format!("{deploy}/cleanup")]);
    assert!(said.contains("job.batch/sexton-cleanup created"), "{said}");
}

fn make_pod(cluster: &Cluster) -> Pod {
    let body = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "crasher-5d9-x", "namespace": "default",
            "labels": { "pod-template-hash": "5d9", "ray.io/cluster": "train" },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "crasher-5d9",
                "uid": "1", "controller": true,
            }],
        },
        "spec": { "nodeName": NODE, "containers": [{ "name": "app", "image": "crash:1" }] },
    });
    let made = cluster.post("/api/v1/namespaces/default/pods", &body);
    Pod {
        namespace: "default".into(),
        name: "crasher-5d9-x".into(),
        uid: made["metadata"]["uid"].as_str().expect("a uid").into(),
        container: Some("app".into()),
        image: Some("crash:1".into()),
    }
}

/// The token of the service account does what the agent does, and nothing beside it.
fn rights_are_least(cluster: &Cluster) {
    let can = |verb: &str, what: &str| {
        let who = "--as=system:serviceaccount:sexton:sexton";
        let (what, part) = what.split_once('/').unwrap_or((what, ""));
        let part = format!("--subresource={part}");
        let said = cluster.try_kubectl(&["auth", "can-i", verb, what, &part, who, "-A"]);
        said.trim() == "yes"
    };
    for (verb, what) in [("get", "nodes"), ("patch", "nodes/status"), ("get", "pods")] {
        assert!(can(verb, what), "{verb} {what}");
    }
    for (verb, what) in [
        ("list", "nodes"),
        ("patch", "nodes"),
        ("delete", "nodes"),
        ("list", "pods"),
        ("delete", "pods"),
        ("get", "secrets"),
        ("create", "pods/exec"),
    ] {
        assert!(!can(verb, what), "{verb} {what}");
    }
    let access = cluster.access_of_service_account();
    let refused = clean_up(access, &Nodes::All, "0").expect_err("it may not list nodes");
    assert_eq!(refused.status(), Some(403), "{refused}");
}

fn settings(cluster: &Cluster) -> Settings {
    Settings {
        access: cluster.access_of_service_account(),
        node: NODE.into(),
        runbooks: "https://wiki.example/".into(),
        version: "0",
        pace: PACE,
    }
}

fn teller(cluster: &Cluster) -> Teller {
    let log = Box::new(|_, line: &str| println!("log: {line}"));
    Teller::start(settings(cluster), log).expect("a thread")
}

fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(now.expect("after 1970").as_nanos()).expect("it fits")
}

fn churn(pods: &[Pod]) -> Problem {
    Problem {
        id: "CTR001:crash:1".into(),
        code: "CTR001",
        family: Family::ContainerChurn,
        severity: Severity::Serious,
        title: "app of pod default/crasher-5d9-x exits after 1 s, again and again".into(),
        root: None,
        pods: pods.to_vec(),
    }
}

fn verdict(problem: Option<Problem>, is_turn: bool) -> Verdict {
    let turn = |problem| Turn {
        problem,
        is_over: false,
        wall_ns: now_ns(),
    };
    Verdict {
        at: Moment::from_ns(now_ns()),
        wall_ns: now_ns(),
        turns: problem
            .clone()
            .filter(|_| is_turn)
            .map(turn)
            .into_iter()
            .collect(),
        problems: problem.into_iter().collect(),
        ..Verdict::default()
    }
}

fn condition(cluster: &Cluster, kind: &str) -> Value {
    let node = cluster.get(&format!("/api/v1/nodes/{NODE}"));
    let all = node["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    all.into_iter()
        .find(|it| it["type"] == kind)
        .unwrap_or_default()
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "not within 30 s: {what}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{:5} ms  {what}", began.elapsed().as_millis());
}

fn told_and_restarted(cluster: &Cluster, pod: &Pod) {
    let is = |status: &str| condition(cluster, "SextonContainerChurn")["status"] == status;
    let teller = self::teller(cluster);
    wait_for("Unknown at the start", || is("Unknown"));
    teller.tell(verdict(None, false));
    wait_for("False after the first verdict", || is("False"));
    teller.tell(verdict(Some(churn(std::slice::from_ref(pod))), true));
    wait_for("True with a finding", || is("True"));
    let told = condition(cluster, "SextonContainerChurn");
    let message = told["message"].as_str().unwrap_or_default();
    assert!(
        message.ends_with("Runbook: https://wiki.example/CTR001.md"),
        "{message}"
    );
    assert_eq!(
        condition(cluster, "Ready")["reason"],
        "KubeletReady",
        "it is another's"
    );
    let list = "/apis/events.k8s.io/v1/events";
    let ours = || -> Vec<Value> {
        let events = cluster.get(list);
        let events = events["items"].as_array().cloned().unwrap_or_default();
        events
            .into_iter()
            .filter(|it| it["reportingController"] == "sexton")
            .collect()
    };
    wait_for("events of node and pod", || ours().len() == 2);
    let of_pod = ours()
        .into_iter()
        .find(|it| it["regarding"]["kind"] == "Pod");
    let note = of_pod.expect("one")["note"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        note.contains("container app of pod default/crasher-5d9-x (Deployment crasher, image crash:1, Ray cluster train)"),
        "{note}"
    );
    let described = cluster.kubectl(&["describe", "node", NODE]);
    assert!(described.contains("SextonContainerChurn"), "{described}");
    teller.stop();
    // A new agent: what was True stays so, the rest is Unknown again, the event is a series.
    let before = told["lastTransitionTime"].clone();
    let teller = self::teller(cluster);
    wait_for("Unknown after a restart", || {
        condition(cluster, "SextonCoreLost")["status"] == "Unknown"
    });
    assert!(is("True"));
    teller.tell(verdict(Some(churn(std::slice::from_ref(pod))), true));
    wait_for("a repeat is counted", || {
        ours().iter().all(|it| it["series"]["count"] == 2)
    });
    assert_eq!(ours().len(), 2, "no second event");
    let told = condition(cluster, "SextonContainerChurn");
    assert_eq!(
        told["lastTransitionTime"], before,
        "it never stopped being True"
    );
    std::thread::sleep(Duration::from_millis(1_100));
    teller.tell(verdict(None, false));
    std::thread::sleep(Duration::from_millis(1_100));
    teller.tell(verdict(None, false));
    wait_for("False again", || is("False"));
    assert_eq!(teller.stats().n_failed, 0);
}

fn faults_are_lived_through(cluster: &Cluster) {
    let is = |status: &str| condition(cluster, "SextonContainerChurn")["status"] == status;
    let faults = [
        ("down", Fault::Close),
        ("slow", Fault::Slow(Duration::from_secs(1))),
        ("403", Fault::Status(403, None)),
        ("409", Fault::Status(409, None)),
        ("429", Fault::Status(429, Some(1))),
        ("500", Fault::Status(500, None)),
    ];
    let teller = self::teller(cluster);
    teller.tell(verdict(None, false));
    wait_for("it begins well", || is("False"));
    for (name, fault) in faults {
        let is_slow = matches!(fault, Fault::Slow(_));
        let failed = teller.stats().n_failed;
        cluster.proxy.set(fault);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            teller.tell(verdict(Some(churn(&[])), false));
            std::thread::sleep(Duration::from_millis(20));
        }
        let tries = teller.stats().n_failed - failed;
        assert!(
            is_slow || (1..=12).contains(&tries),
            "{name}: {tries} tries in 3 s"
        );
        cluster.proxy.set(Fault::None);
        wait_for(&format!("{name}: it catches up"), || is("True"));
        wait_for("the trouble is over", || teller.stats().trouble.is_none());
        teller.tell(verdict(None, false));
        std::thread::sleep(Duration::from_millis(1_100));
        teller.tell(verdict(None, false));
        wait_for("and back", || is("False"));
    }
    // A token that the API server does not know, then a good one in the same file.
    let good = fs::read_to_string(cluster.token_file()).expect("a token");
    fs::write(cluster.token_file(), "not a token").expect("it is written");
    teller.tell(verdict(Some(churn(&[])), false));
    wait_for("the token is refused", || {
        teller
            .stats()
            .trouble
            .is_some_and(|it| it.contains("answered 401"))
    });
    fs::write(cluster.token_file(), good).expect("it is written");
    wait_for("the new token is taken", || is("True"));
}

/// How many requests a node makes when nothing changes.
fn budget_holds(cluster: &Cluster) {
    let teller = self::teller(cluster);
    teller.tell(verdict(None, false));
    wait_for("it is told", || {
        condition(cluster, "SextonCoreLost")["status"] == "False"
    });
    std::thread::sleep(Duration::from_secs(2));
    let before = teller.stats().n_requests;
    let began = Instant::now();
    while began.elapsed() < PACE.heartbeat * 3 {
        teller.tell(verdict(None, false));
        std::thread::sleep(Duration::from_millis(100));
    }
    let n_requests = teller.stats().n_requests - before;
    println!("{n_requests} requests in 3 heartbeats");
    assert!(
        (2..=4).contains(&n_requests),
        "{n_requests} requests in 3 heartbeats"
    );
}

fn cleaned(cluster: &Cluster) {
    let node = cluster.get(&format!("/api/v1/nodes/{NODE}"));
    let n_before = node["status"]["conditions"].as_array().map_or(0, Vec::len);
    let nodes = Nodes::Named(NODE.into());
    let clean = |access: Access| -> Result<_, KubernetesError> { clean_up(access, &nodes, "0") };
    let cleaned = clean(cluster.access_of_service_account()).expect("it may");
    assert_eq!(cleaned, [(NODE.to_owned(), Family::ALL.len())]);
    let node = cluster.get(&format!("/api/v1/nodes/{NODE}"));
    let left = node["status"]["conditions"].as_array().expect("a list");
    assert_eq!(left.len(), n_before - Family::ALL.len());
    assert!(left.iter().all(|it| it["type"] == "Ready"), "{left:?}");
    assert_eq!(
        clean(cluster.access_of_service_account()).expect("it may"),
        []
    );
}
