//! Facts about the kernel log.

use super::metric::Metric;
use super::show::{KERNEL_LOG, Mark, NICS};
use crate::payload;
use crate::payload::{Fields, Structure, Value};
use crate::subject::Subject;

payload! {
    /// What a wording captured.
    pub struct Capture {
        /// its name in the signature
        pub name: String,
        /// the text
        pub value: String,
    }

    /// A line that the kernel, or a program, wrote to the kernel's log. Recordings hold it as it
    /// was seen; `id`, `class`, `driver`, what it captured and what it is about are filled in by
    /// signatures when it is judged. Older recordings hold these too.
    @from_old(captures_from_old)
    pub struct KernelLine {
        /// the signature that knows it; filled in when judged
        pub id: Option<String>,
        /// what it means, one of the classes of signatures; filled in when judged
        pub class: Option<String>,
        /// the driver that says it; filled in when judged
        pub driver: Option<String>,
        /// its level
        pub level: Option<String>,
        /// its number since boot
        pub seq: Option<u64>,
        /// `kernel` or `userspace`
        pub written_by: Option<String>,
        /// how far off its time may be
        pub time_error_ns: Option<u64>,
        /// the network interface it is about
        pub device: Option<String>,
        /// the address of that device
        pub bus: Option<String>,
        /// the queue it names
        pub queue: Option<u64>,
        /// the core it names
        pub cpu: Option<u32>,
        /// the process it names
        pub pid: Option<u32>,
        /// that process's name
        pub comm: Option<String>,
        /// the time since the queue was last polled
        pub since_napi_us: Option<u64>,
        /// the limit of the driver
        pub threshold_us: Option<u64>,
        /// everything else that the wording captured
        pub captures: Vec<Capture>,
        /// what the line says but is known to say wrongly
        pub doubtful: Option<String>,
        /// the whole line, escaped
        pub line: Option<String>,
        /// lines like it that were left out since the one before
        pub repeated: Option<u64>,
    }
}

/// Older recordings have every capture as a field of its own.
fn captures_from_old(fields: &Fields) -> Fields {
    let is_known = |name: &str| KernelLine::FIELDS.iter().any(|field| field.name == name);
    let (mut known, other): (Fields, Fields) =
        fields.iter().cloned().partition(|(name, _)| is_known(name));
    if !other.is_empty() {
        let capture = |(name, value): (std::borrow::Cow<'static, str>, Value)| {
            let name = Value::Text(name.into_owned());
            Value::Group(vec![("name".into(), name), ("value".into(), value)])
        };
        let captures = other.into_iter().map(capture).collect();
        known.push(("captures".into(), Value::List(captures)));
    }
    known
}

fn logged(_: &Subject, line: &KernelLine) -> Option<Mark> {
    let is_nic = match line.class.as_deref() {
        Some(class) => {
            class.starts_with("nic_") || class.starts_with("link_") || class == "napi_starved"
        }
        None => line.device.is_some(),
    };
    let kind = line.class.as_deref().or(line.level.as_deref());
    let kind = kind.unwrap_or("line");
    let text = line.line.as_deref().unwrap_or(kind).to_owned();
    let lane = if is_nic { &NICS } else { &KERNEL_LOG };
    let mark = Mark::new(lane, text).of_kind(kind.to_owned());
    Some(mark.times(line.repeated.unwrap_or(0) + 1))
}

facts! {
    /// a line of the kernel log, of level warning or worse, or like one that signatures know
    event KLOG_EVENT = "klog_event" of KernelLine,
        shown: marks!(KernelLine, logged);
    /// lines of the kernel log read since the sensor was opened
    counter KLOG_LINES = "klog_lines" in Count,
        metric: Metric::counter("sexton_klog_lines_total");
    /// lines of the kernel log that were read and not recorded since the sensor was opened: of
    /// level notice or less and like none that signatures know, or repeated
    counter KLOG_LINES_LEFT_OUT = "klog_lines_left_out" in Count,
        metric: Metric::counter("sexton_klog_lines_left_out_total");
    /// older recordings: lines of the kernel log that no known wording fits
    counter KLOG_LINES_UNCLASSIFIED = "klog_lines_unclassified" in Count;
}

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
    (
        "cpu_throttled",
        "a processor lowered its clock because it was too hot",
    ),
    ("oom_kill", "a process was killed for lack of memory"),
    (
        "oom_report",
        "the kernel looked for a process to kill for lack of memory",
    ),
    (
        "hw_corrected",
        "a CPU, memory or a PCIe device corrected an error by itself",
    ),
    (
        "hw_uncorrected",
        "a CPU, memory or a PCIe device had an error that it could not correct",
    ),
    ("disk_timeout", "a disk did not answer in time"),
    ("disk_error", "a disk failed to read or write"),
    ("gpu_xid", "the NVIDIA driver reported an error of a GPU"),
    (
        "fs_read_only",
        "a filesystem was shut down or made read-only after an error",
    ),
];
