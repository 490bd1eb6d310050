//! Small files of sysfs and procfs, and what stands in them.

use std::path::Path;

use sexton_host::{Host, HostError};
use sexton_model::text::escape;

/// A number in a file of its own.
pub(super) fn number(host: &Host, path: &Path) -> Result<u64, HostError> {
    let text = host.read_text(path)?;
    let text = text.trim();
    text.parse().map_err(|_| HostError::Malformed {
        path: path.to_owned(),
        what: format!("{:?} is no number", escape(text.as_bytes())),
    })
}

/// A word in a file of its own, escaped.
pub(super) fn word(host: &Host, path: &Path) -> Result<String, HostError> {
    Ok(escape(host.read(path)?.trim_ascii()))
}

/// The CPUs of a mask such as `00000000,0000000f`, as a list such as `0-3`.
pub(super) fn list_of_mask(mask: &str) -> Option<String> {
    let mut cpus = Vec::new();
    for (group, digits) in mask.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(digits, 16).ok()?;
        let first = u32::try_from(group).ok()?.checked_mul(32)?;
        cpus.extend(
            (0..32)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| first + bit),
        );
    }
    Some(list(&cpus))
}

/// Ascending numbers as a list such as `0-3,8`.
fn list(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let shown = runs.map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        run => run.iter().map(ToString::to_string).collect(),
    });
    shown.collect::<Vec<String>>().join(",")
}

/// What `/proc/interrupts` calls an interrupt: the last word of its line.
pub(super) fn interrupt_name(interrupts: &str, irq: u32) -> Option<String> {
    let line = interrupts.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        (number.trim().parse() == Ok(irq)).then_some(rest)
    })?;
    let name = line.split_whitespace().next_back()?;
    (!name.chars().all(|c| c.is_ascii_digit())).then(|| escape(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(mask: &str, expected: Option<&str>) {
        assert_eq!(list_of_mask(mask).as_deref(), expected, "{mask:?}");
    }

    #[test]
    fn masks_become_lists() {
        check("0\n", Some(""));
        check("3", Some("0-1"));
        check("00000000,0000000f", Some("0-3"));
        check("80000001,00000105", Some("0,2,8,32,63"));
        check("", None);
        check("3,,3", None);
        check("1ffffffff", None);
        check("x", None);
    }

    #[test]
    fn interrupts_have_names() {
        let interrupts = "           CPU0       CPU1       \n 38:          0      32982 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n 39:      29060          0 \nNMI:          0          0   Non-maskable interrupts\n";
        assert_eq!(
            interrupt_name(interrupts, 38).as_deref(),
            Some("virtio2-input.0")
        );
        assert_eq!(interrupt_name(interrupts, 39), None);
        assert_eq!(interrupt_name(interrupts, 3), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in any::<String>(), mask in "[0-9a-f,]{0,40}") {
            list_of_mask(&text);
            list_of_mask(&mask);
            interrupt_name(&text, 7);
        }
    }
}
