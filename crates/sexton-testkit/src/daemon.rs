//! A daemon that is a thread, and a node that has its socket.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::{TempTree, fixture};
use sexton_host::{Entry, FolderRoot, Host, Root};

/// What a daemon does with a question.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Says this and ends the connection.
    End(Vec<u8>),
    /// Says this and no more.
    Hold(Vec<u8>),
    /// Says this and then a byte now and then.
    Drip(Vec<u8>),
}

/// A daemon that answers until the test is over.
#[derive(Debug)]
pub struct FakeDaemon {
    tree: TempTree,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FakeDaemon {
    /// Starts one that answers so to what it is asked for.
    pub fn start(reply: impl Fn(&str) -> Reply + Send + 'static) -> Self {
        let tree = TempTree::new();
        let listener = UnixListener::bind(tree.path().join("sock")).expect("a socket");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                // Those that hang up early are none of our business.
                let Ok(target) = target(&mut stream) else {
                    continue;
                };
                let answer = reply(&target);
                log.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(target);
                match answer {
                    Reply::End(bytes) => drop(stream.write_all(&bytes)),
                    Reply::Hold(bytes) => {
                        stream.write_all(&bytes).ok();
                        held.push(stream);
                    }
                    Reply::Drip(bytes) => {
                        stream.write_all(&bytes).ok();
                        thread::spawn(move || {
                            while stream.write_all(b" ").is_ok() {
                                thread::sleep(Duration::from_millis(20));
                            }
                        });
                    }
                }
            }
        });
        Self { tree, asked }
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.tree.path().join("sock")
    }

    /// What it was asked.
    pub fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock();
        asked.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it was asked for this.
    pub fn wait_for(&self, target: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.asked().iter().any(|asked| asked == target) {
            assert!(Instant::now() < until, "it was not asked for {target}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn target(stream: &mut UnixStream) -> io::Result<String> {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let request = String::from_utf8_lossy(&request);
    Ok(request.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// What a daemon of this machine sent once.
pub fn captured(story: &str, file: &str) -> Vec<u8> {
    let folder = fixture(&format!("6.18-debian12/{story}"));
    std::fs::read(folder.join(file)).expect("the fixture is there")
}

/// Made up: an answer of a given length.
pub fn answer(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// Made up: events that end with the connection.
pub fn events(lines: &[String]) -> Vec<u8> {
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("HTTP/1.1 200 OK\r\nServer: made up\r\n\r\n{lines}").into_bytes()
}

/// Made up: an event of a container whose name is its id.
pub fn event(action: &str, id: &str, wall_ns: u64) -> String {
    format!(
        r#"{{"Type":"container","Action":"{action}","Actor":{{"ID":"{id}","Attributes":{{"exitCode":"1","image":"i:1","name":"{id}"}}}},"timeNano":{wall_ns}}}"#
    )
}

/// A node with these sockets and processes.
pub fn node(sockets: &[(&str, PathBuf)], processes: &[&str]) -> Host {
    let mut tree = TempTree::node("");
    for (i, comm) in processes.iter().enumerate() {
        let pid = 1000 + i;
        tree = tree.file(&format!("/proc/{pid}/comm"), format!("{comm}\n"));
        let cmdline = format!("{comm}\0system\0service\0");
        tree = tree.file(&format!("/proc/{pid}/cmdline"), cmdline);
    }
    let folder = FolderRoot::open(tree.path()).expect("the folder is there");
    let sockets = sockets
        .iter()
        .map(|(path, socket)| (PathBuf::from(path), socket.clone()))
        .collect();
    let root = LiveFolder {
        folder,
        sockets,
        _tree: tree,
    };
    Host::new(Box::new(root)).expect("a mount table")
}

/// A folder that passes for a running node.
struct LiveFolder {
    folder: FolderRoot,
    sockets: Vec<(PathBuf, PathBuf)>,
    _tree: TempTree,
}

impl Root for LiveFolder {
    fn read(&self, path: &Path, limit_bytes: u64) -> io::Result<Vec<u8>> {
        self.folder.read(path, limit_bytes)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        self.folder.list(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.folder.read_link(path)
    }

    fn socket(&self, path: &Path) -> io::Result<PathBuf> {
        let found = self.sockets.iter().find(|(known, _)| known == path);
        let socket = found.map(|(_, socket)| socket.clone());
        socket.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_live(&self) -> bool {
        true
    }
}
