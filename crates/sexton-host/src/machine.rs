//! The machine itself: kernel, processors, memory nodes, the page size.

use sexton_model::census::Device;

use crate::{Host, HostError};

/// The kernel's release, e.g. `6.18.44`.
pub fn kernel_release(host: &Host) -> Result<String, HostError> {
    Ok(host
        .read_text(host.proc("sys/kernel/osrelease")?)?
        .trim()
        .to_owned())
}

/// The name the node goes by.
pub fn host_name(host: &Host) -> Result<String, HostError> {
    Ok(host
        .read_text(host.proc("sys/kernel/hostname")?)?
        .trim()
        .to_owned())
}

/// The id of this boot: another after every restart.
pub fn boot_id(host: &Host) -> Result<String, HostError> {
    Ok(host
        .read_text(host.proc("sys/kernel/random/boot_id")?)?
        .trim()
        .to_owned())
}

/// CPUs the kernel keeps counters for, present or not.
pub fn possible_cpus(host: &Host) -> Result<u32, HostError> {
    count_of_list(host, "devices/system/cpu/possible")
}

/// NUMA nodes the kernel keeps lists for. One where it knows no nodes.
pub fn possible_nodes(host: &Host) -> u32 {
    count_of_list(host, "devices/system/node/possible").unwrap_or(1)
}

/// The size of a page in bytes.
pub fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// The user that this process acts as.
pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The lockdown mode in force, if the kernel has one (`none`, `integrity`,
/// `confidentiality`).
pub fn lockdown(host: &Host) -> Option<String> {
    let modes = host
        .read_text(host.sys("kernel/security/lockdown").ok()?)
        .ok()?;
    let (_, rest) = modes.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// Whether the kernel describes its own types, which BPF programs need.
pub fn has_type_information(host: &Host) -> bool {
    let Ok(folder) = host.sys("kernel/btf") else {
        return false;
    };
    host.list(folder)
        .is_ok_and(|entries| entries.iter().any(|entry| entry.name == "vmlinux"))
}

/// The name of a block device, e.g. `/dev/vda`.
pub fn block_device_name(host: &Host, device: Device) -> Option<String> {
    let uevent = host
        .read_text(host.sys(&format!("dev/block/{device}/uevent")).ok()?)
        .ok()?;
    let name = uevent
        .lines()
        .find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(format!("/dev/{name}"))
}

/// The CPUs that are online now.
pub fn online_cpus(host: &Host) -> Result<Vec<u32>, HostError> {
    let path = host.sys("devices/system/cpu/online")?;
    let list = host.read_text(&path)?;
    numbers_of_list(list.trim()).ok_or_else(|| HostError::Malformed {
        path,
        what: format!("{:?} is no list", list.trim()),
    })
}

/// The numbers of a list such as `0-3,8`; not more than any kernel has CPUs.
fn numbers_of_list(list: &str) -> Option<Vec<u32>> {
    const MOST: usize = 1 << 14;
    let mut numbers = Vec::new();
    for part in list.split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if to.checked_sub(from)? as usize + numbers.len() >= MOST {
            return None;
        }
        numbers.extend(from..=to);
    }
    Some(numbers)
}

/// One more than the highest number of a list such as `0-3,8`.
fn count_of_list(host: &Host, below: &str) -> Result<u32, HostError> {
    let path = host.sys(below)?;
    let list = host.read_text(&path)?;
    let last = list
        .trim()
        .rsplit([',', '-'])
        .next()
        .and_then(|number| number.parse::<u32>().ok());
    last.and_then(|last| last.checked_add(1))
        .ok_or_else(|| HostError::Malformed {
            path,
            what: format!("{:?} is no list", list.trim()),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, expected: Option<&[u32]>) {
        assert_eq!(numbers_of_list(list).as_deref(), expected);
    }

    #[test]
    fn lists_of_cpus() {
        check("0-3,8", Some(&[0, 1, 2, 3, 8]));
        check("0", Some(&[0]));
        check("", Some(&[]));
        check("3-0", None);
        check("0-4294967295", None);
        check("x", None);
    }
}
