//! Facts about network devices.

use super::metric::{Metric, by_device};
use super::show::{Mark, NICS, Show};
use crate::payload;
use crate::subject::Subject;

payload! {
    /// A network device, and what drives it.
    pub struct NicIdentity {
        /// the driver
        pub driver: Option<String>,
        /// its version
        pub version: Option<String>,
        /// the version of the firmware
        pub firmware: Option<String>,
        /// the address on its bus
        pub bus: Option<String>,
        /// the kernel's number of the interface
        pub ifindex: Option<u32>,
    }

    /// A network device is gone.
    pub struct NicGone {
        /// the number that the interface had
        pub ifindex: Option<u32>,
    }

    /// The link of a network device changed.
    pub struct NicLink {
        /// its state now
        pub operstate: Option<String>,
        /// its state before
        pub before: Option<String>,
        /// changes of the carrier in between
        pub carrier_changes: Option<u64>,
        /// the time between the two looks
        pub within_ns: Option<u64>,
    }

    /// Where an interrupt of a network device goes.
    pub struct NicInterrupt {
        /// its number
        pub irq: u32,
        /// its name
        pub name: Option<String>,
        /// cores that may take it
        pub allowed_cpus: Option<String>,
        /// cores that do
        pub effective_cpus: Option<String>,
    }

    /// The cores that use a queue of a network device.
    pub struct NicQueueCpus {
        /// of a transmit queue
        pub xps_cpus: Option<String>,
        /// of a receive queue
        pub rps_cpus: Option<String>,
    }
}

fn link(device: &Subject, link: &NicLink) -> Option<Mark> {
    let state = link.operstate.as_deref().unwrap_or("changed");
    Some(Mark::new(
        &NICS,
        format!("link of {}: {state}", device.name),
    ))
}

