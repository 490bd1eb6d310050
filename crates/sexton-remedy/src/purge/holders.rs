//! Who has a file open or mapped, from `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use sexton_host::Host;
use sexton_model::census::{Device, PinFile};

/// A file by its device and number.
pub(crate) type FileKey = (Device, u64);

/// More open files than this are not looked through: it is a courtesy, not a duty.
const MOST_FILES: usize = 2_000_000;

/// Where each of some files is held.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// A path below `/proc` that opens it.
    pub(crate) open: HashMap<FileKey, PathBuf>,
    /// Processes that have it mapped.
    pub(crate) mapped_by: HashMap<FileKey, Vec<u32>>,
}

pub(crate) fn key(file: &PinFile) -> FileKey {
    (file.device, file.inode)
}

/// Looks through all processes for those files. What vanishes meanwhile, or is not ours to
/// see, holds nothing that we could use.
pub(crate) fn find(host: &Host, wanted: &HashSet<FileKey>) -> Holders {
    let mut holders = Holders::default();
    if wanted.is_empty() {
        return holders;
    }
    let Ok(proc) = host.proc("") else {
        return holders;
    };
    let mut n_left = MOST_FILES;
    for process in host.list(&proc).into_iter().flatten() {
        let pid = process.name.to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        let folder = proc.join(&process.name);
        note_open(&folder.join("fd"), wanted, &mut n_left, &mut holders);
        note_mapped(host, pid, wanted, &mut holders);
    }
    holders
}

fn note_open(
    folder: &std::path::Path,
    wanted: &HashSet<FileKey>,
    n_left: &mut usize,
    holders: &mut Holders,
) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if *n_left == 0 {
            return;
        }
        *n_left -= 1;
        // The link itself has the process's numbers; what it leads to has the file's.
        let Ok(meta) = fs::metadata(entry.path()) else {
            continue;
        };
        let key = (device_of(meta.dev()), meta.ino());
        if wanted.contains(&key) {
            holders.open.entry(key).or_insert_with(|| entry.path());
        }
    }
}

fn note_mapped(host: &Host, pid: u32, wanted: &HashSet<FileKey>, holders: &mut Holders) {
    let Ok(maps) = host
        .proc(&format!("{pid}/maps"))
        .and_then(|path| host.read(path))
    else {
        return;
    };
    for line in maps.split(|byte| *byte == b'\n') {
        let Some(key) = mapping(line).filter(|key| wanted.contains(key)) else {
            continue;
        };
        let pids = holders.mapped_by.entry(key).or_default();
        if pids.last() != Some(&pid) {
            pids.push(pid);
        }
    }
}

/// The file of a line of `maps`: `7f..-7f.. r--p 00000000 fe:00 1234 /path`.
fn mapping(line: &[u8]) -> Option<FileKey> {
    let text = std::str::from_utf8(line.get(..line.len().min(120))?).unwrap_or_else(|error| {
        // The name may be any bytes; what comes before it is text.
        std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default()
    });
    let mut fields = text.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok().filter(|inode| *inode != 0)?;
    let device = Device {
        major: u32::from_str_radix(major, 16).ok()?,
        minor: u32::from_str_radix(minor, 16).ok()?,
    };
    Some((device, inode))
}

pub(crate) fn device_of(dev: u64) -> Device {
    Device {
        major: rustix::fs::major(dev),
        minor: rustix::fs::minor(dev),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_maps() {
        let key = mapping(b"7f00-7f01 r--s 00000000 fe:00 1234    /tmp/\xff");
        let device = Device {
            major: 254,
            minor: 0,
        };
        assert_eq!(key, Some((device, 1234)));
        assert_eq!(mapping(b"7f00-7f01 rw-p 00000000 00:00 0"), None);
        assert_eq!(mapping(b""), None);
    }
}
