//! Local ports that connections to one destination use up.
//!
//! A connection out of the node takes a port of `ip_local_port_range` that no other one to the
//! same address and port has. `sockstat` says at once whether there are enough sockets for that
//! to matter; only then are they listed.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

use sexton_host::Host;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};

use super::Usage;
use super::node::text;
use crate::effort::Effort;

const SETTING: &str = "net.ipv4.ip_local_port_range";

/// From this part of the ports on it is told: far below what any rule takes for near.
const LEAST: f64 = 0.5;

/// `TCP_LISTEN` in include/net/tcp_states.h.
const LISTENING: &str = "0A";

/// When sockets were last listed, and how long to rest after that.
#[derive(Default)]
pub(super) struct Ports {
    listed: Option<(Moment, Duration)>,
}

impl Ports {
    pub(super) fn poll(&mut self, host: &Host, out: &mut Sink) {
        let now = out.now();
        let is_early = |(at, rest): (Moment, Duration)| now.since(at) < rest;
        if self.listed.is_some_and(is_early) {
            return;
        }
        let Some((ports, sockets)) = ports_and_sockets(host) else {
            return;
        };
        let most = ports.clone().count() as u64;
        if (sockets as f64) < most as f64 * LEAST {
            return;
        }
        let effort = Effort::begin();
        let worst = fullest(host, &ports);
        self.listed = Some((now, effort.rest()));
        let Some((to, used)) = worst.filter(|(_, used)| *used as f64 >= most as f64 * LEAST) else {
            return;
        };
        let usage = Usage {
            used,
            most,
            hits: None,
        };
        let name = format!("{SETTING} to {to}");
        usage.tell(&Subject::new(SubjectKind::Limit, name), out);
    }
}

/// The ports there are to choose from, and how many sockets of TCP there are, also those that
/// only wait for their end.
fn ports_and_sockets(host: &Host) -> Option<(RangeInclusive<u16>, u64)> {
    let range = text(host, "sys/net/ipv4/ip_local_port_range").ok()??;
    let stat = text(host, "net/sockstat").ok()??;
    // Those of IPv6 are counted apart, but for the ones that wait.
    let stat6 = text(host, "net/sockstat6").ok().flatten();
    let sockets = sockets(&stat)? + stat6.as_deref().and_then(sockets).unwrap_or(0);
    Some((parse_range(&range)?, sockets))
}

fn parse_range(text: &str) -> Option<RangeInclusive<u16>> {
    let mut fields = text.split_ascii_whitespace();
    let (first, last) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    (first <= last).then_some(first..=last)
}

/// `TCP: inuse 4 orphan 0 tw 12 alloc 5 mem 1`, or `TCP6: inuse 2`.
pub(super) fn sockets(stat: &str) -> Option<u64> {
    let is_tcp = |line: &&str| line.starts_with("TCP: ") || line.starts_with("TCP6: ");
    let line = stat.lines().find(is_tcp)?;
    let fields: Vec<&str> = line.split_ascii_whitespace().skip(1).collect();
    let pairs = fields.chunks_exact(2);
    let counted = pairs.filter(|pair| matches!(pair[0], "inuse" | "tw"));
    counted.map(|pair| pair[1].parse::<u64>().ok()).sum()
}

/// The destination that takes most ports, and how many.
fn fullest(host: &Host, ports: &RangeInclusive<u16>) -> Option<(SocketAddr, u64)> {
    let mut used: HashMap<(IpAddr, SocketAddr), u64> = HashMap::new();
    for file in ["net/tcp", "net/tcp6"] {
        let Ok(path) = host.proc(file) else {
            continue;
        };
        // One that is too long to read counts as far as it was read.
        let _ = host.each_line(path, |line| {
            let line = std::str::from_utf8(line).unwrap_or_default();
            if let Some((local, remote)) = connection(line)
                && ports.contains(&local.port())
            {
                *used.entry((local.ip(), remote)).or_default() += 1;
            }
        });
    }
    let worst = used
        .into_iter()
        .max_by_key(|((_, remote), n)| (*n, *remote));
    worst.map(|((_, remote), n)| (remote, n))
}

/// Both ends of a socket that is no listening one.
pub(super) fn connection(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
    let is_connection = fields.next()? != LISTENING && remote.port() != 0;
    is_connection.then_some((local, remote))
}

/// `0100007F:1F90`: words of four bytes as the machine has them in memory.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = ip.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?);
            }
            // IPv4 in IPv6 takes the ports of IPv4.
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_read_and_listening_sockets_are_none() {
        let line = "   4: 0100007F:9C40 0200000A:1538 01 00000000:00000000 00:00000000 0 0 0";
        let ends = connection(line).expect("a connection");
        assert_eq!(ends.0, "127.0.0.1:40000".parse().expect("an address"));
        assert_eq!(ends.1, "10.0.0.2:5432".parse().expect("an address"));
        let mapped = "0: 0000000000000000FFFF00000100007F:9C40 \
                      0000000000000000FFFF00000200000A:1538 06 0:0";
        assert_eq!(connection(mapped), Some(ends));
        assert_eq!(connection(&line.replace(" 01 ", " 0A ")), None);
        assert_eq!(connection("  sl  local_address rem_address   st"), None);
    }

    #[test]
    fn sockets_that_wait_for_their_end_have_a_port_too() {
        let stat = "sockets: used 9\nTCP: inuse 4 orphan 0 tw 12 alloc 5 mem 1\nUDP: inuse 1\n";
        assert_eq!(sockets(stat), Some(16));
        assert_eq!(sockets("TCP6: inuse 2\nUDP6: inuse 0\n"), Some(2));
        assert_eq!(sockets("UDP: inuse 1\n"), None);
        assert_eq!(parse_range("32768\t60999\n"), Some(32768..=60999));
        assert_eq!(parse_range("9 8"), None);
    }
}