facts! {
    /// a network device was found or changed
    event NIC_IDENTITY = "nic_identity" of NicIdentity;
    /// a network device is no longer there
    event NIC_GONE = "nic_gone" of NicGone;
    /// the link of a network device changed
    event NIC_LINK = "nic_link" of NicLink,
        shown: marks!(NicLink, link);
    /// where an interrupt of a network device goes
    event NIC_INTERRUPT = "nic_interrupt" of NicInterrupt;
    /// the CPUs that use a queue of a network device
    event NIC_QUEUE_CPUS = "nic_queue_cpus" of NicQueueCpus;
    /// whether the link of a network device is up (1) or not (0)
    gauge NIC_LINK_UP = "nic_link_up" in Count,
        metric: by_device(Metric::gauge("sexton_nic_link_up"));
    /// whether a network device is polled by threads (1) or soft interrupts (0)
    gauge NIC_NAPI_THREADED = "nic_napi_threaded" in Count,
        metric: by_device(Metric::gauge("sexton_nic_napi_threaded"));
    /// the longest stall of completions of a transmit queue, in ticks of the kernel's timer
    gauge NIC_BQL_STALL_MAX_TICKS = "nic_bql_stall_max_ticks" in Count;
    /// transmit queues of a network device
    gauge NIC_TX_QUEUES = "nic_tx_queues" in Count,
        metric: by_device(Metric::gauge("sexton_nic_tx_queues"));
    /// receive queues of a network device
    gauge NIC_RX_QUEUES = "nic_rx_queues" in Count,
        metric: by_device(Metric::gauge("sexton_nic_rx_queues"));
    /// bytes that may be under way in a transmit queue
    gauge NIC_BQL_LIMIT_BYTES = "nic_bql_limit_bytes" in Bytes,
        metric: by_device(Metric::gauge("sexton_nic_bql_limit_bytes"));
    /// bytes under way in a transmit queue
    gauge NIC_BQL_INFLIGHT_BYTES = "nic_bql_inflight_bytes" in Bytes,
        metric: by_device(Metric::gauge("sexton_nic_bql_inflight_bytes"));
    /// stalls of completions longer than this are counted; none is while it is zero
    gauge NIC_BQL_STALL_THRESHOLD_NS = "nic_bql_stall_threshold_ns" in Nanoseconds,
        metric: by_device(Metric::gauge("sexton_nic_bql_stall_threshold_seconds"));
    /// times the carrier of a network device came or went
    counter NIC_CARRIER_CHANGES = "nic_carrier_changes" in Count,
        metric: by_device(Metric::counter("sexton_nic_carrier_changes_total"));
    /// times the network stack found a transmit queue stuck
    counter NIC_TX_TIMEOUTS = "nic_tx_timeouts" in Count,
        shown: Show::Growth(&NICS, "stuck transmit queues"),
        metric: by_device(Metric::counter("sexton_nic_tx_timeouts_total"));
    /// stalls of completions of a transmit queue
    counter NIC_BQL_STALLS = "nic_bql_stalls" in Count,
        metric: by_device(Metric::counter("sexton_nic_bql_stalls_total"));
    /// resets of a network device, by its driver
    counter NIC_RESETS = "nic_resets" in Count,
        shown: Show::Growth(&NICS, "resets"),
        metric: by_device(Metric::counter("sexton_nic_resets_total"));
    /// resets of a network device that failed
    counter NIC_RESETS_FAILED = "nic_resets_failed" in Count,
        metric: by_device(Metric::counter("sexton_nic_resets_failed_total"));
    /// resets of a network device because polling did not run although it was due
    counter NIC_RESETS_STARVED = "nic_resets_starved" in Count,
        metric: by_device(Metric::counter("sexton_nic_resets_starved_total"));
    /// resets of a network device because sent packets were not completed
    counter NIC_RESETS_COMPLETION = "nic_resets_completion" in Count,
        metric: by_device(Metric::counter("sexton_nic_resets_completion_total"));
    /// resets of a network device because an interrupt did not arrive
    counter NIC_RESETS_INTERRUPT = "nic_resets_interrupt" in Count,
        metric: by_device(Metric::counter("sexton_nic_resets_interrupt_total"));
    /// resets of a network device because the network stack found a queue stuck
    counter NIC_RESETS_WATCHDOG = "nic_resets_watchdog" in Count,
        metric: by_device(Metric::counter("sexton_nic_resets_watchdog_total"));
    /// resets of a network device that the device asked for
    counter NIC_RESETS_DEVICE = "nic_resets_device" in Count,
        metric: by_device(Metric::counter("sexton_nic_resets_device_total"));
    /// resets of a network device because its control channel did not answer
    counter NIC_RESETS_ADMIN = "nic_resets_admin" in Count,
        metric: by_device(Metric::counter("sexton_nic_resets_admin_total"));
    /// times a driver was told that a transmit queue is stuck
    counter NIC_DRIVER_TX_TIMEOUTS = "nic_driver_tx_timeouts" in Count,
        shown: Show::Growth(&NICS, "stuck transmit queues, by the driver"),
        metric: by_device(Metric::counter("sexton_nic_driver_tx_timeouts_total"));
    /// times a network device gave no sign of life
    counter NIC_KEEP_ALIVE_TIMEOUTS = "nic_keep_alive_timeouts" in Count,
        shown: Show::Growth(&NICS, "missed keep-alives"),
        metric: by_device(Metric::counter("sexton_nic_keep_alive_timeouts_total"));
    /// sent packets that were not completed in time
    counter NIC_MISSED_COMPLETIONS = "nic_missed_completions" in Count,
        shown: Show::Growth(&NICS, "missed completions"),
        metric: by_device(Metric::counter("sexton_nic_missed_completions_total"));
    /// interrupts that did not arrive, as the driver noticed
    counter NIC_MISSED_INTERRUPTS = "nic_missed_interrupts" in Count,
        metric: by_device(Metric::counter("sexton_nic_missed_interrupts_total"));
    /// times a transmit queue was full and stopped
    counter NIC_QUEUE_STOPS = "nic_queue_stops" in Count,
        metric: by_device(Metric::counter("sexton_nic_queue_stops_total"));
    /// times a stopped transmit queue went on
    counter NIC_QUEUE_WAKES = "nic_queue_wakes" in Count,
        metric: by_device(Metric::counter("sexton_nic_queue_wakes_total"));
    /// packets that a transmit queue had no room for
    counter NIC_QUEUE_BUSY = "nic_queue_busy" in Count,
        metric: by_device(Metric::counter("sexton_nic_queue_busy_total"));
    /// packets that the driver gave to a transmit queue
    counter NIC_SENT_PACKETS = "nic_sent_packets" in Count,
        metric: by_device(Metric::counter("sexton_nic_sent_packets_total"));
    /// times a queue was polled
    counter NIC_POLLS = "nic_polls" in Count,
        metric: by_device(Metric::counter("sexton_nic_polls_total"));
    /// times polling of a queue came to its end
    counter NIC_POLLS_COMPLETE = "nic_polls_complete" in Count,
        metric: by_device(Metric::counter("sexton_nic_polls_complete_total"));
    /// queues that the driver recovered
    counter NIC_RECOVERIES = "nic_recoveries" in Count,
        metric: by_device(Metric::counter("sexton_nic_recoveries_total"));
    /// completions that reported an error
    counter NIC_COMPLETION_ERRORS = "nic_completion_errors" in Count,
        metric: by_device(Metric::counter("sexton_nic_completion_errors_total"));
    /// times the driver brought the interface up
    counter NIC_INTERFACE_UPS = "nic_interface_ups" in Count,
        metric: by_device(Metric::counter("sexton_nic_interface_ups_total"));
    /// times the driver brought the interface down
    counter NIC_INTERFACE_DOWNS = "nic_interface_downs" in Count,
        metric: by_device(Metric::counter("sexton_nic_interface_downs_total"));
    /// packets shaped because the instance's inbound bandwidth was used up
    counter NIC_BW_IN_EXCEEDED = "nic_bw_in_exceeded" in Count,
        metric: by_device(Metric::counter("sexton_nic_bw_in_exceeded_total"));
    /// packets shaped because the instance's outbound bandwidth was used up
    counter NIC_BW_OUT_EXCEEDED = "nic_bw_out_exceeded" in Count,
        metric: by_device(Metric::counter("sexton_nic_bw_out_exceeded_total"));
    /// packets shaped because the instance's packet rate was used up
    counter NIC_PPS_EXCEEDED = "nic_pps_exceeded" in Count,
        metric: by_device(Metric::counter("sexton_nic_pps_exceeded_total"));
    /// packets dropped because the instance tracks too many connections
    counter NIC_CONNTRACK_EXCEEDED = "nic_conntrack_exceeded" in Count,
        metric: by_device(Metric::counter("sexton_nic_conntrack_exceeded_total"));
    /// packets dropped because local services were asked too often
    counter NIC_LINKLOCAL_EXCEEDED = "nic_linklocal_exceeded" in Count,
        metric: by_device(Metric::counter("sexton_nic_linklocal_exceeded_total"));
}
