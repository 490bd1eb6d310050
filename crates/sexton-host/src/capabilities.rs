//! What this process may do.

use crate::{Host, HostError};

/// The capabilities sexton cares for, with their numbers (capabilities(7)).
const KNOWN: [(&str, u32); 8] = [
    ("CAP_DAC_READ_SEARCH", 2),
    ("CAP_NET_ADMIN", 12),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_SYSLOG", 34),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

/// The effective capabilities of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    effective: u64,
}

impl Capabilities {
    /// Those of this process.
    pub fn of_self(host: &Host) -> Result<Self, HostError> {
        let path = host.proc("self/status")?;
        let status = host.read_text(&path)?;
        let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = mask
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .ok_or_else(|| HostError::Malformed {
                path,
                what: "it has no CapEff line".into(),
            })?;
        Ok(Self { effective })
    }

    /// Whether this one is held. `CAP_SYS_ADMIN` stands for the two that were once
    /// part of it.
    pub fn has(&self, name: &str) -> bool {
        let bit = |name: &str| {
            KNOWN
                .iter()
                .find(|(known, _)| *known == name)
                .map_or(0, |(_, n)| 1u64 << n)
        };
        let admin =
            matches!(name, "CAP_BPF" | "CAP_PERFMON") && self.effective & bit("CAP_SYS_ADMIN") != 0;
        admin || self.effective & bit(name) != 0
    }

    /// Those of `names` that are not held.
    pub fn missing<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        names
            .iter()
            .copied()
            .filter(|name| !self.has(name))
            .collect()
    }
}

/// The numeric user this process acts as.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
