//! The fleet page's server: what it answers is what other commands say of the same bucket.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use sexton_fleet::bucket::Bucket;
use sexton_fleet::page::{Links, Page};
use sexton_web::{Site, SiteOptions};

use crate::support::*;

/// `fleet serve`, gone at the end of a test.
struct Server {
    child: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(lake: &Path, listen: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sexton-fleet"))
            .args(["serve", "--listen", listen, "--lake"])
            .arg(lake)
            .args(["--node-page", "http://{node}:8642/"])
            .env("SEXTON_NOW", NOW)
            .env_remove("SEXTON_TOKEN")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("Open ").unwrap_or_default();
        assert!(url.starts_with("http://"), "{line:?}");
        Self {
            child,
            url: url.to_owned(),
        }
    }

    #[track_caller]
    fn ask(&self, path: &str) -> Value {
        let (status, body) = get(&self.url, path, "");
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }
}

/// Asks a server below its address: the status and the body.
#[track_caller]
fn get(url: &str, path: &str, header: &str) -> (u16, String) {
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .split('/')
        .next()
        .unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[test]
fn the_page_sees_the_spared_zone() {
    let lake = tempfile::tempdir().unwrap();
    let truth = simulate(lake.path(), 600, 6, 1, "founding");
    let server = Server::start(lake.path(), "127.0.0.1:0");

    let fleet = server.ask("/api/v1/fleet");
    assert_eq!(fleet["nodes"], 600);
    assert_eq!(fleet["reports"], truth["n_reports"]);
    // One that was bad may not have reported since.
    let url = lake.path().to_str().unwrap();
    let top = json(&crate::support::fleet(&["top", "--lake", url, "--json"]));
    let n_bad = top["bad"].as_u64().unwrap();
    assert_eq!(fleet["bad"], n_bad);

    let heat = server.ask("/api/v1/heat?by=zone&rows=100");
    assert_eq!(heat["total"], 600);
    let groups = heat["groups"].as_array().unwrap();
    let values: Vec<&str> = groups
        .iter()
        .filter_map(|group| group["value"].as_str())
        .collect();
    assert_eq!(
        values,
        ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"]
    );
    let bad: Vec<u64> = groups
        .iter()
        .filter_map(|group| group["bad"].as_u64())
        .collect();
    assert_eq!(bad.iter().sum::<u64>(), n_bad);
    assert!(bad[1..].iter().all(|zone| *zone > 5 * bad[0]), "{bad:?}");
    // Each node is in one row, and each row has a sign for each hour.
    let rows = heat["rows"].as_array().unwrap();
    assert!((100..=104).contains(&rows.len()), "{}", rows.len());
    let nodes: u64 = rows.iter().filter_map(|row| row["nodes"].as_u64()).sum();
    assert_eq!(nodes, 600);
    let n_columns = fleet["columns_of_time"].as_u64().unwrap() as usize;
    assert!(
        rows.iter()
            .all(|row| row["cells"].as_str().unwrap().len() == n_columns)
    );

    let spared = server.ask("/api/v1/heat?where=zone%3Dus-east-1a&rows=10");
    assert_eq!(spared["total"], groups[0]["nodes"]);
    let sick = server.ask("/api/v1/heat?severity=3&rows=10");
    assert_eq!(sick["total"], n_bad);
    for wrong in [
        "by=nonsense",
        "where=zone",
        "sort=height",
        "severity=9",
        "rows=x",
    ] {
        let (status, body) = get(&server.url, &format!("/api/v1/heat?{wrong}"), "");
        assert_eq!(status, 400, "{wrong}: {body}");
    }
    let (status, _) = get(&server.url, "/api/v1/nonsense", "");
    assert_eq!(status, 404);
}

/// What SQL says of a bucket.
fn sql(lake: &Path, query: &str) -> Value {
    let lake = lake.to_str().unwrap();
    json(&fleet(&["sql", query, "--lake", lake, "--json"]))
}

#[test]
fn causes_over_time_are_those_of_sql() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 500, 6, 4, "founding");
    let server = Server::start(lake.path(), "127.0.0.1:0");

    let causes = server.ask("/api/v1/causes");
    let mut found: Vec<(String, u64)> = causes["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| {
            (
                cause["code"].as_str().unwrap().to_owned(),
                cause["nodes"].as_u64().unwrap(),
            )
        })
        .collect();
    found.sort();
    let told = sql(
        lake.path(),
        "SELECT code, count(DISTINCT node) AS n FROM findings GROUP BY code ORDER BY code",
    );
    let told: Vec<(String, u64)> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["code"].as_str().unwrap().to_owned(),
                row["n"].as_u64().unwrap(),
            )
        })
        .collect();
    assert!(!told.is_empty());
    assert_eq!(found, told);
    // By hour, a missing report is no node that was seen.
    let seen: u64 = causes["seen"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_u64)
        .sum();
    let reports = sql(
        lake.path(),
        "SELECT count(*) AS n FROM (SELECT DISTINCT node, date_trunc('hour', at) AS h FROM reports)",
    );
    assert_eq!(Some(seen), reports[0]["n"].as_u64());
}

