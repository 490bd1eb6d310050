//! A line as an event.

use std::collections::HashMap;

use sexton_host::Host;
use sexton_model::fact::klog::KernelLine;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use super::line::Line;

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

    /// The interface whose device a line begins with: `ena 0000:00:05.0: `.
    fn named_in(&self, text: &[u8]) -> Option<&str> {
        let address = text.split(|&byte| byte == b' ').nth(1)?;
        self.of(address.strip_suffix(b":").unwrap_or(address))
    }
}

/// A line as it was seen, and the network interface that it is about, if it names its device.
pub(super) fn describe(
    line: &Line,
    time_error_ns: u64,
    interfaces: &Interfaces,
) -> (Subject, KernelLine) {
    let text = &line.text[..line.text.len().min(LINE_BYTES)];
    let device = match &line.bus {
        Some(bus) => interfaces.of(bus),
        None => interfaces.named_in(text),
    };
    let says = KernelLine {
        level: Some(line.level_name().to_owned()),
        seq: line.seq,
        written_by: Some(line.written_by().to_owned()),
        time_error_ns: Some(time_error_ns),
        device: device.map(str::to_owned),
        bus: line.bus.as_deref().map(escape),
        line: Some(escape(text)),
        ..KernelLine::default()
    };
    let subject = match &says.device {
        Some(device) => Subject::new(SubjectKind::Device, device.as_str()),
        None => Subject::node(),
    };
    (subject, says)
}

#[cfg(test)]
mod tests {
    use sexton_model::payload::Payload;

    use super::*;

    fn check(record: &str, subject: &str, expected: &str) {
        let line = Line::parse(record.as_bytes()).expect("it is a record");
        let interfaces = Interfaces {
            by_bus: HashMap::from([(b"0000:00:05.0".to_vec(), Some("ens5".to_owned()))]),
        };
        let (about, says) = describe(&line, 7, &interfaces);
        assert_eq!(about.to_string(), subject);
        let fields = says.fields();
        let shown = fields.iter().map(|(key, value)| format!("{key}={value}"));
        assert_eq!(shown.collect::<Vec<String>>().join(" "), expected);
    }

    #[test]
    fn a_line_is_told_as_it_is() {
        check(
            "3,7,9,-;ena 0000:00:05.0: Trigger reset is on\n DEVICE=+pci:0000:00:05.0\n",
            "device ens5",
            "level=err seq=7 written_by=kernel time_error_ns=7 device=ens5 bus=0000:00:05.0 \
             line=ena 0000:00:05.0: Trigger reset is on",
        );
        check(
            "12,7,9,-;ena 0000:00:05.0: Trigger reset is on",
            "device ens5",
            "level=warning seq=7 written_by=userspace time_error_ns=7 device=ens5 \
             line=ena 0000:00:05.0: Trigger reset is on",
        );
        check(
            "4,7,9,-;stuck [a\\x1b[31m:9]",
            "node",
            r"level=warning seq=7 written_by=kernel time_error_ns=7 line=stuck [a\033[31m:9]",
        );
    }
}
