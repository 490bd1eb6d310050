//! A known line as an event.

use std::collections::HashMap;
use std::str::FromStr;

use sexton_host::Host;
use sexton_model::fact::klog::{Capture, KernelLine};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use super::line::Line;
use super::signatures::Known;

/// More of a line than this is cut off. The kernel writes at most 1 kB.
const LINE_BYTES: usize = 2_048;

/// The names of network interfaces, by the address of their device. Of a device with
/// several interfaces the kernel's line does not say which one it is about.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    by_bus: HashMap<Vec<u8>, Option<String>>,
}

impl Interfaces {
    /// Those there are now. What cannot be read has no name.
    pub(super) fn read(host: &Host) -> Self {
        let mut by_bus: HashMap<Vec<u8>, Option<String>> = HashMap::new();
        let Ok(folder) = host.sys("class/net") else {
            return Self::default();
        };
        for entry in host.list(&folder).unwrap_or_default() {
            let Ok(device) = host.read_link(folder.join(&entry.name).join("device")) else {
                continue;
            };
            let name = escape(entry.name.as_encoded_bytes());
            if let Some(bus) = device.file_name() {
                by_bus
                    .entry(bus.as_encoded_bytes().to_vec())
                    .and_modify(|known| *known = None)
                    .or_insert(Some(name));
            }
        }
        Self { by_bus }
    }

    fn of(&self, bus: &[u8]) -> Option<&str> {
        self.by_bus.get(bus)?.as_deref()
    }
}

/// What a known line is about, and what it says.
pub(super) fn describe<'i>(
    line: &Line,
    known: &Known<'_, '_>,
    time_error_ns: u64,
    interfaces: impl FnOnce() -> &'i Interfaces,
) -> (Subject, KernelLine) {
    let text = &line.text[..line.text.len().min(LINE_BYTES)];
    let mut says = KernelLine {
        id: Some(known.pattern.id.clone()),
        class: Some(known.pattern.class.clone()),
        driver: known.driver().map(escape),
        level: Some(line.level_name().to_owned()),
        seq: Some(line.seq),
        written_by: Some(line.written_by().to_owned()),
        time_error_ns: Some(time_error_ns),
        line: Some(escape(text)),
        ..KernelLine::default()
    };
    add_place(&mut says, line, known, interfaces);
    add_captures(&mut says, known);
    (subject(&says), says)
}

fn add_place<'i>(
    says: &mut KernelLine,
    line: &Line,
    known: &Known<'_, '_>,
    interfaces: impl FnOnce() -> &'i Interfaces,
) {
    let bus = known
        .prefix
        .map(|prefix| prefix.bus)
        .or(line.bus.as_deref());
    let named = known.prefix.and_then(|prefix| prefix.device);
    says.device = match (named, bus) {
        (Some(device), _) => Some(escape(device)),
        (None, Some(bus)) if known.pattern.is_of_device() => {
            interfaces().of(bus).map(str::to_owned)
        }
        _ => None,
    };
    says.bus = bus.map(escape);
}

/// What the wording captured; what it is known to say wrongly goes into one field of
/// its own, so that it is not taken for the truth.
fn add_captures(says: &mut KernelLine, known: &Known<'_, '_>) {
    let mut doubtful = Vec::new();
    for (name, value) in &known.captures {
        let value = escape(value);
        if !known.pattern.trusts(name) {
            doubtful.push(format!("{name}={value}"));
        } else if !takes(says, name, &value) {
            let name = (*name).to_owned();
            says.captures.push(Capture { name, value });
        }
    }
    says.doubtful = (!doubtful.is_empty()).then(|| doubtful.join(" "));
}

/// Puts a capture into the field of its name, if there is one that it fits. What is known of
/// the line already stands.
fn takes(says: &mut KernelLine, name: &str, value: &str) -> bool {
    fn set<T: FromStr>(place: &mut Option<T>, value: &str) -> bool {
        if place.is_none() {
            *place = value.parse().ok();
            return place.is_some();
        }
        false
    }
    match name {
        "device" => set(&mut says.device, value),
        "comm" => set(&mut says.comm, value),
        "queue" => set(&mut says.queue, value),
        "cpu" => set(&mut says.cpu, value),
        "pid" => set(&mut says.pid, value),
        "since_napi_us" => set(&mut says.since_napi_us, value),
        "threshold_us" => set(&mut says.threshold_us, value),
        _ => false,
    }
}

/// The device if there is one, else the CPU, else the process, else the node.
fn subject(says: &KernelLine) -> Subject {
    match (&says.device, says.cpu, says.pid) {
        (Some(device), ..) => Subject::new(SubjectKind::Device, device.as_str()),
        (None, Some(cpu), _) => Subject::cpu(cpu),
        (None, None, Some(pid)) => Subject::new(SubjectKind::Process, pid.to_string()),
        (None, None, None) => Subject::node(),
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::payload::{Payload, stored};

    use super::*;
    use crate::klog::signatures::Signatures;

    fn check(record: &str, subject: &str, expected: &[(&str, &str)], absent: &[&str]) {
        let signatures = Signatures::load().expect("they load");
        let line = Line::parse(record.as_bytes()).expect("it is a record");
        let known = signatures.find(&line.text).expect("it is known");
        let interfaces = Interfaces {
            by_bus: HashMap::from([(b"0000:00:05.0".to_vec(), Some("ens5".to_owned()))]),
        };
        let (about, says) = describe(&line, &known, 7, || &interfaces);
        assert_eq!(about.to_string(), subject);
        let fields = says.fields();
        let get = |key: &str| stored(&fields, key).map(ToString::to_string);
        for (key, value) in expected {
            assert_eq!(get(key).as_deref(), Some(*value), "{key}");
        }
        for key in absent {
            assert_eq!(get(key), None, "{key}");
        }
    }

    #[test]
    fn a_line_of_a_device_is_about_that_device() {
        check(
            "3,7,9,-;ena 0000:00:05.0 ens6: Trigger reset is on",
            "device ens6",
            &[
                ("id", "ena-trigger-reset"),
                ("class", "nic_reset"),
                ("driver", "ena"),
                ("level", "err"),
                ("seq", "7"),
                ("written_by", "kernel"),
                ("time_error_ns", "7"),
                ("bus", "0000:00:05.0"),
                ("line", "ena 0000:00:05.0 ens6: Trigger reset is on"),
            ],
            &["doubtful", "queue"],
        );
    }

    #[test]
    fn an_address_leads_to_the_interface() {
        let line = "6,7,9,-;ena 0000:00:05.0: Device reset completed successfully";
        check(line, "device ens5", &[("device", "ens5")], &[]);
        let other = "6,7,9,-;ena 0000:00:09.0: Device reset completed successfully";
        check(other, "node", &[("bus", "0000:00:09.0")], &["device"]);
    }

    #[test]
    fn what_a_driver_says_wrongly_is_doubtful() {
        check(
            "3,7,9,-;ena 0000:00:05.0 ens5: [2/2] qid: 3, napi CPU: 11",
            "device ens5",
            &[("doubtful", "queue=3 cpu=11")],
            &["queue", "cpu"],
        );
    }

    #[test]
    fn what_a_program_writes_is_marked_and_harmless() {
        check(
            "12,7,9,-;watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a\\x1b[31m:9]",
            "cpu 3",
            &[
                ("written_by", "userspace"),
                ("cpu", "3"),
                ("comm", r"a\033[31m"),
                (
                    "line",
                    r"watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [a\033[31m:9]",
                ),
            ],
            &["device", "driver"],
        );
    }
}