#[test]
fn nodes_and_comparisons_are_those_of_other_commands() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 500, 6, 4, "founding");
    let server = Server::start(lake.path(), "127.0.0.1:0");

    let asked = "/api/v1/compare?bad=nic_resets+%3E+0";
    let (_, told) = compare(lake.path(), &["--bad", "nic_resets > 0"]);
    assert_eq!(server.ask(asked), told);
    let (status, body) = get(&server.url, "/api/v1/compare?bad=nonsense+%3E+0", "");
    assert_eq!(status, 400);
    assert!(body.contains("nonsense"), "{body}");

    let worst = server.ask("/api/v1/heat?severity=3&rows=1&from=0&to=1");
    let name = worst["rows"][0]["names"][0].as_str().unwrap();
    let node = server.ask(&format!("/api/v1/node?name={name}"));
    assert_eq!(node["cells"], worst["rows"][0]["cells"]);
    let findings = node["findings"].as_array().unwrap();
    let n = sql(
        lake.path(),
        &format!("SELECT count(DISTINCT finding) AS n FROM findings WHERE node = '{name}'"),
    );
    assert_eq!(Some(findings.len() as u64), n[0]["n"].as_u64());
    let link = findings[0]["link"].as_str().unwrap();
    assert!(link.starts_with(&format!("http://{name}:8642/#")), "{link}");
    let zone = sql(
        lake.path(),
        &format!("SELECT max(zone) AS zone FROM reports WHERE node = '{name}'"),
    );
    let attribute = json!({ "name": "zone", "value": zone[0]["zone"] });
    assert!(
        node["attributes"].as_array().unwrap().contains(&attribute),
        "{node}"
    );
    let (status, _) = get(&server.url, "/api/v1/node?name=nobody", "");
    assert_eq!(status, 404);
}

#[test]
fn off_loopback_a_token_is_needed() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 20, 2, 1, "none");
    let server = Server::start(lake.path(), "0.0.0.0:0");
    let (url, token) = server.url.split_once("/?token=").unwrap();
    assert_eq!(get(url, "/api/v1/fleet", "").0, 401);
    let bearer = format!("authorization: Bearer {token}\r\n");
    assert_eq!(get(url, "/api/v1/fleet", &bearer).0, 200);
    // A page of another site may not ask, whatever it knows.
    let foreign = format!("{bearer}origin: http://evil.example\r\n");
    assert_eq!(get(url, "/api/v1/fleet", &foreign).0, 403);
}

#[test]
fn a_bucket_that_is_gone_is_said_and_what_was_read_stays() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 40, 2, 1, "none");
    let now_us = 1_795_000_000_000_000;
    let bucket = Bucket::open(lake.path().to_str().unwrap()).unwrap();
    let links = Links::parse("http://{node}:8642/").ok();
    let page = std::sync::Arc::new(Page::open(bucket, 24, now_us, links).unwrap());
    let answers = std::sync::Arc::clone(&page);
    let site = Site::start(SiteOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        token: None,
        folder: "/fleet",
        answer: Box::new(move |asked| answers.answer(asked)),
    })
    .unwrap();
    let (url, stopper) = (site.url(), site.stopper());
    let serving = thread::spawn(move || site.run());
    let overview = || -> Value { serde_json::from_str(&get(&url, "/api/v1/fleet", "").1).unwrap() };
    assert_eq!(overview()["not_read_since"], Value::Null);

    for entry in fs::read_dir(lake.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        }
    }
    page.read_again(now_us);
    let after = overview();
    assert!(
        after["not_read_since"]
            .as_str()
            .unwrap()
            .contains("no reports"),
        "{after}"
    );
    assert_eq!(after["nodes"], 40);

    simulate(lake.path(), 50, 2, 1, "none");
    page.read_again(now_us + 1);
    let after = overview();
    assert_eq!(
        (&after["not_read_since"], &after["nodes"]),
        (&Value::Null, &json!(50))
    );
    stopper.stop();
    serving.join().unwrap();
}

#[test]
fn wrong_use_is_refused() {
    let lake = tempfile::tempdir().unwrap();
    let lake = lake.path().to_str().unwrap();
    for (args, expected) in [
        (&["--node-page", "http://web7:8642/"][..], "{node}"),
        (&["--token", "short"][..], "8 to 256"),
        (&[][..], "no reports"),
    ] {
        let output = fleet(&[&["serve", "--lake", lake], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
