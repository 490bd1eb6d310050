//! The agent's HTTP with TLS, asked by curl; certificates are made by openssl.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::Place;
use crate::command::{sexton, stderr, stdout};

const TOKEN: &str = "a-token-of-the-test";

/// Makes a certificate for loopback by this name, in place of the one before.
fn make_certificate(folder: &Path, name: &str) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-subj", &format!("/CN={name}")])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", "tls.key", "-out", "tls.crt"])
        .current_dir(folder)
        .output()
        .expect("openssl is installed by the set-up");
    assert!(made.status.success(), "{}", stderr(&made));
    let key = fs::Permissions::from_mode(0o600);
    fs::set_permissions(folder.join("tls.key"), key).expect("it is there");
}

/// An agent that listens with certificate and token.
fn place() -> Place {
    let place = Place::new("");
    let folder = place.folder();
    make_certificate(folder, "first");
    fs::write(folder.join("token"), TOKEN).expect("a file");
    let config = fs::read_to_string(place.config()).expect("it is there");
    let listen = format!(
        "http = \"127.0.0.1:0\"\ntoken_file = {:?}\ntls_cert = {:?}\ntls_key = {:?}\n",
        folder.join("token"),
        folder.join("tls.crt"),
        folder.join("tls.key"),
    );
    let config = config.replace("http = \"127.0.0.1:0\"\n", &listen);
    fs::write(place.config(), config).expect("a file");
    place
}

fn curl(place: &Place, address: &str, more: &[&str]) -> Output {
    Command::new("curl")
        .args(["--silent", "--show-error", "--verbose", "--max-time", "20"])
        .args(["--cacert", "tls.crt"])
        .args(more)
        .arg(address)
        .current_dir(place.folder())
        .output()
        .expect("curl is installed by the set-up")
}

#[test]
fn tls_and_token_are_asked_for_and_a_renewed_certificate_is_taken() {
    let place = place();
    let running = place.start();
    let status = place.status().expect("it answers");
    let address = status["http"].as_str().expect("it listens").to_owned();
    let port = address.strip_prefix("https://127.0.0.1:");
    let port = port.expect("an address with TLS");
    let bearer = format!("Authorization: Bearer {TOKEN}");
    let with_token = ["--header", bearer.as_str()];
    let metrics = format!("{address}/metrics");
    let said = curl(&place, &metrics, &with_token);
    let text = stdout(&said);
    assert!(text.contains("sexton_findings_open"), "{}", stderr(&said));
    assert!(stderr(&said).contains("CN=first"), "{}", stderr(&said));
    let without = curl(&place, &metrics, &[]);
    assert!(stdout(&without).contains("401"), "{}", stdout(&without));
    let plain = format!("http://127.0.0.1:{port}/metrics");
    let plain = curl(&place, &plain, &with_token);
    assert!(!plain.status.success(), "{}", stdout(&plain));

    // A probe of a kubelet has no token.
    let address = format!("{address}/healthz");
    let said = curl(&place, &address, &[]);
    assert_eq!(stdout(&said), "ok\n", "{}", stderr(&said));

    make_certificate(place.folder(), "second");
    running.signal("-HUP");
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let said = curl(&place, &address, &with_token);
        if stdout(&said) == "ok\n" && stderr(&said).contains("CN=second") {
            break;
        }
        assert!(Instant::now() < deadline, "{}", stderr(&said));
        thread::sleep(Duration::from_millis(100));
    }
    // What cannot be used changes nothing.
    fs::write(place.folder().join("tls.key"), "no key").expect("a file");
    running.signal("-HUP");
    thread::sleep(Duration::from_millis(1500));
    let said = curl(&place, &address, &with_token);
    assert_eq!(stdout(&said), "ok\n", "{}", stderr(&said));
    let (code, log) = running.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("certificate not renewed"), "{log}");
    assert!(log.contains("tls.key holds no private key"), "{log}");
}

#[test]
fn without_tls_it_does_not_start_off_loopback() {
    let place = Place::new("");
    let config = fs::read_to_string(place.config()).expect("it is there");
    let open = "http = \"0.0.0.0:0\"\ntoken_file = \"/t\"\n";
    let config = config.replace("http = \"127.0.0.1:0\"\n", open);
    fs::write(place.config(), config).expect("a file");
    let file = place.config();
    let file = file.to_str().expect("plain");
    for args in [["agent", "check-config"], ["agent", "--config"]] {
        let output = sexton(&[&args[..], &[file]].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = stderr(&output);
        assert!(
            said.contains("agent.toml:5: http is not on loopback") && said.contains("tls_cert"),
            "{said}"
        );
    }
}

#[test]
fn a_key_that_every_user_may_read_is_refused() {
    let place = place();
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(place.folder().join("tls.key"), open).expect("it is there");
    let file = place.config();
    let output = sexton(&["agent", "--config", file.to_str().expect("plain")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("chmod o-r"), "{}", stderr(&output));
}
