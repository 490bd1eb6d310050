//! A connection to systemd: through the system bus, or straight to its private socket.
//! Every wait has an end.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sexton_host::{machine, socket};

use super::error::{BusError, Malformed};
use super::message::{Call, Kind, Message, PREFIX_BYTES, length};

/// Signals that may wait while an answer is awaited, and what they may weigh together.
const WAITING: usize = 16_384;
const WAITING_BYTES: usize = 32 << 20;

/// The longest line of the handshake.
const LINE_BYTES: usize = 4_096;

/// How long systemd has to answer before it is called again.
const KNOCK_EVERY: Duration = Duration::from_millis(100);

const BUS: &str = "org.freedesktop.DBus";

/// Where a manager is asked.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) path: PathBuf,
    /// Whether there is a bus between us and systemd.
    pub(super) has_bus: bool,
    /// Who must serve it. What lies in a folder of a user may lead anywhere.
    pub(super) user: Option<u32>,
}

/// A connection that is open.
pub(super) struct Connection {
    path: PathBuf,
    stream: UnixStream,
    within: Duration,
    /// Whether there is a bus between us and systemd.
    has_bus: bool,
    last_serial: u32,
    /// Bytes of a message that is not complete yet.
    partial: Vec<u8>,
    waiting: VecDeque<Message>,
    waiting_bytes: usize,
    n_lost: u64,
}

impl Connection {
    /// Connects, and says who we are. All of it takes at most `within`.
    pub(super) fn open(address: &Address, within: Duration) -> Result<Self, BusError> {
        let (path, has_bus) = (&address.path, address.has_bus);
        let connected = socket::connect_unix(path, within).and_then(|stream| {
            stream.set_write_timeout(Some(within))?;
            let user = socket::peer_user(&stream)?;
            Ok((stream, user))
        });
        let (stream, served_by) = connected.map_err(|source| BusError::Connect {
            path: path.clone(),
            source,
        })?;
        if let Some(user) = address.user.filter(|user| *user != served_by) {
            let path = path.clone();
            return Err(BusError::Stranger { path, user });
        }
        let mut connection = Self {
            path: path.clone(),
            stream,
            within,
            has_bus,
            last_serial: 0,
            partial: Vec::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            n_lost: 0,
        };
        connection.authenticate()?;
        if has_bus {
            connection.ask_bus("Hello", None)?;
        } else {
            connection.knock()?;
        }
        Ok(connection)
    }

    /// Calls until something comes back. systemd may read our first call together with
    /// the end of the greeting, and then looks at it only when there is more to read.
    fn knock(&mut self) -> Result<(), BusError> {
        let until = Instant::now() + self.within;
        while Instant::now() < until {
            self.send(Call {
                destination: "",
                path: "/org/freedesktop/systemd1",
                interface: "org.freedesktop.DBus.Peer",
                member: "Ping",
                text: None,
            })?;
            let next = Instant::now() + KNOCK_EVERY;
            if self.receive(next.min(until))?.is_some() {
                return Ok(());
            }
        }
        Err(self.stuck("Ping"))
    }

    /// Whether there is a bus between us and systemd.
    pub(super) fn has_bus(&self) -> bool {
        self.has_bus
    }

