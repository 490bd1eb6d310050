//! Tells systemd that the agent is ready, alive, and what it does (`sd_notify(3)`).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The socket of the service manager, if there is one.
#[derive(Debug)]
pub struct Notify {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl Notify {
    /// From the environment that systemd sets.
    pub fn from_environment() -> Self {
        let path = std::env::var_os("NOTIFY_SOCKET");
        let address = path.and_then(|path| match path.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
            _ => SocketAddr::from_pathname(&path).ok(),
        });
        let usec = std::env::var("WATCHDOG_USEC").ok();
        let usec = usec.and_then(|usec| usec.parse().ok());
        Self {
            socket: address.and_then(|address| Some((UnixDatagram::unbound().ok()?, address))),
            watchdog: usec.map(Duration::from_micros),
        }
    }

    /// How often the watchdog wants to hear of us, halved as `sd_watchdog_enabled(3)` advises.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog.map(|time| time / 2)
    }

    /// Says something, such as `READY=1`. Where there is no manager, or it does not listen,
    /// nothing happens.
    pub fn say(&self, text: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(text.as_bytes(), address);
        }
    }
}
