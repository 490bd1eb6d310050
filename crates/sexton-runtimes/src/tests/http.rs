//! Answers of HTTP/1, whole and broken.

use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use sexton_testkit::TempTree;
use sexton_testkit::daemon::{FakeDaemon, Reply};

use super::{HASTY, PATIENT, told};
use crate::http::ask_whole;
use crate::reactor::Reactor;

fn ask(reply: Reply, limit: Duration) -> String {
    let daemon = FakeDaemon::start(move |_| reply.clone());
    let socket = daemon.socket();
    let answer = async move { ask_whole(&socket, "/question", limit).await };
    let answer = Reactor::default().run(answer).expect("a thread");
    told(answer.map(|body| String::from_utf8_lossy(&body).into_owned()))
}

/// Checks what comes of an answer that ends with its connection.
fn check(bytes: &str, expected: &str) {
    let told = ask(Reply::End(bytes.into()), PATIENT);
    assert!(told.contains(expected), "{bytes:?}: {told}");
}

#[test]
fn the_length_is_given_or_is_in_chunks_or_is_the_end() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK", "OK");
    check("HTTP/1.0 200 OK\r\nServer: x\r\n\r\nall", "all");
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(
        &format!("{chunks}3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n"),
        "abc0123456789",
    );
    check(&format!("{chunks}1\r\na\r\n0\r\nTrailer: x\r\n\r\n"), "a");
}

#[test]
fn an_answer_that_is_cut_is_not_taken_for_a_whole_one() {
    let ended = "vanished: it ended the connection";
    check("", ended);
    check("HTTP/1.1 200 OK\r\nContent-", ended);
    check("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nOK", ended);
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{chunks}5\r\nab"), ended);
    check(&format!("{chunks}2\r\nab\r\n"), ended);
}

#[test]
fn nonsense_is_an_error() {
    let nonsense = "malformed: its answer is no HTTP: ";
    check("SSH-2.0-OpenSSH_9.2\r\n\r\n", nonsense);
    check("HTTP/2 200\r\n\r\n", nonsense);
    check("HTTP/1.1 2x0 OK\r\n\r\n", nonsense);
    let head = "HTTP/1.1 200 OK\r\n";
    check(&format!("{head}Content-Length: -1\r\n\r\n"), nonsense);
    check(
        &format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        nonsense,
    );
    check(&format!("{head}no colon\r\n\r\n"), nonsense);
    let chunks = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    check(&format!("{chunks}zz\r\n"), nonsense);
    check(&format!("{chunks}\r\n"), nonsense);
    check(&format!("{chunks}11111111111111111\r\n"), nonsense);
    check(&format!("{chunks}1\r\nabc"), nonsense);
    check(
        &format!("{head}X: {}\r\n\r\n", "x".repeat(17 << 10)),
        nonsense,
    );
    check(&format!("{head}{}\r\n", "X: y\r\n".repeat(101)), nonsense);
}

#[test]
fn a_refusal_is_told_with_the_words_of_the_daemon() {
    check(
        "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nno \x1b such",
        r"unsupported: it refused with status 404: no \033 such",
    );
    let long = format!(
        "HTTP/1.1 500 Broken\r\nContent-Length: 300\r\n\r\n{}",
        "x".repeat(300)
    );
    let told = ask(Reply::End(long.into()), PATIENT);
    assert!(told.ends_with(&format!(": {}", "x".repeat(200))), "{told}");
    // One that says less than it announced has refused nonetheless.
    let held = b"HTTP/1.1 400 Bad\r\nContent-Length: 300\r\n\r\nwhy".to_vec();
    let told = ask(Reply::Hold(held), HASTY);
    assert_eq!(told, "unsupported: it refused with status 400: why");
}

#[test]
fn every_wait_has_an_end() {
    let silent = "overrun: no answer within 200.0ms";
    let began = Instant::now();
    let head = "HTTP/1.1 200 OK\r\n";
    let held = [
        String::new(),
        head.into(),
        format!("{head}Content-Length: 9\r\n\r\nab"),
        // It may claim any size: nothing is set aside for it.
        format!("{head}Content-Length: 999999999999999999\r\n\r\nab"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\nab"),
    ];
    for bytes in &held {
        let bytes = bytes.clone().into_bytes();
        assert_eq!(ask(Reply::Hold(bytes), HASTY), silent);
    }
    let dripping = format!("{head}Content-Length: 9999\r\n\r\n");
    assert_eq!(ask(Reply::Drip(dripping.into()), HASTY), silent);
    let endless = format!("{head}X: y");
    assert_eq!(ask(Reply::Drip(endless.into()), HASTY), silent);
    assert!(began.elapsed() < Duration::from_secs(10), "{began:?}");
}

#[test]
fn too_much_is_not_kept() {
    let size = (8 << 20) + 1;
    let body = "x".repeat(size);
    let large = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{body}");
    assert_eq!(
        ask(Reply::End(large.into()), PATIENT),
        "malformed: its answer is over 8388608 bytes"
    );
}

#[test]
fn a_full_queue_costs_the_deadline_and_no_more() {
    let folder = TempTree::new();
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    // None is accepted, so at some point the queue is full.
    let filled = async move {
        let mut taken = Vec::new();
        loop {
            match crate::connection::within(HASTY, crate::connection::connect(&socket)).await {
                Ok(stream) => taken.push(stream),
                Err(trouble) => break told::<String>(Err(trouble)),
            }
        }
    };
    let began = Instant::now();
    let told = Reactor::default().run(filled).expect("a thread");
    assert_eq!(told, "overrun: no answer within 200.0ms");
    assert!(began.elapsed() < Duration::from_secs(20), "{began:?}");
}

#[test]
fn no_socket_is_an_error_at_once() {
    let answer = async { ask_whole("/nonexistent/socket".as_ref(), "/", PATIENT).await };
    let began = Instant::now();
    let answer = Reactor::default().run(answer).expect("a thread");
    let told = told(answer.map(|_| "an answer"));
    assert!(
        told.starts_with("vanished: cannot connect: No such file"),
        "{told}"
    );
    assert!(began.elapsed() < PATIENT, "it waited");
}

#[test]
fn a_name_that_cannot_be_asked_for_is_an_error() {
    let daemon = FakeDaemon::start(|_| Reply::End(Vec::new()));
    let socket = daemon.socket();
    let answer = async move { ask_whole(&socket, "/containers/a b/json", PATIENT).await };
    let answer = Reactor::default().run(answer).expect("a thread");
    let told = told(answer.map(|_| "an answer"));
    assert!(told.contains("cannot ask for it by its name"), "{told}");
    assert_eq!(daemon.asked(), [""; 0]);
}