    /// Signals dropped since the last time this was asked.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.n_lost)
    }

    /// The user is told in the digits of its number, each in hexadecimal.
    fn authenticate(&mut self) -> Result<(), BusError> {
        let user = machine::effective_user().to_string();
        let user: String = user.bytes().map(|digit| format!("{digit:02x}")).collect();
        self.write(format!("\0AUTH EXTERNAL {user}\r\n").as_bytes())?;
        let line = self.line()?;
        if !line.starts_with("OK ") {
            return Err(BusError::Refused {
                path: self.path.clone(),
                said: sexton_model::text::escape(line.as_bytes()),
            });
        }
        self.write(b"BEGIN\r\n")
    }

    fn line(&mut self) -> Result<String, BusError> {
        let until = Instant::now() + self.within;
        loop {
            if let Some(end) = self.partial.windows(2).position(|pair| pair == b"\r\n") {
                let line: Vec<u8> = self.partial.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.partial.len() > LINE_BYTES {
                return Err(self.malformed(Malformed::Line));
            }
            if !self.fill(until)? {
                return Err(self.stuck("the greeting"));
            }
        }
    }

    /// Asks the bus itself.
    pub(super) fn ask_bus(
        &mut self,
        member: &str,
        text: Option<&str>,
    ) -> Result<Message, BusError> {
        self.ask(Call {
            destination: BUS,
            path: "/org/freedesktop/DBus",
            interface: BUS,
            member,
            text,
        })
    }

    /// Sends a call and waits for the answer. Signals that come meanwhile are kept.
    pub(super) fn ask(&mut self, call: Call<'_>) -> Result<Message, BusError> {
        let serial = self.send(call)?;
        let until = Instant::now() + self.within;
        loop {
            let Some(message) = self.receive(until)? else {
                return Err(self.stuck(call.member));
            };
            match message.kind {
                Kind::Return if message.reply_to == Some(serial) => return Ok(message),
                Kind::Error if message.reply_to == Some(serial) => {
                    return Err(BusError::Answer {
                        call: call.member.to_owned(),
                        said: message.body::<&str>().unwrap_or_default().to_owned(),
                        name: message.error,
                    });
                }
                Kind::Signal => self.keep(message),
                // An answer that came too late, or another's question to us.
                Kind::Return | Kind::Error | Kind::Call => {}
            }
        }
    }

    fn keep(&mut self, signal: Message) {
        let bytes = self.waiting_bytes + signal.n_bytes;
        if self.waiting.len() < WAITING && bytes <= WAITING_BYTES {
            self.waiting_bytes = bytes;
            self.waiting.push_back(signal);
        } else {
            self.n_lost += 1;
        }
    }

    /// Sends a call and gives its number.
    fn send(&mut self, call: Call<'_>) -> Result<u32, BusError> {
        self.last_serial = self.last_serial.wrapping_add(1).max(1);
        let serial = self.last_serial;
        let bytes = call
            .encode(serial, self.has_bus)
            .map_err(|what| self.malformed(what))?;
        self.write(&bytes)?;
        Ok(serial)
    }

    /// A signal that came before the last answer.
    pub(super) fn waiting_signal(&mut self) -> Option<Message> {
        let signal = self.waiting.pop_front()?;
        self.waiting_bytes -= signal.n_bytes;
        Some(signal)
    }

    /// The next signal, if one comes in time.
    pub(super) fn signal(&mut self, until: Instant) -> Result<Option<Message>, BusError> {
        if let Some(message) = self.waiting_signal() {
            return Ok(Some(message));
        }
        while let Some(message) = self.receive(until)? {
            if message.kind == Kind::Signal {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn receive(&mut self, until: Instant) -> Result<Option<Message>, BusError> {
        loop {
            if let Some(prefix) = self.partial.first_chunk::<PREFIX_BYTES>() {
                let length = length(prefix).map_err(|what| self.malformed(what))?;
                if self.partial.len() >= length {
                    let parsed = Message::parse(&self.partial[..length]);
                    self.partial.drain(..length);
                    return parsed.map(Some).map_err(|what| self.malformed(what));
                }
            }
            if !self.fill(until)? {
                return Ok(None);
            }
        }
    }

    /// Reads what there is; false when nothing came in time.
    fn fill(&mut self, until: Instant) -> Result<bool, BusError> {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let mut bytes = [0; 65_536];
        let read = self
            .stream
            .set_read_timeout(Some(left))
            .and_then(|()| self.stream.read(&mut bytes));
        match read {
            Ok(0) => Err(self.closed()),
            Ok(n) => {
                self.partial.extend_from_slice(&bytes[..n]);
                Ok(true)
            }
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(false),
                io::ErrorKind::Interrupted => Ok(true),
                _ => Err(self.closed()),
            },
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), BusError> {
        let written = self.stream.write_all(bytes);
        written.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.stuck("a call"),
            _ => self.closed(),
        })
    }

    fn stuck(&self, what: &str) -> BusError {
        BusError::Stuck {
            path: self.path.clone(),
            what: what.to_owned(),
            within: self.within,
        }
    }

    fn closed(&self) -> BusError {
        BusError::Closed {
            path: self.path.clone(),
        }
    }

    /// What is wrong with something that came over this connection.
    pub(super) fn malformed(&self, what: Malformed) -> BusError {
        BusError::Malformed {
            path: self.path.clone(),
            what,
        }
    }
}
