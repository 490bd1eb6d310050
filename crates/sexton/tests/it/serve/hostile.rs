//! Clients that mean ill, or are broken.

use std::io::{Read, Write};
use std::time::Duration;

use super::{Answer, Server, fixture};
use crate::command::{sexton, stderr};

const BUNDLE: &str = "6.18-debian12/churn-shell-loop";

fn check(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    let problem = answer.json();
    assert_eq!(problem["status"], status);
    assert_eq!(
        answer.header("content-type").as_deref(),
        Some("application/problem+json")
    );
    assert_eq!(
        answer.header("x-content-type-options").as_deref(),
        Some("nosniff")
    );
}

#[test]
fn nothing_but_the_page_is_served() {
    let server = Server::over(&fixture(BUNDLE));
    for path in [
        "/../../../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/assets/../../Cargo.toml",
        "//etc/passwd",
        "/bundle.json",
        "/api/v1/sources/..%2fmain",
        "/api/v1/sources/main/raw",
        "/api/v1/sources/nobody",
        "/index.html/",
    ] {
        check(&server.get(path), 404);
    }
    check(&server.get("/%00"), 400);
}

#[test]
fn every_answer_is_kept_in_a_cage() {
    let server = Server::over(&fixture(BUNDLE));
    for path in ["/", "/api/v1/sources", "/nothing"] {
        let answer = server.get(path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(
            answer.header("referrer-policy").as_deref(),
            Some("no-referrer")
        );
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
}

#[test]
fn pages_of_others_are_not_answered() {
    let server = Server::over(&fixture(BUNDLE));
    let asked = |host: &str, headers: &str| {
        server.raw(
            format!(
                "GET /api/v1/sources HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
            )
            .as_bytes(),
        )
    };
    check(&asked("evil.example", ""), 403);
    check(&asked("127.0.0.1.evil.example:80", ""), 403);
    let us = server.address.clone();
    check(&asked(&us, "Origin: http://evil.example\r\n"), 403);
    check(&asked(&us, "Origin: null\r\n"), 403);
    check(&asked(&us, "Sec-Fetch-Site: cross-site\r\n"), 403);
    assert_eq!(asked(&us, &format!("Origin: http://{us}\r\n")).status, 200);
    assert_eq!(asked("localhost:1", "").status, 200);
}

#[test]
fn a_token_is_needed_where_one_is_set() {
    let server = Server::with(&fixture(BUNDLE), &["--token", "secret-token-1"]);
    assert!(
        server.url.ends_with("/?token=secret-token-1"),
        "{}",
        server.url
    );
    for path in [
        "/",
        "/api/v1/sources",
        "/openapi.json",
        "/?token=wrong-token-1",
        "/?token=",
    ] {
        check(&server.get(path), 401);
    }
    for wrong in [
        "Bearer secret-token-",
        "Bearer secret-token-2",
        "Basic secret-token-1",
    ] {
        let header = format!("Authorization: {wrong}\r\n");
        check(&server.get_with("/api/v1/sources", &header), 401);
    }
    let right = "Authorization: Bearer secret-token-1\r\n";
    assert_eq!(server.get_with("/api/v1/sources", right).status, 200);
    // The token of an address is for the page alone: it would stay in logs otherwise.
    check(&server.get("/api/v1/sources?token=secret-token-1"), 401);
    let welcome = server.get("/?token=secret-token-1");
    assert_eq!(
        (welcome.status, welcome.header("location")),
        (302, Some("/".into()))
    );
    let cookie = welcome.header("set-cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let with = format!("Cookie: other=1; {cookie}\r\n");
    assert_eq!(server.get_with("/api/v1/sources", &with).status, 200);
}

#[test]
fn off_loopback_there_is_always_a_token() {
    let server = Server::with(&fixture(BUNDLE), &["--listen", "0.0.0.0:0"]);
    let token = server.url.split("token=").nth(1).expect("it made one up");
    assert_eq!(token.len(), 32);
    let port = server.address.split(':').nth(1).unwrap();
    assert_eq!(server.address, format!("127.0.0.1:{port}"));
    check(&server.get("/api/v1/sources"), 401);
    let bundle = fixture(BUNDLE);
    let refused = sexton(&["serve", bundle.to_str().unwrap(), "--token", "short"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("a token has 8 to 256"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn heads_that_never_end_are_cut_off() {
    let server = Server::over(&fixture(BUNDLE));
    let long = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "a".repeat(64 << 10)
    );
    check(&server.raw(long.as_bytes()), 431);
    let many = format!(
        "GET / HTTP/1.1\r\nHost: x\r\n{}\r\n",
        "a: b\r\n".repeat(500)
    );
    check(&server.raw(many.as_bytes()), 431);
    check(&server.raw(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n"), 400);
    check(
        &server.raw(b"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n"),
        400,
    );
    assert!(server.is_well());
}

#[test]
fn bodies_that_hide_something_are_refused() {
    let server = Server::over(&fixture(BUNDLE));
    let host = &server.address;
    let post = |headers: &str, body: &str| {
        server.raw(
            format!("POST /api/v1/sources HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n\r\n{body}")
                .as_bytes(),
        )
    };
    let kind = "Content-Type: application/octet-stream";
    check(
        &post(
            &format!("{kind}\r\nTransfer-Encoding: chunked"),
            "0\r\n\r\n",
        ),
        411,
    );
    check(&post(&format!("{kind}\r\nConnection: close"), ""), 411);
    check(
        &post(
            &format!("{kind}\r\nContent-Length: 1\r\nContent-Length: 2"),
            "ab",
        ),
        400,
    );
    check(
        &post(
            "Content-Type: text/html\r\nConnection: close\r\nContent-Length: 2",
            "ab",
        ),
        415,
    );
    check(
        &post(
            &format!("{kind}\r\nConnection: close\r\nContent-Length: 0"),
            "",
        ),
        400,
    );
    // A server that only waits for the rest would never answer this.
    let mut stream = server.connect();
    let head = format!(
        "POST /api/v1/sources HTTP/1.1\r\nHost: {host}\r\n{kind}\r\nContent-Length: 9999999999999\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert!(server.is_well());
}

#[test]
fn an_upload_over_the_limit_is_refused_before_it_is_read() {
    let server = Server::with(&fixture(BUNDLE), &["--max-upload", "1KiB"]);
    check(&server.post("/api/v1/sources", &[b'x'; 2048]), 413);
    assert_eq!(server.post("/api/v1/sources", b"a;b 1\n").status, 201);
}

#[test]
fn unknown_methods_are_told_what_is_known() {
    let server = Server::over(&fixture(BUNDLE));
    let host = &server.address;
    for (method, path, allowed) in [
        ("DELETE", "/api/v1/sources", "GET, HEAD, POST"),
        ("POST", "/api/v1/sources/main/tiles", "GET, HEAD"),
        ("PUT", "/openapi.json", "GET, HEAD"),
        ("TRACE", "/", "GET, HEAD"),
    ] {
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = server.raw(request.as_bytes());
        check(&answer, 405);
        assert_eq!(answer.header("allow").as_deref(), Some(allowed));
    }
}

#[test]
fn slow_clients_keep_nobody_waiting() {
    let server = Server::over(&fixture(BUNDLE));
    server.wait_until_read();
    // Each holds a connection with half a head; one more byte now and then does not help it.
    let mut slow: Vec<_> = (0..100).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap();
    }
    for _ in 0..20 {
        assert!(server.is_well());
    }
    // One that asks for much and reads nothing.
    let mut deaf = server.connect();
    let path = "/api/v1/sources/main/tiles?lane=cores.0&lane=cores.1&width=4096";
    let one = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    deaf.set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    for _ in 0..500 {
        if deaf.write_all(one.as_bytes()).is_err() {
            break;
        }
    }
    assert!(server.is_well());
    // After the time for a head they are told so, and gone.
    let mut answer = String::new();
    slow[0].read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[test]
fn more_clients_than_fit_are_turned_away_and_come_back() {
    let server = Server::over(&fixture(BUNDLE));
    let held: Vec<_> = (0..128).map(|_| server.connect()).collect();
    let mut turned_away = 0;
    for _ in 0..20 {
        let answer = server.get("/openapi.json");
        turned_away += u32::from(answer.status == 503);
    }
    assert!(turned_away > 10, "128 are held: {turned_away}");
    drop(held);
    let came_back = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        server.is_well()
    });
    assert!(came_back);
}
