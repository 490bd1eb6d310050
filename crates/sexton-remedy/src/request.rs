//! How the agent asks its helper: one line of JSON each way on a unix socket. A request names a
//! finding and nothing else; what is done about it is read from the configuration by the helper.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where the helper listens, unless told otherwise.
pub const SOCKET: &str = "/run/sexton-remedy.sock";

/// No request is longer: two names.
const MOST_REQUEST_BYTES: u64 = 8 << 10;

/// No answer is longer.
const MOST_ANSWER_BYTES: u64 = 256 << 10;

/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(5);

/// Which finding to act on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The code of the finding.
    pub code: String,
    /// What it is about.
    pub origin: String,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was planned: a dry run changes nothing.
    Planned,
    /// It is not allowed, or not so soon.
    Refused,
    /// The helper looked itself, and did not find the same.
    Unconfirmed,
    /// It was tried, or could not be.
    Failed,
}

impl Outcome {
    /// Its name in text and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Planned => "planned",
            Self::Refused => "refused",
            Self::Unconfirmed => "unconfirmed",
            Self::Failed => "failed",
        }
    }
}

/// What the helper answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What came of it.
    pub outcome: Outcome,
    /// The acts of the configuration, by their names.
    #[serde(default)]
    pub acts: Vec<String>,
    /// What was or would be done, or why not, in one line.
    pub text: String,
    /// How to take it back.
    #[serde(default)]
    pub undo_file: Option<PathBuf>,
}

impl Answer {
    /// One without an act.
    pub fn without_act(outcome: Outcome, text: impl Into<String>) -> Self {
        Self {
            outcome,
            acts: Vec::new(),
            text: text.into(),
            undo_file: None,
        }
    }
}

/// Asks the helper, and waits for its answer no longer than `within`.
pub fn ask(socket: &Path, request: &Request, within: Duration) -> io::Result<Answer> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(within))?;
    write_line(&mut stream, request)?;
    stream.shutdown(Shutdown::Write)?;
    read_line(&stream, MOST_ANSWER_BYTES)
}

/// Takes a request.
pub fn take(stream: &UnixStream) -> io::Result<Request> {
    stream.set_read_timeout(Some(PATIENCE))?;
    read_line(stream, MOST_REQUEST_BYTES)
}

/// Answers it.
pub fn answer(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn write_line(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn read_line<T: for<'de> Deserialize<'de>>(stream: impl Read, most: u64) -> io::Result<T> {
    let mut line = Vec::new();
    BufReader::new(stream.take(most)).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        let text = match line.is_empty() {
            true => "the other side said nothing",
            false => "the line is too long or was cut",
        };
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
    }
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// What the helper takes of these bytes.
    fn taken(bytes: &[u8]) -> io::Result<Request> {
        let (ours, mut theirs) = UnixStream::pair()?;
        let bytes = bytes.to_vec();
        let writes = thread::spawn(move || {
            // The helper may close before all of it is read.
            let _ = theirs.write_all(&bytes);
        });
        let request = take(&ours);
        drop(ours);
        writes.join().expect("no panic");
        request
    }

    #[test]
    fn a_request_names_a_finding_and_nothing_else() {
        let request = taken(b"{\"code\":\"UNIT001\",\"origin\":\"a.service\"}\n");
        assert_eq!(
            request.expect("it is right"),
            Request {
                code: "UNIT001".into(),
                origin: "a.service".into(),
            }
        );
        for wrong in [
            &b""[..],
            b"{}\n",
            b"{\"code\":\"UNIT001\",\"origin\":\"a.service\"}",
            b"{\"code\":\"UNIT001\",\"origin\":\"a.service\",\"act\":\"mask\"}\n",
            b"rm -rf /\n",
        ] {
            assert!(taken(wrong).is_err(), "{wrong:?}");
        }
        assert!(taken(&[b' '; 100_000]).is_err(), "it has no end");
    }

    #[test]
    fn an_answer_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let listener = std::os::unix::net::UnixListener::bind(&socket).expect("it listens");
        let said = Answer::without_act(Outcome::Refused, "not allowed");
        let expected = said.clone();
        let helper = thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            let request = take(&stream).expect("a request");
            answer(&stream, &said).expect("it is sent");
            request
        });
        let request = Request {
            code: "UNIT002".into(),
            origin: "b.service".into(),
        };
        let got = ask(&socket, &request, PATIENCE).expect("an answer");
        assert_eq!(got, expected);
        assert_eq!(helper.join().expect("no panic"), request);
    }
}
