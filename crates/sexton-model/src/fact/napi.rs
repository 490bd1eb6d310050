//! Facts about network polling.

use super::metric::{CORES, DEVICES, MAX_CORES, MAX_DEVICES, Metric};
use super::show::{Group, MS, Mark, NAPI_DELAYED, NAPI_PENDING, SECOND, Series, Show};
use crate::old;
use crate::payload;
use crate::payload::Fields;
use crate::subject::Subject;

payload! {
    /// Network polling waited for a core, and who occupied the core longest meanwhile.
    @from_old(from_old)
    pub struct NapiDelay {
        /// what waited: `net_rx`, `net_tx`, or the thread that polls
        pub what: Option<String>,
        /// how long
        pub waited_ns: Option<u64>,
        /// who occupied the core longest meanwhile
        pub holder_pid: Option<u32>,
        /// its name
        pub holder_comm: Option<String>,
        /// when it got the core, or the wait began if that was later
        pub holder_since_ns: Option<u64>,
        /// how long it had the core, of the wait
        pub holder_ns: Option<u64>,
        /// whether it is the recording sexton itself
        pub holder_own: Option<bool>,
        /// its kernel functions, outermost first; `[user]` if it was not in the kernel
        pub stack: Vec<String>,
    }
}

fn from_old(fields: &Fields) -> Fields {
    old::lists(fields, &[("stack", ";")])
}

fn waits(core: &Subject, delay: &NapiDelay) -> Option<Mark> {
    Some(Mark::new(
        &NAPI_PENDING,
        sentence(core, "NAPI poll pending", delay),
    ))
}

fn served(core: &Subject, delay: &NapiDelay) -> Option<Mark> {
    Some(Mark::new(
        &NAPI_DELAYED,
        sentence(core, "NAPI poll ran", delay),
    ))
}

fn sentence(core: &Subject, what: &str, delay: &NapiDelay) -> String {
    let mut text = format!("{core}: {what}");
    if let Some(ns) = delay.waited_ns {
        text.push_str(&format!(" after {} ms", ns / MS));
    }
    if let Some(holder) = &delay.holder_comm {
        text.push_str(&format!(", core occupied by {holder}"));
    }
    text
}

const fn delay(id: &'static str, label: &'static str) -> Show {
    let series = Series::line(id, Group::Network, label, "napi");
    Show::Series(series.of_any().every(100 * MS, 5 * SECOND))
}

facts! {
    /// how long the oldest network polling work of this core, or of the node, has waited by now;
    /// 0 when none waits
    gauge NAPI_WAIT_NS = "napi_wait_ns" in Nanoseconds,
        shown: delay("network.wait", "longest pending NAPI poll"),
        metric: Metric::gauge("sexton_napi_wait_seconds");
    /// half of the NET_RX softirqs of the interval ran within this time after they were raised,
    /// rounded up to a power of two
    gauge NAPI_DELAY_P50_NS = "napi_delay_p50_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_napi_delay_p50_seconds").by(CORES, MAX_CORES);
    /// 99 of 100 NET_RX softirqs of the interval ran within this time after they were raised,
    /// rounded up to a power of two
    gauge NAPI_DELAY_P99_NS = "napi_delay_p99_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_napi_delay_p99_seconds").by(CORES, MAX_CORES);
    /// the longest time from raise to run of a NET_RX softirq that ran in the interval
    gauge NAPI_DELAY_MAX_NS = "napi_delay_max_ns" in Nanoseconds,
        shown: delay("network.delay", "longest NET_RX delay"),
        metric: Metric::gauge("sexton_napi_delay_max_seconds").by(CORES, MAX_CORES);
    /// the longest time from raise to run of a NET_TX softirq that ran in the interval
    gauge NAPI_TX_DELAY_MAX_NS = "napi_tx_delay_max_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_napi_tx_delay_max_seconds").by(CORES, MAX_CORES);
    /// the longest time that network polling waited for a woken ksoftirqd or threaded NAPI task
    /// which ran in the interval
    gauge NAPI_THREAD_DELAY_MAX_NS = "napi_thread_delay_max_ns" in Nanoseconds,
        metric: Metric::gauge("sexton_napi_thread_delay_max_seconds").by(CORES, MAX_CORES);
    /// the longest time in the interval that a NAPI instance with work left was not polled
    gauge NAPI_POLL_GAP_NS = "napi_poll_gap_ns" in Nanoseconds,
        shown: delay("network.gap", "longest gap between polls of a queue"),
        metric: Metric::gauge("sexton_napi_poll_gap_seconds").by(DEVICES, MAX_DEVICES);
    /// network polling has waited over half a second on this core
    event NAPI_STARVED = "napi_starved" of NapiDelay,
        shown: marks!(NapiDelay, waits),
        metric: Metric::counter("sexton_napi_starved_total");
    /// network polling that had waited over half a second ran at last
    event NAPI_SERVED = "napi_served" of NapiDelay,
        shown: marks!(NapiDelay, served);
}
