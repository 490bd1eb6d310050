//! A server that answers as it is told to, and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// How it answers.
#[derive(Debug, Clone)]
pub enum Answer {
    /// As an API server that takes everything.
    Good,
    /// With this status, and the seconds of its Retry-After.
    Status(u16, Option<u64>),
    /// With this status, unless the request has this text in its head.
    Unless(String, u16),
    /// With this status, if the request has this text in its head.
    If(String, u16),
    /// Not at all.
    Close,
    /// As a good one, after a while.
    Slow(Duration),
}

#[derive(Debug)]
struct Shared {
    answer: Answer,
    requests: Vec<String>,
}

pub struct Server {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
}

impl Server {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Mutex::new(Shared {
            answer: Answer::Good,
            requests: Vec::new(),
        }));
        let server = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&server);
                // A client that has gone is none of our business.
                thread::spawn(move || drop(serve(&shared, stream)));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn answer(&self, answer: Answer) {
        self.shared.lock().expect("no panic").answer = answer;
    }

    /// What it was asked and answered well: method, path and body.
    pub fn requests(&self) -> Vec<String> {
        self.shared.lock().expect("no panic").requests.clone()
    }

    /// Whether the last patch of conditions gives this one this status.
    pub fn told(&self, kind: &str, status: &str) -> bool {
        let requests = self.requests();
        let last = requests
            .iter()
            .rev()
            .find(|it| it.starts_with("PATCH /api/v1/nodes"));
        let body = last
            .and_then(|it| it.split_once('\n'))
            .map(|(_, body)| body);
        let body: Option<Value> = body.and_then(|body| serde_json::from_str(body).ok());
        let conditions = body
            .as_ref()
            .and_then(|it| it["status"]["conditions"].as_array());
        conditions.is_some_and(|all| {
            all.iter()
                .any(|it| it["type"] == kind && it["status"] == status)
        })
    }
}

fn serve(shared: &Mutex<Shared>, stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let answer = shared.lock().expect("no panic").answer.clone();
    let (status, retry_after) = match answer {
        Answer::Good => (200, None),
        Answer::Status(status, retry_after) => (status, retry_after),
        Answer::Unless(text, _) if head.contains(&text) => (200, None),
        Answer::Unless(_, status) => (status, None),
        Answer::If(text, status) if head.contains(&text) => (status, None),
        Answer::If(..) => (200, None),
        Answer::Close => return Ok(()),
        Answer::Slow(time) => {
            thread::sleep(time);
            (200, None)
        }
    };
    if status == 200 {
        let first = head.lines().next().unwrap_or_default();
        let text = format!("{first}\n{}", String::from_utf8_lossy(&body));
        shared.lock().expect("no panic").requests.push(text);
    }
    let retry = retry_after.map_or(String::new(), |it| format!("Retry-After: {it}\r\n"));
    let mut stream = stream;
    write!(
        stream,
        "HTTP/1.1 {status} X\r\n{retry}Content-Length: 2\r\n\r\n{{}}"
    )
}
