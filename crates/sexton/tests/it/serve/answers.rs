//! What is answered about a recording is what other commands say of it.

use super::{Server, fixture};
use crate::command::{sexton, stdout};

const BUNDLE: &str = "6.18-debian12/churn-shell-loop";

/// So that what is found there otherwise is not.
const POLICY: &str = "[rules.MCG001]\ngrowing_floor = 500\n";

#[test]
fn the_judgement_is_that_of_diagnose_and_has_times() {
    let server = Server::over(&fixture(BUNDLE));
    let mut served = server.get("/api/v1/sources/main/diagnosis").json();
    let bundle = fixture(BUNDLE);
    let said = sexton(&["diagnose", "--json", "--from", bundle.to_str().unwrap()]);
    let said: serde_json::Value = serde_json::from_str(&stdout(&said)).unwrap();
    let times = served.as_object_mut().unwrap().remove("times").unwrap();
    assert_eq!(served, said);
    let source = server.wait_until_read();
    let (from, to) = (source["from"].as_u64(), source["to"].as_u64());
    for finding in said["findings"].as_array().unwrap() {
        let id = finding["id"].as_str().unwrap();
        let evidence = times["evidence"][id].as_array().unwrap();
        assert_eq!(
            evidence.len(),
            finding["evidence"].as_array().unwrap().len()
        );
        for range in times["findings"][id].as_array().unwrap() {
            assert!(range[0].as_u64() <= range[1].as_u64(), "{id}: {range}");
            assert!(range[0].as_u64() <= to, "{id}: {range} {from:?} {to:?}");
        }
    }
    assert!(!said["findings"].as_array().unwrap().is_empty());
    assert_eq!(
        times["links"].as_array().unwrap().len(),
        said["links"].as_array().unwrap().len()
    );
}

