//! Asks the drivers of network devices for their names and statistics, as the program
//! of that name does. Needs no privilege.

#[doc(hidden)]
pub mod answer;
mod arena;

use std::io;
use std::os::fd::OwnedFd;

use rustix::ioctl::{Opcode, Updater, ioctl};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::error::HostError;
pub use answer::Driver;
use arena::Arena;

/// `SIOCETHTOOL` (linux/sockios.h).
const ETHTOOL: Opcode = 0x8946;
/// `ETHTOOL_GDRVINFO`, `ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS`, `ETH_SS_STATS`
/// (linux/ethtool.h).
const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1b;
const GET_STATS: u32 = 0x1d;
const STATISTICS: u32 = 1;

/// More statistics than this are not read. A driver with a hundred queues has some
/// thousands.
pub const MAX_STATS: usize = 65_536;

/// A way to ask.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
    arena: Arena,
}

/// `struct ifreq` (linux/if.h): a device's name and where the question lies.
#[repr(C)]
struct Request {
    name: [u8; 16],
    question: *mut u8,
    unused: [u8; 16],
}

impl Ethtool {
    pub(crate) fn open() -> Result<Self, HostError> {
        let failed = |source: io::Error| HostError::Ask {
            device: "a socket".into(),
            what: "driver statistics",
            source,
        };
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)
            .map_err(|error| failed(error.into()))?;
        let arena = Arena::new(answer::strings_bytes(MAX_STATS)).map_err(failed)?;
        Ok(Self { socket, arena })
    }

    /// The driver of a device.
    pub fn driver(&mut self, device: &str) -> Result<Driver, HostError> {
        const WHAT: &str = "its driver";
        self.ask(device, WHAT, &[GET_DRIVER])?;
        answer::driver(self.arena.bytes()).ok_or_else(|| nonsense(device, WHAT))
    }

    /// The names of a device's statistics, `n` as its driver told.
    pub fn stat_names(&mut self, device: &str, n: usize) -> Result<Vec<String>, HostError> {
        const WHAT: &str = "the names of its statistics";
        let n = bounded(device, WHAT, n)?;
        self.ask(device, WHAT, &[GET_STRINGS, STATISTICS, n])?;
        answer::names(self.arena.bytes()).ok_or_else(|| nonsense(device, WHAT))
    }

    /// The values of a device's statistics, in the order of their names.
    pub fn stat_values(&mut self, device: &str, n: usize) -> Result<Vec<u64>, HostError> {
        const WHAT: &str = "its statistics";
        let n = bounded(device, WHAT, n)?;
        self.ask(device, WHAT, &[GET_STATS, n])?;
        answer::values(self.arena.bytes()).ok_or_else(|| nonsense(device, WHAT))
    }

    /// Puts a question into the arena; the kernel writes the answer there.
    fn ask(&mut self, device: &str, what: &'static str, question: &[u32]) -> Result<(), HostError> {
        let failed = |source: io::Error| HostError::Ask {
            device: device.to_owned(),
            what,
            source,
        };
        let mut name = [0; 16];
        if device.len() >= name.len() || device.contains('\0') {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        }
        name[..device.len()].copy_from_slice(device.as_bytes());
        self.arena.write(question);
        let mut request = Request {
            name,
            question: self.arena.start(),
            unused: [0; 16],
        };
        // SAFETY: the kernel reads `request` and writes its answer from where `question`
        // points to. How long the answer is, only the kernel knows; behind the arena
        // lies a page that cannot be written to, so that an answer that is too long ends
        // in an error and not in memory of others.
        let asked = unsafe {
            let updater = Updater::<ETHTOOL, Request>::new(&mut request);
            ioctl(&self.socket, updater)
        };
        asked.map_err(|error| failed(error.into()))
    }
}

fn bounded(device: &str, what: &'static str, n: usize) -> Result<u32, HostError> {
    match u32::try_from(n) {
        Ok(n) if n as usize <= MAX_STATS => Ok(n),
        _ => Err(nonsense(device, what)),
    }
}

fn nonsense(device: &str, what: &'static str) -> HostError {
    HostError::Ask {
        device: device.to_owned(),
        what,
        source: io::ErrorKind::InvalidData.into(),
    }
}
