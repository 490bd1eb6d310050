//! Facts about network devices.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &NIC_IDENTITY,
    &NIC_GONE,
    &NIC_LINK,
    &NIC_LINK_UP,
    &NIC_CARRIER_CHANGES,
    &NIC_NAPI_THREADED,
    &NIC_TX_QUEUES,
    &NIC_RX_QUEUES,
    &NIC_INTERRUPT,
    &NIC_QUEUE_CPUS,
    &NIC_TX_TIMEOUTS,
    &NIC_BQL_LIMIT_BYTES,
    &NIC_BQL_INFLIGHT_BYTES,
    &NIC_BQL_STALLS,
    &NIC_BQL_STALL_MAX_TICKS,
    &NIC_BQL_STALL_THRESHOLD_NS,
    &NIC_RESETS,
    &NIC_RESETS_FAILED,
    &NIC_RESETS_STARVED,
    &NIC_RESETS_COMPLETION,
    &NIC_RESETS_INTERRUPT,
    &NIC_RESETS_WATCHDOG,
    &NIC_RESETS_DEVICE,
    &NIC_RESETS_ADMIN,
    &NIC_DRIVER_TX_TIMEOUTS,
    &NIC_KEEP_ALIVE_TIMEOUTS,
    &NIC_MISSED_COMPLETIONS,
    &NIC_MISSED_INTERRUPTS,
    &NIC_QUEUE_STOPS,
    &NIC_QUEUE_WAKES,
    &NIC_QUEUE_BUSY,
    &NIC_SENT_PACKETS,
    &NIC_POLLS,
    &NIC_POLLS_COMPLETE,
    &NIC_RECOVERIES,
    &NIC_COMPLETION_ERRORS,
    &NIC_INTERFACE_UPS,
    &NIC_INTERFACE_DOWNS,
    &NIC_BW_IN_EXCEEDED,
    &NIC_BW_OUT_EXCEEDED,
    &NIC_PPS_EXCEEDED,
    &NIC_CONNTRACK_EXCEEDED,
    &NIC_LINKLOCAL_EXCEEDED,
];

/// Defines facts that are alike but for their names.
macro_rules! facts {
    ($kind:ident, $unit:ident: $($item:ident, $name:literal, $help:literal;)*) => {
        $(
            #[doc = concat!("Tells ", $help, ".")]
            pub static $item: Fact = Fact {
                name: $name,
                unit: Unit::$unit,
                kind: FactKind::$kind,
                help: $help,
            };
        )*
    };
}

facts! { Event, None:
    NIC_IDENTITY, "nic_identity", "a network device was found or changed: driver, version, firmware, bus, ifindex";
    NIC_GONE, "nic_gone", "a network device is no longer there";
    NIC_LINK, "nic_link", "the link of a network device changed: operstate, before, carrier_changes since the last look, within_ns";
    NIC_INTERRUPT, "nic_interrupt", "where an interrupt of a network device goes: irq, name, allowed_cpus, effective_cpus";
    NIC_QUEUE_CPUS, "nic_queue_cpus", "the CPUs that use a queue of a network device: xps_cpus or rps_cpus";
}

facts! { Gauge, Count:
    NIC_LINK_UP, "nic_link_up", "whether the link of a network device is up (1) or not (0)";
    NIC_NAPI_THREADED, "nic_napi_threaded", "whether a network device is polled by threads (1) or soft interrupts (0)";
    NIC_BQL_STALL_MAX_TICKS, "nic_bql_stall_max_ticks", "the longest stall of completions of a transmit queue, in ticks of the kernel's timer";
    NIC_TX_QUEUES, "nic_tx_queues", "transmit queues of a network device";
    NIC_RX_QUEUES, "nic_rx_queues", "receive queues of a network device";
}

facts! { Gauge, Bytes:
    NIC_BQL_LIMIT_BYTES, "nic_bql_limit_bytes", "bytes that may be under way in a transmit queue";
    NIC_BQL_INFLIGHT_BYTES, "nic_bql_inflight_bytes", "bytes under way in a transmit queue";
}

facts! { Gauge, Nanoseconds:
    NIC_BQL_STALL_THRESHOLD_NS, "nic_bql_stall_threshold_ns", "stalls of completions longer than this are counted; none is while it is zero";
}

facts! { Counter, Count:
    NIC_CARRIER_CHANGES, "nic_carrier_changes", "times the carrier of a network device came or went";
    NIC_TX_TIMEOUTS, "nic_tx_timeouts", "times the network stack found a transmit queue stuck";
    NIC_BQL_STALLS, "nic_bql_stalls", "stalls of completions of a transmit queue";
    NIC_RESETS, "nic_resets", "resets of a network device, by its driver";
    NIC_RESETS_FAILED, "nic_resets_failed", "resets of a network device that failed";
    NIC_RESETS_STARVED, "nic_resets_starved", "resets of a network device because polling did not run although it was due";
    NIC_RESETS_COMPLETION, "nic_resets_completion", "resets of a network device because sent packets were not completed";
    NIC_RESETS_INTERRUPT, "nic_resets_interrupt", "resets of a network device because an interrupt did not arrive";
    NIC_RESETS_WATCHDOG, "nic_resets_watchdog", "resets of a network device because the network stack found a queue stuck";
    NIC_RESETS_DEVICE, "nic_resets_device", "resets of a network device that the device asked for";
    NIC_RESETS_ADMIN, "nic_resets_admin", "resets of a network device because its control channel did not answer";
    NIC_DRIVER_TX_TIMEOUTS, "nic_driver_tx_timeouts", "times a driver was told that a transmit queue is stuck";
    NIC_KEEP_ALIVE_TIMEOUTS, "nic_keep_alive_timeouts", "times a network device gave no sign of life";
    NIC_MISSED_COMPLETIONS, "nic_missed_completions", "sent packets that were not completed in time";
    NIC_MISSED_INTERRUPTS, "nic_missed_interrupts", "interrupts that did not arrive, as the driver noticed";
    NIC_QUEUE_STOPS, "nic_queue_stops", "times a transmit queue was full and stopped";
    NIC_QUEUE_WAKES, "nic_queue_wakes", "times a stopped transmit queue went on";
    NIC_QUEUE_BUSY, "nic_queue_busy", "packets that a transmit queue had no room for";
    NIC_SENT_PACKETS, "nic_sent_packets", "packets that the driver gave to a transmit queue";
    NIC_POLLS, "nic_polls", "times a queue was polled";
    NIC_POLLS_COMPLETE, "nic_polls_complete", "times polling of a queue came to its end";
    NIC_RECOVERIES, "nic_recoveries", "queues that the driver recovered";
    NIC_COMPLETION_ERRORS, "nic_completion_errors", "completions that reported an error";
    NIC_INTERFACE_UPS, "nic_interface_ups", "times the driver brought the interface up";
    NIC_INTERFACE_DOWNS, "nic_interface_downs", "times the driver brought the interface down";
    NIC_BW_IN_EXCEEDED, "nic_bw_in_exceeded", "packets shaped because the instance's inbound bandwidth was used up";
    NIC_BW_OUT_EXCEEDED, "nic_bw_out_exceeded", "packets shaped because the instance's outbound bandwidth was used up";
    NIC_PPS_EXCEEDED, "nic_pps_exceeded", "packets shaped because the instance's packet rate was used up";
    NIC_CONNTRACK_EXCEEDED, "nic_conntrack_exceeded", "packets dropped because the instance tracks too many connections";
    NIC_LINKLOCAL_EXCEEDED, "nic_linklocal_exceeded", "packets dropped because local services were asked too often";
}
