//! Listening TCP sockets and the queues of connections that wait to be accepted (sock_diag,
//! include/uapi/linux/inet_diag.h). The kernel walks its table of listening sockets only;
//! `/proc/net/tcp` would have all connections, and not the length of the queues.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use rustix::net::netlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::taskstats::each_message;

// include/uapi/linux/netlink.h and sock_diag.h.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const HEADER: usize = 16;

/// `struct inet_diag_req_v2`.
const REQUEST: usize = 56;
const IPPROTO_TCP: u8 = 6;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `TCP_LISTEN`, as a bit.
const LISTENING: u32 = 1 << 10;

// Offsets in `struct inet_diag_msg`.
const PORT_AT: usize = 4;
const ADDRESS_AT: usize = 8;
const QUEUED_AT: usize = 56;
const BACKLOG_AT: usize = 60;
const INODE_AT: usize = 68;

/// Listening sockets that are read; a node has some hundreds.
const MAX_SOCKETS: usize = 16_384;

/// A socket that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening {
    /// Where.
    pub address: SocketAddr,
    /// Connections that wait to be accepted.
    pub queued: u32,
    /// How many may wait: the backlog that was asked for, or `net.core.somaxconn`.
    pub backlog: u32,
    /// Its inode, by which the files of processes name it.
    pub inode: u32,
}

impl Listening {
    /// Whether the next connection is dropped.
    pub fn is_full(&self) -> bool {
        // sk_acceptq_is_full() in include/net/sock.h: one more than the backlog fits.
        self.queued > self.backlog
    }
}

/// All listening TCP sockets of our network namespace.
pub fn all() -> io::Result<Vec<Listening>> {
    let mut sockets = Vec::new();
    for family in [AF_INET, AF_INET6] {
        dump(family, &mut sockets)?;
    }
    Ok(sockets)
}

fn dump(family: u8, sockets: &mut Vec<Listening>) -> io::Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    rustix::net::send(&socket, &request(family), SendFlags::empty())?;
    let mut buffer = vec![0; 32 << 10];
    // An answer ends with a message that says so.
    while sockets.len() < MAX_SOCKETS {
        let n = match rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((n, _)) => n,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let (mut is_done, mut refused) = (n == 0, None);
        each_message(&buffer[..n], |kind, body| match kind {
            NLMSG_DONE => is_done = true,
            NLMSG_ERROR => {
                let code = body.first_chunk().map(|code| i32::from_ne_bytes(*code));
                refused = code.filter(|code| *code < 0);
            }
            SOCK_DIAG_BY_FAMILY => sockets.extend(read(body)),
            _ => {}
        });
        if let Some(code) = refused {
            return Err(io::Error::from_raw_os_error(-code));
        }
        if is_done {
            break;
        }
    }
    Ok(())
}

fn request(family: u8) -> Vec<u8> {
    let len = HEADER + REQUEST;
    let mut bytes = Vec::with_capacity(len);
    bytes.extend((len as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, 0, 0]);
    bytes.extend(LISTENING.to_ne_bytes());
    bytes.resize(len, 0);
    bytes
}

/// Reads one socket; `None` for one of a family that we do not know.
fn read(body: &[u8]) -> Option<Listening> {
    let word = |at: usize| Some(u32::from_ne_bytes(*body.get(at..)?.first_chunk()?));
    let address = match *body.first()? {
        AF_INET => {
            let bytes: [u8; 4] = *body.get(ADDRESS_AT..)?.first_chunk()?;
            IpAddr::from(Ipv4Addr::from(bytes))
        }
        AF_INET6 => {
            let bytes: [u8; 16] = *body.get(ADDRESS_AT..)?.first_chunk()?;
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    let port = u16::from_be_bytes(*body.get(PORT_AT..)?.first_chunk()?);
    Some(Listening {
        address: SocketAddr::new(address, port),
        queued: word(QUEUED_AT)?,
        backlog: word(BACKLOG_AT)?,
        inode: word(INODE_AT)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_full_queue_is_read() {
        let mut body = vec![0; 72];
        body[0] = AF_INET;
        body[PORT_AT..][..2].copy_from_slice(&8080_u16.to_be_bytes());
        body[ADDRESS_AT..][..4].copy_from_slice(&[127, 0, 0, 1]);
        body[QUEUED_AT..][..4].copy_from_slice(&6_u32.to_ne_bytes());
        body[BACKLOG_AT..][..4].copy_from_slice(&5_u32.to_ne_bytes());
        body[INODE_AT..][..4].copy_from_slice(&99_u32.to_ne_bytes());
        let socket = read(&body).expect("a socket");
        assert_eq!(socket.address.to_string(), "127.0.0.1:8080");
        assert!(socket.is_full());
        assert_eq!(socket.inode, 99);
        body[QUEUED_AT] = 5;
        assert!(read(&body).is_some_and(|socket| !socket.is_full()));
        body[0] = AF_INET6;
        let socket = read(&body).expect("a socket");
        assert_eq!(socket.address.to_string(), "[7f00:1::]:8080");
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(body: Vec<u8>) {
            read(&body);
        }
    }
}
