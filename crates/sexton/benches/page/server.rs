//! A server of its own, and questions to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running `sexton serve`.
pub(crate) struct Server {
    child: Child,
    /// Where it listens: host and port.
    pub(crate) address: String,
}

impl Server {
    pub(crate) fn start(sexton: &Path, bundle: &Path) -> Self {
        let mut child = Command::new(sexton)
            .arg("serve")
            .arg(bundle)
            .args(["--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sexton starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let address = line.trim().trim_start_matches("Open http://");
        let address = address.trim_end_matches('/').to_owned();
        Self { child, address }
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(
            answer.starts_with("HTTP/1.1 200 "),
            "{path}: {}",
            &answer[..answer.len().min(600)]
        );
        answer
    }

    /// Waits until all of the recording has been read, and says how long that took.
    pub(crate) fn wait_until_read(&self) -> Duration {
        let began = Instant::now();
        while !self.get("/api/v1/sources").contains("\"progress\":1.0") {
            std::thread::sleep(Duration::from_millis(50));
        }
        began.elapsed()
    }

    pub(crate) fn rss_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
