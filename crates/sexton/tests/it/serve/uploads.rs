//! Files that are dropped on the page.

use std::fs;

use super::{Server, fixture};

const BUNDLE: &str = "6.18-debian12/churn-shell-loop";

fn flame_names(server: &Server, id: &str) -> (u64, Vec<String>) {
    let flame = server.get(&format!("/api/v1/sources/{id}/flame")).json();
    let names = flame["names"].as_array().expect("a list").iter();
    let names = names
        .map(|name| name.as_str().expect("text").to_owned())
        .collect();
    (flame["samples"].as_u64().expect("a number"), names)
}

#[test]
fn a_profile_of_perf_is_opened() {
    let server = Server::over(&fixture(BUNDLE));
    let data = fs::read(fixture("6.18-debian12/perf/fp.data")).unwrap();
    let answer = server.post("/api/v1/sources?name=fp.data", &data);
    assert_eq!(answer.status, 201, "{answer:?}");
    let source = answer.json();
    assert_eq!(
        (&source["name"], &source["kind"]),
        (&"fp.data".into(), &"profile".into())
    );
    let id = source["id"].as_str().unwrap();
    let (n, names) = flame_names(&server, id);
    assert!(n > 0 && names.len() > 3, "{n} {names:?}");
    let map = server
        .get(&format!("/api/v1/sources/{id}/heatmap?by=core"))
        .json();
    // A flame graph is of one event, a heat map of all.
    let all = map["total"].as_u64().unwrap();
    assert!(all >= n, "{all} {n}");
    let parts = map["parts"].as_array().unwrap();
    let sum: u64 = parts
        .iter()
        .filter_map(|part| part["samples"].as_u64())
        .sum();
    assert_eq!(sum, all, "every sample has a core");
    let one = &parts[0];
    let path = format!(
        "/api/v1/sources/{id}/heatmap?by=core&value={}",
        one["value"].as_str().unwrap()
    );
    assert_eq!(server.get(&path).json()["total"], one["samples"]);
}

#[test]
fn text_and_folded_stacks_are_opened() {
    let server = Server::over(&fixture(BUNDLE));
    let text = fs::read(fixture("synthetic/perf-script/stacks.txt.gz")).unwrap();
    let source = server.post("/api/v1/sources", &text).json();
    let (n, _) = flame_names(&server, source["id"].as_str().unwrap());
    assert!(n > 0, "{source}");
    let folded = b"sh;main;work 3\nsh;main;rest 1\n";
    let source = server.post("/api/v1/sources?name=folded", folded).json();
    assert_eq!(source["has_times"], false, "{source}");
    let id = source["id"].as_str().unwrap();
    let flame = server.get(&format!("/api/v1/sources/{id}/flame")).json();
    assert_eq!(flame["total"], 4, "{flame}");
    let map = server.get(&format!("/api/v1/sources/{id}/heatmap"));
    assert_eq!(map.status, 422);
}

/// Weights of several events do not add up.
#[test]
fn of_several_events_the_first_is_shown_unless_another_is_asked_for() {
    let server = Server::over(&fixture(BUNDLE));
    let sample = |at: &str, event: &str, function: &str| {
        format!("app 7/7 [000] {at}: 5 {event}:\n\t7f10 {function}+0x0 (/app)\n\n")
    };
    let text = [
        sample("10.000000", "cpu-clock", "work"),
        sample("12.000000", "page-faults", "touch"),
        sample("12.500000", "cpu-clock", "work"),
    ];
    let source = server.post("/api/v1/sources", text.concat().as_bytes());
    let source = source.json();
    let id = source["id"].as_str().unwrap();
    let ask = |query: &str| {
        server
            .get(&format!("/api/v1/sources/{id}/flame{query}"))
            .json()
    };
    let all = ask("");
    assert_eq!(
        (&all["event"], &all["samples"]),
        (&"cpu-clock".into(), &2.into())
    );
    let asked = ask("?event=page-faults");
    assert_eq!(
        (&asked["event"], &asked["total"]),
        (&"page-faults".into(), &5.into())
    );
    assert!(
        asked["names"].as_array().unwrap().contains(&"touch".into()),
        "{asked}"
    );
}

#[test]
fn a_packed_bundle_is_opened() {
    let server = Server::over(&fixture(BUNDLE));
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("node.tar.zst");
    sexton_store::pack(&fixture(BUNDLE), &packed).unwrap();
    let source = server.post("/api/v1/sources?name=node", &fs::read(&packed).unwrap());
    assert_eq!(source.status, 201, "{source:?}");
    let id = source.json()["id"].as_str().unwrap().to_owned();
    let theirs = server
        .get(&format!("/api/v1/sources/{id}/diagnosis"))
        .json();
    let ours = server.get("/api/v1/sources/main/diagnosis").json();
    assert_eq!(theirs["verdict"], ours["verdict"]);
}

#[test]
fn what_is_no_recording_is_refused_and_leaves_nothing() {
    let server = Server::over(&fixture(BUNDLE));
    for junk in [
        &b"hello"[..],
        &[0; 4096],
        b"\x28\xb5\x2f\xfdjunk",
        b"PERFILE2xx",
    ] {
        let answer = server.post("/api/v1/sources", junk);
        assert_eq!(answer.status, 422, "{answer:?}");
        assert!(
            !String::from_utf8_lossy(&answer.body).contains("/tmp"),
            "{answer:?}"
        );
    }
    let sources = server.get("/api/v1/sources").json();
    assert_eq!(sources["sources"].as_array().unwrap().len(), 1);
}

#[test]
fn too_many_files_drop_the_oldest_one() {
    let server = Server::over(&fixture(BUNDLE));
    for n in 0..9 {
        let folded = format!("program;function_{n} 1\n");
        assert_eq!(
            server.post("/api/v1/sources", folded.as_bytes()).status,
            201
        );
    }
    let sources = server.get("/api/v1/sources").json();
    let ids: Vec<&str> = sources["sources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|source| source["id"].as_str())
        .collect();
    assert_eq!(ids[..2], ["main", "file3"]);
    assert_eq!(server.get("/api/v1/sources/file1/flame").status, 404);
}

#[test]
fn nothing_is_left_when_the_server_ends() {
    use std::io::{Read, Write};
    let temporary = tempfile::tempdir().unwrap();
    let server = Server::keeping_in(&fixture(BUNDLE), temporary.path());
    assert_eq!(server.post("/api/v1/sources", b"a;b 1\n").status, 201);
    let n_kept = || fs::read_dir(temporary.path()).unwrap().count();
    assert_eq!(n_kept(), 1);
    // A browser keeps its connection.
    let mut browser = server.connect();
    let asked = format!(
        "GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n",
        server.address
    );
    browser.write_all(asked.as_bytes()).unwrap();
    browser.read_exact(&mut [0; 64]).unwrap();
    drop(server);
    assert_eq!(n_kept(), 0);
}
