//! A bucket of S3, as moto's server answers for one.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::push::BUNDLE;
use crate::support::*;

/// The server, gone at the end of a test.
struct S3 {
    child: Child,
    port: u16,
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl S3 {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|socket| socket.local_addr())
            .unwrap()
            .port();
        let child = Command::new(python("python-moto", "moto.server"))
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p"])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "moto never listened");
            thread::sleep(Duration::from_millis(50));
        }
        server
    }

    /// Puts an object, or a bucket, as another writer would.
    fn put(&self, path: &str, bytes: &[u8]) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "PUT /{path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            bytes.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains(" 200 "), "{answer}");
    }

    fn fleet(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_sexton-fleet"))
            .args(args)
            .env_remove("SEXTON_LAKE")
            .env("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port))
            .env("AWS_ALLOW_HTTP", "true")
            .env("AWS_REGION", "us-east-1")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .output()
            .unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        json(&self.fleet(args))
    }
}

/// An answer without its address.
fn answer_of(mut answer: Value) -> Value {
    answer.as_object_mut().unwrap().remove("lake");
    answer
}

#[test]
fn a_report_is_put_once() {
    let s3 = S3::start();
    let push = [
        "push",
        "--from",
        BUNDLE,
        "--json",
        "--lake",
        "s3://reports/a",
    ];
    let output = s3.fleet(&push);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("NoSuchBucket"), "{said}");
    assert!(said.contains("check that the bucket exists"), "{said}");
    assert!(said.len() < 500, "{said}");
    s3.put("reports", b"");
    assert_eq!(s3.json(&push)["new"], true);
    // The same hour again: the put is conditional, and the first stays.
    assert_eq!(s3.json(&push)["new"], false);
}

#[test]
fn a_bucket_of_s3_answers_as_a_folder_does() {
    let s3 = S3::start();
    s3.put("reports", b"");
    // A spool is laid out like a bucket: all of it is sent, and nothing stays.
    let folder = tempfile::tempdir().unwrap();
    simulate(folder.path(), 300, 3, 21, "founding");
    let (_, expected) = compare(folder.path(), &["--bad", "nic_resets > 0"]);
    let spool = folder.path().to_str().unwrap();
    let days = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let day = days.filter(|name| name.starts_with("day=")).max().unwrap();
    let url = "s3://reports/fleet";
    let sent = s3.json(&["push", "--spool", spool, "--lake", url, "--json"]);
    assert!(sent["sent"].as_u64().unwrap() > 0, "{sent}");
    let left = fs::read_dir(folder.path())
        .unwrap()
        .flat_map(|entry| fs::read_dir(entry.unwrap().path()).into_iter().flatten());
    assert_eq!(left.count(), 0, "all of it is in the bucket");
    let compare = [
        "compare",
        "--bad",
        "nic_resets > 0",
        "--json",
        "--lake",
        url,
    ];
    assert_eq!(answer_of(s3.json(&compare)), answer_of(expected.clone()));

    // Another writer's files: half an upload, and none of Parquet.
    s3.put(
        &format!("reports/fleet/{day}/zz-half.parquet"),
        b"PAR1 half of it",
    );
    s3.put(
        &format!("reports/fleet/{day}/zz-text.parquet"),
        b"node,at\n",
    );
    let answer = s3.json(&compare);
    for count in ["bad", "good", "reports"] {
        assert_eq!(answer[count], expected[count], "{count}");
    }
    let problems = answer["problems"].to_string();
    for name in ["zz-half", "zz-text"] {
        assert!(problems.contains(name), "{problems}");
    }
}
