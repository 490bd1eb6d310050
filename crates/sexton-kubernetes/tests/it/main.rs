//! The thread that tells the API server, against one that answers as it is told to: how often it
//! asks, and what it does when it is refused. What a real API server makes of the same requests
//! is tested in `tests/real`. And that what is deployed fits the schemas of API servers.

mod schemas;
mod server;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::json;
use sexton_kubernetes::conditions::Hold;
use sexton_kubernetes::{Access, Pace, Pod, Problem, Settings, Teller, Turn, Verdict};
use sexton_model::family::Family;
use sexton_model::finding::Severity;
use sexton_model::moment::Moment;
use sexton_testkit::TempTree;

use server::{Answer, Server};

const MINUTE: u64 = 60_000_000_000;

/// A hundred times as fast as on a node.
const PACE: Pace = Pace {
    heartbeat: Duration::from_secs(3),
    least_between: Duration::from_millis(100),
    first_wait: Duration::from_millis(20),
    longest_wait: Duration::from_millis(200),
    hold: Hold {
        clear: Duration::from_secs(300),
        longest_clear: Duration::from_secs(3_600),
        blind: Duration::from_secs(120),
        remembered: Duration::from_secs(4 * 3_600),
    },
};

struct Place {
    _tree: TempTree,
    token: PathBuf,
    server: Server,
    teller: Teller,
}

fn start() -> Place {
    start_with(PACE)
}

fn start_with(pace: Pace) -> Place {
    let server = Server::start();
    let tree = TempTree::new();
    let token = tree.path().join("token");
    fs::write(&token, "old\n").expect("a token");
    let config = json!({
        "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
        "clusters": [{ "name": "k", "cluster": { "server": server.url() } }],
        "users": [{ "name": "u", "user": { "tokenFile": token } }],
    });
    let path = tree.path().join("kubeconfig");
    fs::write(&path, config.to_string()).expect("a kubeconfig");
    let settings = Settings {
        access: Access::kubeconfig(&path).expect("it is good"),
        node: "node-1".into(),
        runbooks: "docs/codes/".into(),
        version: "0",
        pace,
    };
    let teller = Teller::start(settings, Box::new(|_, _| {})).expect("a thread");
    Place {
        _tree: tree,
        token,
        server,
        teller,
    }
}

fn verdict(minute: u64, is_bad: bool) -> Verdict {
    let problem = Problem {
        id: "UNIT001:ecs.service".into(),
        code: "UNIT001",
        family: Family::UnitLoop,
        severity: Severity::Serious,
        title: "ecs.service restarts every 1.4 s".into(),
        root: None,
        pods: Vec::new(),
    };
    Verdict {
        at: Moment::from_ns(minute * MINUTE),
        wall_ns: minute * MINUTE,
        problems: is_bad.then(|| problem.clone()).into_iter().collect(),
        turns: is_bad
            .then_some(Turn {
                problem,
                is_over: false,
                wall_ns: minute * MINUTE,
            })
            .into_iter()
            .collect(),
        ..Verdict::default()
    }
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < until, "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_new_is_one_request_for_each_heartbeat() {
    let place = start();
    wait_for("Unknown is told", || {
        place.server.told("SextonUnitLoop", "Unknown")
    });
    place.teller.tell(verdict(1, false));
    wait_for("False is told", || {
        place.server.told("SextonUnitLoop", "False")
    });
    let before = place.server.requests().len();
    let began = Instant::now();
    // A verdict every 30 s, a hundred times as fast, for three heartbeats and a half.
    let mut minute = 1;
    while began.elapsed() < PACE.heartbeat * 7 / 2 {
        minute += 1;
        place.teller.tell(verdict(minute, false));
        std::thread::sleep(Duration::from_millis(300));
    }
    let after = place.server.requests();
    let new: Vec<&String> = after[before..].iter().collect();
    assert_eq!(new.len(), 3, "{new:?}");
    assert!(
        new.iter()
            .all(|it| it.contains("PATCH /api/v1/nodes/node-1/status")),
        "{new:?}"
    );
}

#[test]
fn a_problem_is_told_with_its_event() {
    let place = start();
    place.teller.tell(verdict(1, true));
    wait_for("True is told", || {
        place.server.told("SextonUnitLoop", "True")
    });
    wait_for("the event is created", || {
        let requests = place.server.requests();
        requests
            .iter()
            .any(|it| it.contains("POST /apis/events.k8s.io/v1/namespaces/default"))
    });
    wait_for("nothing failed", || place.teller.stats().n_requests >= 3);
    assert_eq!(place.teller.stats().n_failed, 0);
}

