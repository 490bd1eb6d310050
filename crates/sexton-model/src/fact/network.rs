//! Facts about packets and connections that the node drops. The subject is the node, a network
//! device or an address that a socket listens at.

use super::metric::{DEVICES, MAX_DEVICES, Metric};
use super::show::{NETWORK, Show};
use crate::payload;

payload! {
    /// A socket whose queue of connections that wait to be accepted was full, or half full, when
    /// connections were dropped for that reason. The subject is the process that listens, or
    /// the node where that is not known.
    pub struct ListenQueue {
        /// the address that it listens at
        pub address: String,
        /// connections that wait to be accepted
        pub queued: u64,
        /// how many may wait
        pub backlog: u64,
        /// whether the next connection is dropped
        pub full: bool,
        /// the process that has the socket
        pub pid: Option<u32>,
        /// its name
        pub comm: Option<String>,
        /// its cgroup
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
    }
}

facts! {
    /// received packets that were dropped because the backlog of a core was full
    counter NETWORK_BACKLOG_DROPS = "network_backlog_drops" in Count,
        shown: Show::Growth(&NETWORK, "packets dropped: backlog of a core full"),
        metric: Metric::counter("sexton_network_backlog_drops_total");
    /// times a core had packets left when its budget for network polling was used up
    /// (time_squeeze)
    counter NETWORK_SQUEEZES = "network_squeezes" in Count,
        metric: Metric::counter("sexton_network_squeezes_total");
    /// connections that were dropped because the queue of a listening socket was full
    /// (ListenOverflows)
    counter NETWORK_LISTEN_OVERFLOWS = "network_listen_overflows" in Count,
        shown: Show::Growth(&NETWORK, "connections dropped: listen queue full"),
        metric: Metric::counter("sexton_network_listen_overflows_total");
    /// connections that a listening socket dropped for whatever reason (ListenDrops)
    counter NETWORK_LISTEN_DROPS = "network_listen_drops" in Count,
        metric: Metric::counter("sexton_network_listen_drops_total");
    /// packets of connections that connection tracking had no entry for, and dropped (drop,
    /// early_drop, insert_failed)
    counter NETWORK_CONNTRACK_DROPS = "network_conntrack_drops" in Count,
        shown: Show::Growth(&NETWORK, "packets dropped by connection tracking"),
        metric: Metric::counter("sexton_network_conntrack_drops_total");
    /// packets that a network device had no room for in its receive ring (rx_missed_errors,
    /// rx_fifo_errors)
    counter NIC_RING_DROPS = "nic_ring_drops" in Count,
        shown: Show::Growth(&NETWORK, "packets dropped: receive ring full"),
        metric: Metric::counter("sexton_nic_ring_drops_total").by(DEVICES, MAX_DEVICES);
    /// received packets with an error, of any kind (rx_errors)
    counter NIC_RECEIVE_ERRORS = "nic_receive_errors" in Count,
        metric: Metric::counter("sexton_nic_receive_errors_total").by(DEVICES, MAX_DEVICES);
    /// a listening socket had a full queue while connections were dropped
    event LISTEN_QUEUE = "listen_queue" of ListenQueue;
}
