//! Which cores served soft interrupts of the network, and when.

use std::collections::HashMap;
use std::time::Duration;

use sexton_host::Host;

/// A core that served the network this long before a wait may have more of it to serve. What a
/// device leaves pending is counted only once it has been served.
const RECENT: Duration = Duration::from_secs(10);

/// `/proc/softirqs`, looked at now and then.
#[derive(Debug, Default)]
pub(super) struct Softirqs {
    cores: HashMap<u32, Core>,
    is_unreadable: bool,
}

#[derive(Debug)]
struct Core {
    /// How often it has served the network since boot.
    n: u64,
    /// When that was last seen to have grown.
    grew_ns: Option<u64>,
}

impl Softirqs {
    /// Looks what was served since the last look.
    pub(super) fn look(&mut self, host: &Host, now_ns: u64) {
        let path = host.proc("softirqs");
        let text = path.and_then(|path| host.read_text(path));
        self.is_unreadable = text.is_err();
        for (cpu, n) in counts(&text.unwrap_or_default()) {
            let core = self.cores.entry(cpu).or_insert(Core { n, grew_ns: None });
            if n != core.n {
                *core = Core {
                    n,
                    grew_ns: Some(now_ns),
                };
            }
        }
    }

    /// Whether this core has served the network after that moment.
    pub(super) fn served_since(&self, cpu: u32, ns: u64) -> bool {
        let grew_ns = self.cores.get(&cpu).and_then(|core| core.grew_ns);
        grew_ns.is_some_and(|grew_ns| grew_ns > ns)
    }

    /// The same, and true where it cannot be known.
    pub(super) fn may_have_served(&self, cpu: u32, ns: u64) -> bool {
        self.is_unreadable || self.served_since(cpu, ns)
    }

    /// Whether work of the network may wait on this core since that moment: where the counts
    /// cannot be read it may.
    pub(super) fn may_wait(&self, cpu: u32, since_ns: u64) -> bool {
        let grew_ns = self.cores.get(&cpu).and_then(|core| core.grew_ns);
        let recent_ns = RECENT.as_nanos() as u64;
        self.is_unreadable || grew_ns.is_some_and(|ns| ns.saturating_add(recent_ns) >= since_ns)
    }
}

/// Receive and transmit together, for each core that the head names.
fn counts(text: &str) -> HashMap<u32, u64> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let number = |word: &str| word.strip_prefix("CPU")?.parse::<u32>().ok();
    let cpus: Vec<Option<u32>> = head.split_ascii_whitespace().map(number).collect();
    let mut counts = HashMap::new();
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        if !matches!(words.next(), Some("NET_RX:" | "NET_TX:")) {
            continue;
        }
        for (cpu, word) in cpus.iter().zip(words) {
            if let (Some(cpu), Ok(n)) = (cpu, word.parse::<u64>()) {
                let sum: &mut u64 = counts.entry(*cpu).or_default();
                *sum = sum.wrapping_add(n);
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_and_transmit_are_added_up_for_each_core() {
        let text = "                    CPU0       CPU2\n          HI:          1          0\n      \
                    NET_TX:          3          4\n      NET_RX:         10         20\n";
        assert_eq!(counts(text), HashMap::from([(0, 13), (2, 24)]));
        assert_eq!(counts(""), HashMap::new());
        assert_eq!(counts("CPU0\nNET_RX: x\nNET_TX:\n"), HashMap::new());
    }
}
