//! The limits of the whole node.

use std::path::Path;

use sexton_host::cgroup::{CgroupStat, MemoryHierarchy};
use sexton_host::{Host, HostError};
use sexton_model::census::Hierarchy;
use sexton_model::subject::{Subject, SubjectKind};

use super::Usage;

/// A limit and how its use is read; `None` where this kernel does not have it.
pub(super) struct NodeLimit {
    pub(super) name: &'static str,
    pub(super) read: fn(&Host) -> Result<Option<Usage>, HostError>,
}

impl NodeLimit {
    pub(super) fn subject(&self) -> Subject {
        Subject::new(SubjectKind::Limit, self.name)
    }
}

pub(super) static LIMITS: &[NodeLimit] = &[
    NodeLimit {
        name: "fs.file-max",
        read: files,
    },
    NodeLimit {
        name: "kernel.threads-max",
        read: |host| tasks(host, "sys/kernel/threads-max"),
    },
    NodeLimit {
        name: "kernel.pid_max",
        read: |host| tasks(host, "sys/kernel/pid_max"),
    },
    NodeLimit {
        name: "net.netfilter.nf_conntrack_max",
        read: connections,
    },
    NodeLimit {
        name: "net.ipv4.neigh.default.gc_thresh3",
        read: |host| neighbours(host, "arp_cache", "ipv4"),
    },
    NodeLimit {
        name: "net.ipv6.neigh.default.gc_thresh3",
        read: |host| neighbours(host, "ndisc_cache", "ipv6"),
    },
    NodeLimit {
        name: "memory cgroup ids",
        read: memory_cgroup_ids,
    },
];

/// `MEM_CGROUP_ID_MAX` in mm/memcontrol.c: ids have 16 bits, and 0 is none.
const MEMORY_CGROUP_IDS: u64 = 65_535;

fn files(host: &Host) -> Result<Option<Usage>, HostError> {
    let Some(text) = text(host, "sys/fs/file-nr")? else {
        return Ok(None);
    };
    let found = file_nr(&text);
    found.map(Some).ok_or_else(|| malformed("file-nr", &text))
}

/// Allocated handles, those of them that are free, and the limit.
pub(super) fn file_nr(text: &str) -> Option<Usage> {
    let fields: Vec<u64> = numbers(text).collect();
    let [allocated, free, most] = fields[..] else {
        return None;
    };
    Some(Usage {
        used: allocated.saturating_sub(free),
        most,
        hits: None,
    })
}

/// Every thread has a PID of its own.
fn tasks(host: &Host, setting: &str) -> Result<Option<Usage>, HostError> {
    let (Some(loadavg), Some(most)) = (text(host, "loadavg")?, number(host, setting)?) else {
        return Ok(None);
    };
    let tasks = loadavg.split_ascii_whitespace().nth(3);
    let used = tasks.and_then(|field| field.split_once('/')?.1.parse().ok());
    let used = used.ok_or_else(|| malformed("loadavg", &loadavg))?;
    Ok(Some(Usage {
        used,
        most,
        hits: None,
    }))
}

/// Hits are connections that were refused or thrown out for others. `insert_failed` is not one
/// of them: two packets of a new connection that race count there on any node.
fn connections(host: &Host) -> Result<Option<Usage>, HostError> {
    let folder = "sys/net/netfilter/nf_conntrack";
    let used = number(host, &format!("{folder}_count"))?;
    let most = number(host, &format!("{folder}_max"))?;
    let stat = text(host, "net/stat/nf_conntrack")?;
    let stat = stat.and_then(|stat| table(&stat, "entries", &["drop", "early_drop"]));
    // A limit of 0 is none.
    let (Some(used), Some(most @ 1..)) = (used, most) else {
        return Ok(None);
    };
    Ok(Some(Usage {
        used,
        most,
        hits: stat.map(|(_, hits)| hits),
    }))
}

fn neighbours(host: &Host, cache: &str, family: &str) -> Result<Option<Usage>, HostError> {
    let setting = format!("sys/net/{family}/neigh/default/gc_thresh3");
    let stat = text(host, &format!("net/stat/{cache}"))?;
    let (Some(stat), Some(most)) = (stat, number(host, &setting)?) else {
        return Ok(None);
    };
    let (used, hits) =
        table(&stat, "entries", &["table_fulls"]).ok_or_else(|| malformed(cache, &stat))?;
    Ok(Some(Usage {
        used,
        most,
        hits: Some(hits),
    }))
}

/// Only live ones count: since Linux 4.7 a memory cgroup gives its id back when it is removed,
/// unless pages of it are in swap.
fn memory_cgroup_ids(host: &Host) -> Result<Option<Usage>, HostError> {
    let memory = MemoryHierarchy::find(host)?;
    let Some(memory) = memory.filter(|memory| memory.hierarchy == Hierarchy::V2) else {
        return Ok(None);
    };
    let (Some(mount), None) = (&memory.mount, &memory.narrowed_by) else {
        return Ok(None);
    };
    let top = CgroupStat::read(host, mount)?;
    Ok(top.n_memory.map(|used| Usage {
        used,
        most: MEMORY_CGROUP_IDS,
        hits: None,
    }))
}

/// Of a table in `/proc/net/stat`, which has a row for each core in hexadecimal: a column that
/// is the same in all rows, and the sum of columns that are not. None where a column is not
/// there.
pub(crate) fn table(text: &str, shared: &str, summed: &[&str]) -> Option<(u64, u64)> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    let column = |name: &str| names.iter().position(|known| *known == name);
    let shared = column(shared)?;
    let summed: Option<Vec<usize>> = summed.iter().map(|name| column(name)).collect();
    let summed = summed?;
    let (mut first, mut sum) = (None, 0_u64);
    for line in lines {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let at = |column: usize| u64::from_str_radix(fields.get(column)?, 16).ok();
        first = first.or(at(shared));
        for column in &summed {
            sum = sum.saturating_add(at(*column)?);
        }
    }
    Some((first?, sum))
}

fn numbers(text: &str) -> impl Iterator<Item = u64> {
    let fields = text.split_ascii_whitespace();
    fields.filter_map(|field| field.parse().ok())
}

/// A file of procfs; `None` where there is none.
pub(super) fn text(host: &Host, below: &str) -> Result<Option<String>, HostError> {
    match host.read_text(host.proc(below)?) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

pub(super) fn number(host: &Host, below: &str) -> Result<Option<u64>, HostError> {
    let Some(text) = text(host, below)? else {
        return Ok(None);
    };
    let number = text.trim().parse();
    number.map(Some).map_err(|_| malformed(below, &text))
}

fn malformed(file: &str, text: &str) -> HostError {
    HostError::Malformed {
        path: Path::new("/proc").join(file),
        what: format!("it says {text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_cores_are_added_up() {
        let text = "entries  allocs table_fulls\n000000ff 00000001 00000002\n\
                    000000ff 00000003 0000000a\n";
        assert_eq!(table(text, "entries", &["table_fulls"]), Some((255, 12)));
        assert_eq!(table(text, "entries", &["drop"]), None);
        assert_eq!(table("entries\nzz\n", "entries", &[]), None);
        assert_eq!(table("", "entries", &[]), None);
    }

    #[test]
    fn free_handles_are_not_used() {
        let usage = file_nr("1456\t56\t9223372036854775807\n").expect("three numbers");
        assert_eq!((usage.used, usage.most), (1400, i64::MAX as u64));
        assert_eq!(file_nr("1456 0"), None);
    }
}
