//! A server, and requests to it byte by byte.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::SEXTON;

/// A running `sexton serve`.
pub struct Server {
    child: Child,
    /// `127.0.0.1:4711`
    pub address: String,
    /// What it says to open.
    pub url: String,
}

/// What it answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    }
}

/// A folder or file in `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

impl Server {
    /// Serves a recording.
    pub fn over(bundle: &Path) -> Self {
        Self::with(bundle, &[])
    }

    /// Serves a recording with more arguments.
    pub fn with(bundle: &Path, args: &[&str]) -> Self {
        Self::start(Command::new(SEXTON), bundle, args)
    }

    /// Serves a recording, and keeps what is temporary in this folder.
    pub fn keeping_in(bundle: &Path, temporary: &Path) -> Self {
        let mut command = Command::new(SEXTON);
        command.env("TMPDIR", temporary);
        Self::start(command, bundle, &[])
    }

    fn start(mut command: Command, bundle: &Path, args: &[&str]) -> Self {
        command.arg("serve").arg(bundle);
        if !args.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command
            .args(args)
            .env_remove("SEXTON_TOKEN")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let stdout = child.stdout.take().expect("it is piped");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it prints text");
        let url = line.trim().trim_start_matches("Open ").to_owned();
        let address = url.trim_start_matches("http://");
        let address = address.split('/').next().unwrap_or_default().to_owned();
        assert!(!address.is_empty(), "it says where it is: {line}");
        Self {
            child,
            address,
            url,
        }
    }

    /// Asks for something.
    pub fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// Asks with more headers, each with its line end.
    pub fn get_with(&self, path: &str, headers: &str) -> Answer {
        let host = &self.address;
        self.raw(
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n")
                .as_bytes(),
        )
    }

    /// Sends a file.
    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        let host = &self.address;
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.raw(&request)
    }

    /// Sends these bytes, and takes all that comes back.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses may close before it has read everything.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        parse(&answer)
    }

    /// A connection with nothing sent yet.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a timeout");
        stream
    }

    /// Waits until the recording was read.
    pub fn wait_until_read(&self) -> serde_json::Value {
        self.wait_for(|source| source["progress"] == 1.0)
    }

    /// Waits until the first source is like this.
    pub fn wait_for(&self, is_so: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let began = Instant::now();
        loop {
            let source = self.get("/api/v1/sources").json()["sources"][0].clone();
            if is_so(&source) {
                return source;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{source}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Its threads, each with how nice it is.
    pub fn threads(&self) -> Vec<(String, i64)> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let stats = std::fs::read_dir(tasks).expect("it runs").flatten();
        let stats = stats.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
        let read = stats.map(|stat| {
            let (name, rest) = stat.split_once(") ").expect("a name in brackets");
            let name = name.split_once('(').expect("as above").1.to_owned();
            // proc_pid_stat(5): the 19th field, the 17th after the name.
            let nice = rest.split(' ').nth(16).expect("many fields");
            (name, nice.parse().expect("a number"))
        });
        read.collect()
    }

    /// Whether it still answers.
    pub fn is_well(&self) -> bool {
        self.get("/api/v1/sources").status == 200
    }
}

impl Drop for Server {
    /// As Ctrl-C does: a server that is killed leaves the files that were dropped.
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        let _ = self.child.wait();
    }
}

fn parse(bytes: &[u8]) -> Answer {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
        head,
    }
}
