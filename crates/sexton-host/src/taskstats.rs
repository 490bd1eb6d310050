//! What the kernel says of tasks as they exit: name, user, status, lifetime (generic netlink,
//! Documentation/accounting/taskstats.rst). Only root of the first namespaces may listen.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

// include/uapi/linux/netlink.h and genetlink.h.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// A message's header, and that of a family of messages after it.
const HEADER: usize = 16;
const FAMILY_HEADER: usize = 4;

// include/uapi/linux/taskstats.h.
const CMD_GET: u8 = 1;
const ATTR_REGISTER_CPUMASK: u16 = 3;
const TYPE_PID: u16 = 1;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
/// Offsets in `struct taskstats`, which only ever grows at its end.
const STATUS_AT: usize = 4;
const COMM_AT: usize = 80;
const COMM_LEN: usize = 32;
const USER_AT: usize = 120;
const PARENT_AT: usize = 132;
const LIFETIME_AT: usize = 144;

/// Room for what exits between two looks, if the kernel grants it.
const ROOM_BYTES: usize = 4 << 20;
/// A message of one exit takes less.
const MESSAGE_BYTES: usize = 16 << 10;

/// A task that exited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Its number, as the kernel counts.
    pub tid: u32,
    /// What `wait` gives; 0 for threads other than the first of a process.
    pub status: u32,
    /// Its name.
    pub comm: Vec<u8>,
    /// The user it ran as.
    pub user: u32,
    /// The process that it came from, or was given to; 0 when it had none.
    pub parent: u32,
    /// How long it lived.
    pub lifetime: Duration,
}

/// Listens.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    n_overruns: u64,
}

