//! A known line as an event.

use std::borrow::Cow;
use std::collections::HashMap;

use sexton_host::Host;
use sexton_model::record::Detail;
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

/// What a known line is about, and its details in their order.
pub(super) fn describe<'i>(
    line: &Line,
    known: &Known<'_, '_>,
    time_error_ns: u64,
    interfaces: impl FnOnce() -> &'i Interfaces,
) -> (Subject, Vec<Detail>) {
    let mut details = Details::default();
    details.add("id", known.pattern.id.clone());
    details.add("class", known.pattern.class.clone());
    if let Some(driver) = known.driver() {
        details.add("driver", escape(driver));
    }
    details.add("level", line.level_name().to_owned());
    details.add("seq", line.seq.to_string());
    details.add("written_by", line.written_by().to_owned());
    details.add("time_error_ns", time_error_ns.to_string());
    add_place(&mut details, line, known, interfaces);
    add_captures(&mut details, known);
    let subject = details.subject();
    let text = &line.text[..line.text.len().min(LINE_BYTES)];
    details.add("line", escape(text));
    (subject, details.list)
}

fn add_place<'i>(
    details: &mut Details,
    line: &Line,
    known: &Known<'_, '_>,
    interfaces: impl FnOnce() -> &'i Interfaces,
) {
    let bus = known
        .prefix
        .map(|prefix| prefix.bus)
        .or(line.bus.as_deref());
    let named = known.prefix.and_then(|prefix| prefix.device);
    match (named, bus) {
        (Some(device), _) => details.add("device", escape(device)),
        (None, Some(bus)) if known.pattern.is_of_device() => {
            if let Some(device) = interfaces().of(bus) {
                details.add("device", device.to_owned());
            }
        }
        _ => (),
    }
    if let Some(bus) = bus {
        details.add("bus", escape(bus));
    }
}

/// What the wording captured; what it is known to say wrongly goes into one detail of
/// its own, so that nobody takes it for the truth.
fn add_captures(details: &mut Details, known: &Known<'_, '_>) {
    let mut doubtful = Vec::new();
    for (name, value) in &known.captures {
        if known.pattern.trusts(name) {
            details.add_capture(name, escape(value));
        } else {
            doubtful.push(format!("{name}={}", escape(value)));
        }
    }
    if !doubtful.is_empty() {
        details.add("doubtful", doubtful.join(" "));
    }
}

#[derive(Default)]
struct Details {
    list: Vec<Detail>,
}

impl Details {
    fn add(&mut self, key: &'static str, value: String) {
        self.list.push((Cow::Borrowed(key), value));
    }

    fn add_capture(&mut self, key: &str, value: String) {
        self.list.push((Cow::Owned(key.to_owned()), value));
    }

    fn get(&self, key: &str) -> Option<&str> {
        let found = self.list.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }

    /// The device if there is one, else the CPU, else the process, else the node.
    fn subject(&self) -> Subject {
        let number = |key| self.get(key).and_then(|value| value.parse::<u32>().ok());
        if let Some(device) = self.get("device") {
            return Subject::new(SubjectKind::Device, device);
        }
        if let Some(cpu) = number("cpu") {
            return Subject::cpu(cpu);
        }
        match number("pid") {
            Some(pid) => Subject::new(SubjectKind::Process, pid.to_string()),
            None => Subject::node(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::klog::signatures::Signatures;

    fn check(record: &str, subject: &str, expected: &[(&str, &str)], absent: &[&str]) {
        let signatures = Signatures::load().expect("they load");
        let line = Line::parse(record.as_bytes()).expect("it is a record");
        let known = signatures.find(&line.text).expect("it is known");
        let interfaces = Interfaces {
            by_bus: HashMap::from([(b"0000:00:05.0".to_vec(), Some("ens5".to_owned()))]),
        };
        let (about, details) = describe(&line, &known, 7, || &interfaces);
        assert_eq!(about.to_string(), subject);
        let get = |key: &str| {
            let found = details.iter().find(|(known, _)| known == key);
            found.map(|(_, value)| value.as_str())
        };
        for (key, value) in expected {
            assert_eq!(get(key), Some(*value), "{key}");
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