#[test]
fn a_refused_token_is_read_again() {
    let place = start();
    place
        .server
        .answer(Answer::Unless("Bearer new".into(), 401));
    place.teller.tell(verdict(1, true));
    wait_for("it is refused", || place.teller.stats().trouble.is_some());
    let trouble = place.teller.stats().trouble.expect("there is some");
    assert!(trouble.contains("answered 401"), "{trouble}");
    fs::write(&place.token, "new\n").expect("a token");
    wait_for("True is told", || {
        place.server.told("SextonUnitLoop", "True")
    });
    wait_for("the trouble is over", || {
        place.teller.stats().trouble.is_none()
    });
}

/// A verdict whose finding is about a pod of each namespace.
fn about_pods(minute: u64, namespaces: &[&str]) -> Verdict {
    let mut verdict = verdict(minute, true);
    verdict.turns[0].problem.pods = namespaces
        .iter()
        .map(|namespace| Pod {
            namespace: (*namespace).into(),
            name: "web".into(),
            uid: format!("uid-{namespace}"),
            ..Pod::default()
        })
        .collect();
    verdict
}

#[test]
fn a_refused_event_does_not_hold_up_conditions() {
    for status in [400, 403, 422, 500] {
        let place = start_with(Pace {
            first_wait: Duration::from_secs(60),
            longest_wait: Duration::from_secs(60),
            ..PACE
        });
        place
            .server
            .answer(Answer::If("namespaces/shop/events".into(), status));
        place.teller.tell(about_pods(1, &["shop"]));
        wait_for("the event is refused", || {
            place.teller.stats().n_failed == 1
        });
        let stats = place.teller.stats();
        let is_dropped = status != 500;
        assert_eq!(stats.n_dropped, u64::from(is_dropped), "{status}");
        let trouble = stats.trouble.expect("there is some");
        assert!(trouble.contains(&format!("answered {status}")), "{trouble}");
        let mut next = verdict(2, true);
        next.turns.clear();
        next.problems[0].family = Family::ContainerChurn;
        place.teller.tell(next);
        wait_for("a condition that changes is told", || {
            place.server.told("SextonContainerChurn", "True")
        });
    }
}

#[test]
fn a_refused_event_does_not_stop_the_others() {
    let place = start();
    place
        .server
        .answer(Answer::If("namespaces/shop/events".into(), 403));
    place
        .teller
        .tell(about_pods(1, &["shop", "../../nodes", "a b", "bank"]));
    wait_for("the event after it is told", || {
        let requests = place.server.requests();
        requests
            .iter()
            .any(|it| it.starts_with("POST") && it.contains("namespaces/bank/events"))
    });
    wait_for("the trouble is over", || {
        place.teller.stats().trouble.is_none()
    });
    let stats = place.teller.stats();
    assert_eq!((stats.n_failed, stats.n_dropped), (1, 3));
    let requests = place.server.requests();
    let is_strange = |it: &&String| it.contains("..") || it.contains("a b");
    assert_eq!(requests.iter().find(is_strange), None);
}

#[test]
fn a_server_that_asks_for_time_gets_it() {
    let place = start();
    wait_for("it is told", || {
        place.server.told("SextonUnitLoop", "Unknown")
    });
    place.server.answer(Answer::Status(429, Some(2)));
    place.teller.tell(verdict(1, true));
    wait_for("it is refused", || place.teller.stats().n_failed == 1);
    let (began, before) = (Instant::now(), place.server.requests().len());
    for minute in 2..50 {
        place.teller.tell(verdict(minute, true));
        std::thread::sleep(Duration::from_millis(30));
    }
    assert!(began.elapsed() < Duration::from_secs(2));
    assert_eq!(
        place.server.requests().len(),
        before,
        "it waits, though much happens"
    );
    place.server.answer(Answer::Good);
    wait_for("True is told", || {
        place.server.told("SextonUnitLoop", "True")
    });
}

#[test]
fn while_the_server_is_away_nothing_piles_up() {
    let place = start();
    place.server.answer(Answer::Close);
    for minute in 1..2_000 {
        place.teller.tell(verdict(minute, minute % 2 == 1));
    }
    wait_for("it fails", || place.teller.stats().n_failed >= 3);
    place.server.answer(Answer::Good);
    wait_for("the last verdict is told", || {
        place.server.told("SextonUnitLoop", "True")
    });
    let events = || {
        let requests = place.server.requests();
        requests.iter().filter(|it| it.contains("POST ")).count()
    };
    wait_for("the event is told", || events() == 1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(events(), 1, "a thousand turns are one event");
}

#[test]
fn a_stop_does_not_wait_for_a_slow_server() {
    let place = start();
    place.server.answer(Answer::Slow(Duration::from_secs(10)));
    place.teller.tell(verdict(1, true));
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    place.teller.stop();
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}