impl Listener {
    /// Begins to listen to exits on all these cores.
    pub fn open(n_cores: u32) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            flags,
            Some(netlink::GENERIC),
        )?;
        // More than the default where we may; the default does for a quiet node.
        if sockopt::set_socket_recv_buffer_size_force(&socket, ROOM_BYTES).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&socket, ROOM_BYTES);
        }
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        let family = family(&socket)?;
        let cores = format!("0-{}\0", n_cores.saturating_sub(1));
        let ask = message(family, CMD_GET, ATTR_REGISTER_CPUMASK, cores.as_bytes());
        request(&socket, &ask)?;
        Ok(Self {
            socket,
            n_overruns: 0,
        })
    }

    /// How often exits were dropped because we came too late for them; how many, nobody says.
    pub fn n_overruns(&self) -> u64 {
        self.n_overruns
    }

    /// Hands over what has exited, and not many more than `limit`.
    pub fn drain(&mut self, limit: usize, mut take: impl FnMut(Exit)) -> io::Result<()> {
        let mut buffer = vec![0; MESSAGE_BYTES];
        for _ in 0..limit {
            match receive(&self.socket, &mut buffer) {
                Ok(bytes) => each_message(bytes, |_, body| {
                    if let Some(exit) = read(body) {
                        take(exit);
                    }
                }),
                Err(Errno::AGAIN) => break,
                Err(Errno::NOBUFS) => self.n_overruns += 1,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The number that the kernel gave to the family of messages.
fn family(socket: &OwnedFd) -> io::Result<u16> {
    let name = b"TASKSTATS\0";
    let ask = message(
        GENL_ID_CTRL,
        CTRL_CMD_GETFAMILY,
        CTRL_ATTR_FAMILY_NAME,
        name,
    );
    let answer = request(socket, &ask)?;
    let mut number = None;
    each_message(&answer, |_, body| {
        let attributes = body.get(FAMILY_HEADER..).unwrap_or_default();
        number = number.or_else(|| {
            let id = attribute(attributes, CTRL_ATTR_FAMILY_ID)?;
            Some(u16::from_ne_bytes(*id.first_chunk()?))
        });
    });
    number.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
}

/// Sends a message, and returns all that comes back; the kernel answers before it returns.
fn request(socket: &OwnedFd, message: &[u8]) -> io::Result<Vec<u8>> {
    rustix::net::send(socket, message, SendFlags::empty())?;
    let mut buffer = vec![0; MESSAGE_BYTES];
    let mut answer = Vec::new();
    loop {
        let bytes = match receive(socket, &mut buffer) {
            Ok(bytes) => bytes,
            Err(Errno::AGAIN) => return Ok(answer),
            Err(error) => return Err(error.into()),
        };
        let mut refused = None;
        each_message(bytes, |kind, body| {
            let code = body.first_chunk().map(|code| i32::from_ne_bytes(*code));
            refused = refused.or(code.filter(|code| kind == NLMSG_ERROR && *code < 0));
        });
        if let Some(code) = refused {
            return Err(io::Error::from_raw_os_error(-code));
        }
        answer.extend_from_slice(bytes);
    }
}

fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<&[u8], Errno> {
    let (n, _) = rustix::net::recv(socket, &mut *buffer, RecvFlags::empty())?;
    Ok(&buffer[..n])
}

/// A request with one attribute.
fn message(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let attribute_len = 4 + value.len();
    let len = HEADER + FAMILY_HEADER + attribute_len.next_multiple_of(4);
    let mut bytes = Vec::with_capacity(len);
    bytes.extend((len as u32).to_ne_bytes());
    bytes.extend(family.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([command, 1, 0, 0]);
    bytes.extend((attribute_len as u16).to_ne_bytes());
    bytes.extend(attribute.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(len, 0);
    bytes
}

/// Hands over kind and body of each message; bytes that are none end it.
pub(crate) fn each_message(mut bytes: &[u8], mut take: impl FnMut(u16, &[u8])) {
    while let Some(header) = bytes.first_chunk::<HEADER>() {
        let [l0, l1, l2, l3, k0, k1, ..] = *header;
        let len = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
        let Some(body) = bytes.get(HEADER..len) else {
            return;
        };
        take(u16::from_ne_bytes([k0, k1]), body);
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
}

/// The value of the first attribute of that kind.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let [l0, l1, k0, k1] = *bytes.first_chunk::<4>()?;
        let len = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(4..len)?;
        // The two high bits are flags.
        if u16::from_ne_bytes([k0, k1]) & 0x3fff == wanted {
            return Some(value);
        }
        bytes = bytes.get(len.next_multiple_of(4)..)?;
    }
}

/// Reads the exit of a task; `None` for messages about anything else.
fn read(body: &[u8]) -> Option<Exit> {
    let one = attribute(body.get(FAMILY_HEADER..)?, TYPE_AGGR_PID)?;
    let tid = attribute(one, TYPE_PID)?.first_chunk()?;
    let stats = attribute(one, TYPE_STATS)?;
    let word = |at: usize| Some(u32::from_ne_bytes(*stats.get(at..)?.first_chunk()?));
    let comm = stats.get(COMM_AT..)?.get(..COMM_LEN)?;
    let lifetime_us = u64::from_ne_bytes(*stats.get(LIFETIME_AT..)?.first_chunk()?);
    Some(Exit {
        tid: u32::from_ne_bytes(*tid),
        status: word(STATUS_AT)?,
        comm: comm.split(|&b| b == 0).next()?.to_vec(),
        user: word(USER_AT)?,
        parent: word(PARENT_AT)?,
        lifetime: Duration::from_micros(lifetime_us),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(kind: u16, value: &[u8]) -> Vec<u8> {
        let len = 4 + value.len();
        let mut bytes = (len as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(len.next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn an_exit_is_read() {
        let mut stats = vec![0; 328];
        stats[STATUS_AT..][..4].copy_from_slice(&(3_u32 << 8).to_ne_bytes());
        stats[COMM_AT..][..4].copy_from_slice(b"sh\0x");
        stats[USER_AT..][..4].copy_from_slice(&1000_u32.to_ne_bytes());
        stats[PARENT_AT..][..4].copy_from_slice(&41_u32.to_ne_bytes());
        stats[LIFETIME_AT..][..8].copy_from_slice(&1_500_u64.to_ne_bytes());
        let one = [
            with(TYPE_PID, &42_u32.to_ne_bytes()),
            with(TYPE_STATS, &stats),
        ]
        .concat();
        let body = [vec![2, 1, 0, 0], with(TYPE_AGGR_PID, &one)].concat();
        let exit = Exit {
            tid: 42,
            status: 3 << 8,
            comm: b"sh".to_vec(),
            user: 1000,
            parent: 41,
            lifetime: Duration::from_micros(1_500),
        };
        assert_eq!(read(&body), Some(exit));
        for n in 0..body.len() {
            assert_eq!(read(&body[..n]), None, "{n} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_do(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            each_message(&bytes, |_, body| {
                let _ = read(body);
            });
        }
    }
}