/// As `diagnose --policy` judges, and what is dropped on the page as well.
#[test]
fn a_policy_is_judged_by() {
    let folder = sexton_testkit::TempTree::new().file("fleet.toml", POLICY);
    let policy = folder.path().join("fleet.toml");
    let policy = policy.to_str().unwrap();
    let bundle = fixture(BUNDLE);
    let path = bundle.to_str().unwrap();
    let said = sexton(&["diagnose", "--json", "--policy", policy, "--from", path]);
    let said: serde_json::Value = serde_json::from_str(&stdout(&said)).unwrap();
    let plain = sexton(&["diagnose", "--json", "--from", path]);
    let plain: serde_json::Value = serde_json::from_str(&stdout(&plain)).unwrap();
    assert_ne!(said["findings"], plain["findings"], "the policy changes it");
    let server = Server::with(&bundle, &["--policy", policy]);
    let packed = folder.path().join("node.tar.zst");
    sexton_store::pack(&bundle, &packed).unwrap();
    let packed = std::fs::read(&packed).unwrap();
    let dropped = server.post("/api/v1/sources", &packed).json();
    for id in ["main", dropped["id"].as_str().unwrap()] {
        let path = format!("/api/v1/sources/{id}/diagnosis");
        assert_eq!(server.get(&path).json()["findings"], said["findings"]);
    }
    let wrong = folder.path().join("none.toml");
    let refused = sexton(&["serve", path, "--policy", wrong.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
}

/// Answers are worked out by threads that the recorder's go before.
#[test]
fn what_answers_is_nice() {
    let server = Server::over(&fixture(BUNDLE));
    server.wait_until_read();
    let threads = server.threads();
    for name in ["listens", "answers"] {
        let found = threads.iter().find(|(known, _)| known == name);
        let (_, nice) = found.unwrap_or_else(|| panic!("{name}: {threads:?}"));
        assert!(*nice >= 10, "{threads:?}");
    }
}

#[test]
fn tiles_of_any_width_have_the_same_largest_value() {
    let server = Server::over(&fixture(BUNDLE));
    let source = server.wait_until_read();
    let lanes = server.get("/api/v1/sources/main/lanes").json();
    let worst = &lanes["lanes"][0];
    assert_eq!(worst["id"], "cores.worst");
    let (from, to) = (
        source["from"].as_u64().unwrap(),
        source["to"].as_u64().unwrap(),
    );
    for width in [1, 10, 333, 4096] {
        let path = format!("/api/v1/sources/main/tiles?lane=cores.worst&width={width}");
        let tile = server.get(&path).json()["tiles"][0].clone();
        let values = tile["values"].as_array().unwrap();
        let step = tile["step"].as_u64().unwrap();
        assert!(values.len() as u64 <= width, "{width}");
        assert!(from + step * values.len() as u64 >= to, "{width}");
        let largest = values.iter().filter_map(serde_json::Value::as_f64);
        let largest = largest.fold(0.0, f64::max);
        let told = worst["max"].as_f64().unwrap();
        assert!((largest - told).abs() < 0.01, "{width}: {largest} {told}");
        assert!(tile["mean"][0].as_f64() <= Some(largest), "{width}");
    }
    // Before the recording nothing was seen, and that is not zero.
    let (before, start) = (from - 6_000_000, from - 3_000_000);
    let path =
        format!("/api/v1/sources/main/tiles?lane=cores.worst&from={before}&to={start}&width=3");
    let tile = server.get(&path).json()["tiles"][0].clone();
    assert_eq!(tile["values"], serde_json::json!([null, null, null]));
    // Before the boot there is no moment to ask about.
    let path = "/api/v1/sources/main/tiles?lane=cores.worst&from=1&to=2";
    assert_eq!(server.get(path).status, 422);
}

#[test]
fn a_sensor_that_saw_nothing_leaves_a_gap() {
    let server = Server::over(&fixture(BUNDLE));
    server.wait_until_read();
    let path = "/api/v1/sources/main/tiles?lane=gaps&lane=log.exits&width=50";
    let tiles = server.get(path).json()["tiles"].clone();
    let told = tiles[0]["events"].as_array().unwrap();
    let of_exits = told.iter().filter(|gap| gap["kind"] == "exits").count();
    assert_eq!(of_exits, 1, "{tiles}");
    let gaps = tiles[1]["gaps"].as_array().unwrap();
    assert_eq!(gaps.len(), 1, "{tiles}");
    assert!(gaps[0][0].as_u64() < gaps[0][1].as_u64(), "{tiles}");
}

/// In that recording no container runtime answered, and nobody asked for units.
#[test]
fn where_nobody_looked_there_is_no_zero() {
    let server = Server::over(&fixture(BUNDLE));
    server.wait_until_read();
    let path = "/api/v1/sources/main/tiles?width=20&lane=containers.births\
                &lane=containers.running&lane=units.restarts&lane=log.exits";
    let tiles = server.get(path).json()["tiles"].clone();
    let whys = [
        "no container runtime",
        "no container runtime",
        "nothing from the sensor units",
    ];
    for (n, why) in whys.into_iter().enumerate() {
        let values = tiles[n]["values"].as_array().unwrap();
        let seen = values.iter().skip(1).filter(|value| !value.is_null());
        assert_eq!(seen.count(), 0, "{}", tiles[n]);
        assert_eq!(tiles[n]["gaps"].as_array().map(Vec::len), Some(1));
        assert!(tiles[n]["gaps"][0][2].as_str().unwrap().contains(why));
    }
    // Exits were told of, and none of them was a failure.
    assert_eq!(tiles[3]["values"][10], 0.0, "{}", tiles[3]);
    // Before the recording nobody looked at exits either.
    let from = tiles[3]["from"].as_u64().unwrap();
    let path = format!(
        "/api/v1/sources/main/tiles?lane=log.exits&width=2&from={}&to={}",
        from - 4_000_000,
        from - 2_000_000
    );
    let tile = server.get(&path).json()["tiles"][0].clone();
    assert_eq!(tile["values"], serde_json::json!([null, null]));
}

/// A recording by one sensor has nothing of all others.
#[test]
fn a_sensor_that_was_not_there_is_a_gap() {
    let folder = sexton_testkit::TempTree::new();
    let bundle = folder.path().join("node.bundle");
    let path = bundle.to_str().unwrap();
    let args = ["record", "--sensors", "pressure", "--for", "1s", "-o", path];
    assert_eq!(sexton(&args).status.code(), Some(0));
    let server = Server::over(&bundle);
    server.wait_until_read();
    let path = "/api/v1/sources/main/tiles?width=5&lane=nic.events&lane=memcg.dying&lane=gaps";
    let tiles = server.get(path).json()["tiles"].clone();
    for (n, sensors) in ["klog and nics", "memcg"].into_iter().enumerate() {
        let values = tiles[n]["values"].as_array().unwrap();
        assert!(values.iter().all(serde_json::Value::is_null), "{tiles}");
        assert!(
            tiles[n]["gaps"][0][2].as_str().unwrap().ends_with(sensors),
            "{tiles}"
        );
    }
    assert_eq!(tiles[2]["gaps"], serde_json::json!([]));
}

#[test]
fn dying_cgroups_are_those_of_the_last_census() {
    let server = Server::over(&fixture(BUNDLE));
    server.wait_until_read();
    let zombies = server.get("/api/v1/sources/main/zombies").json();
    let dying = zombies["dying"].as_f64().unwrap();
    assert!(dying > 0.0, "{zombies}");
    let growth = zombies["growth"]["dying"].as_array().unwrap();
    assert_eq!(growth.last().unwrap().as_f64(), Some(dying));
    let origins = zombies["origins"].as_array().unwrap();
    let sum: f64 = origins
        .iter()
        .filter_map(|origin| origin["dying"].as_f64())
        .sum();
    assert!(sum > 0.0 && sum <= dying, "{sum} of {dying}");
}

#[test]
fn answers_say_when_they_are_known_and_are_packed() {
    let server = Server::over(&fixture(BUNDLE));
    server.wait_until_read();
    let path = "/api/v1/sources/main/lanes";
    let first = server.get(path);
    let tag = first.header("etag").expect("a tag");
    let again = server.get_with(path, &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((again.status, again.body.len()), (304, 0));
    let packed = server.get_with(path, "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.header("content-encoding").as_deref(), Some("gzip"));
    assert!(packed.body.len() * 2 < first.body.len());
    let head = server.raw(
        format!(
            "HEAD {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            server.address
        )
        .as_bytes(),
    );
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn several_requests_go_over_one_connection() {
    use std::io::{Read, Write};
    let server = Server::over(&fixture(BUNDLE));
    let mut stream = server.connect();
    let one = format!(
        "GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    let last = one.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    stream
        .write_all(format!("{one}{one}{last}").as_bytes())
        .unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200 OK\r\n").count(), 3);
}

#[test]
fn a_port_that_is_in_use_is_said_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let bundle = fixture(BUNDLE);
    let bundle = bundle.to_str().expect("a plain path");
    let output = crate::command::sexton(&["serve", bundle, "--listen", &address]);
    assert_eq!(output.status.code(), Some(2));
    let said = crate::command::stderr(&output);
    assert!(
        said.contains(&address) && said.contains("--listen"),
        "{said}"
    );
}
