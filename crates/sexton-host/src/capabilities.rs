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

const ADMIN: &str = "CAP_SYS_ADMIN";

/// What was a part of [`ADMIN`] before Linux 5.8.
const SPLIT_OFF: [&str; 2] = ["CAP_PERFMON", "CAP_BPF"];

/// The effective capabilities of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    effective: u64,
    /// The highest number that the running kernel knows.
    last: u32,
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
        let last = host.proc("sys/kernel/cap_last_cap").ok();
        let last = last.and_then(|path| host.read_text(&path).ok());
        let last = last.and_then(|text| text.trim().parse().ok());
        Ok(Self {
            effective,
            last: last.unwrap_or(u32::MAX),
        })
    }

    /// Whether this one is held. `CAP_SYS_ADMIN` stands for the two that were once
    /// part of it.
    pub fn has(&self, name: &str) -> bool {
        let bit = |name: &str| number(name).map_or(0, |n| 1u64 << n);
        let admin = SPLIT_OFF.contains(&name) && self.effective & bit(ADMIN) != 0;
        admin || self.effective & bit(name) != 0
    }

    /// Those of `names` that are not held, by the names that this kernel knows: before Linux 5.8
    /// there is no `CAP_BPF`.
    pub fn missing<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let is_known = |name| number(name).is_some_and(|n| n <= self.last);
        let mut missing: Vec<&str> = Vec::new();
        for name in names.iter().filter(|name| !self.has(name)) {
            let name = match SPLIT_OFF.contains(name) && !is_known(name) {
                true => ADMIN,
                false => name,
            };
            if !missing.contains(&name) {
                missing.push(name);
            }
        }
        missing
    }
}

fn number(name: &str) -> Option<u32> {
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    known.map(|(_, number)| *number)
}

/// The numeric user this process acts as.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_kernel_is_asked_for_what_it_knows() {
        let check = |effective: u64, last: u32, expected: &[&str]| {
            let held = Capabilities { effective, last };
            assert_eq!(
                held.missing(&["CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG"]),
                expected,
                "{effective:#x} of {last}"
            );
        };
        check(0, 40, &["CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG"]);
        check(0, 37, &["CAP_SYS_ADMIN", "CAP_SYSLOG"]);
        check(1 << 21, 37, &["CAP_SYSLOG"]);
        check(1 << 21 | 1 << 34, 40, &[]);
        check(1 << 39 | 1 << 34, 40, &["CAP_PERFMON"]);
    }
}
