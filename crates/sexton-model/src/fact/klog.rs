//! Facts about the kernel log.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[&KLOG_EVENT, &KLOG_LINES, &KLOG_LINES_UNCLASSIFIED];

/// The kernel, or a program that writes to its log, said something that we know.
///
/// Details: `id` of the wording, `class` (one of [`CLASSES`]), `driver`, `level`, `seq`
/// (the line's number since boot), `written_by` (`kernel` or `userspace`),
/// `time_error_ns` (how far off the time may be); where the line says so `device`,
/// `bus`, `queue`, `cpu` and more; `doubtful` for what the line says but is known to
/// say wrongly; `line`, the whole line, escaped.
pub static KLOG_EVENT: Fact = Fact {
    name: "klog_event",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a line of the kernel log whose wording is known",
};

/// Lines of the kernel log that were read.
pub static KLOG_LINES: Fact = Fact {
    name: "klog_lines",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "lines of the kernel log read since the sensor was opened",
};

/// Lines of the kernel log whose wording is not known.
pub static KLOG_LINES_UNCLASSIFIED: Fact = Fact {
    name: "klog_lines_unclassified",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "lines of the kernel log that no known wording fits, since the sensor was opened",
};

/// The classes of known wordings, and what a line of each means.
pub static CLASSES: &[(&str, &str)] = &[
    ("nic_reset", "a network device is reset, or asks for it"),
    ("nic_reset_done", "a reset of a network device ended well"),
    ("nic_reset_failed", "a reset of a network device failed"),
    ("nic_tx_timeout", "a transmit queue was stuck too long"),
    (
        "nic_completion_lost",
        "sent packets were not completed in time",
    ),
    ("napi_starved", "polling of a queue was due but did not run"),
    ("nic_keep_alive", "a network device gave no sign of life"),
    (
        "nic_interrupt_lost",
        "a network device's interrupt did not arrive",
    ),
    ("nic_firmware", "a network device's firmware is in trouble"),
    (
        "nic_path_switch",
        "traffic moved between a device and its virtual function",
    ),
    ("link_down", "a link went down"),
    ("link_up", "a link came up"),
    ("soft_lockup", "a CPU ran in the kernel without a break"),
    ("hard_lockup", "a CPU took no interrupts"),
    ("rcu_stall", "a CPU or task held up RCU"),
    ("hung_task", "a task waited without end"),
    ("workqueue_hog", "a work item used a CPU for long"),
    ("workqueue_lockup", "a worker pool made no progress"),
    (
        "softirq_pending",
        "a CPU went idle with soft interrupts unserved",
    ),
    (
        "resched_late",
        "a CPU did not switch tasks although it should",
    ),
    (
        "irq_nobody_cared",
        "an interrupt had no owner and was turned off",
    ),
    ("oom_kill", "a process was killed for lack of memory"),
    (
        "oom_report",
        "the kernel looked for a process to kill for lack of memory",
    ),
];
