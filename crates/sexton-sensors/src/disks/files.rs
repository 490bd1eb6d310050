//! The disks that the open files of a process are on.

use std::collections::BTreeMap;
use std::path::Path;

use sexton_host::Host;
use sexton_model::text::escape;

/// Open files of one process that are looked at.
const MAX_FILES: usize = 64;

/// A mount, as `/proc/PID/mountinfo` has it.
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    /// `254:0`, of the filesystem's block device; `0:22` where it has none.
    number: &'a str,
    is_devices: bool,
}

/// The disks, whole ones, in order. Nothing where it cannot be told.
pub(super) fn disks_of(host: &Host, pid: u32) -> Vec<String> {
    let read = |below: &str| {
        host.read_text(host.proc(&format!("{pid}/{below}")).ok()?)
            .ok()
    };
    let Some(mountinfo) = read("mountinfo") else {
        return Vec::new();
    };
    let mounts = mounts(&mountinfo);
    let folder = host.proc(&format!("{pid}/fdinfo"));
    let files = folder
        .and_then(|folder| host.list(folder))
        .unwrap_or_default();
    let mut disks: Vec<String> = Vec::new();
    for file in files.iter().take(MAX_FILES) {
        let Some(name) = file.name.to_str() else {
            continue;
        };
        let info = read(&format!("fdinfo/{name}"));
        let mount = info.as_deref().and_then(mount_id);
        let disk = match mount.and_then(|id| mounts.get(id)) {
            Some(mount) if mount.is_devices => opened_device(host, pid, name),
            Some(mount) => disk_of(host, mount.number),
            None => None,
        };
        disks.extend(disk.filter(|disk| !disks.contains(disk)));
    }
    disks.sort();
    disks
}

/// `mnt_id` of an fdinfo.
fn mount_id(fdinfo: &str) -> Option<&str> {
    let mut lines = fdinfo.lines();
    lines
        .find_map(|line| line.strip_prefix("mnt_id:"))
        .map(str::trim)
}

fn mounts(mountinfo: &str) -> BTreeMap<&str, Mount<'_>> {
    let parse = |line| {
        let (fields, source): (&str, &str) = str::split_once(line, " - ")?;
        let mut fields = fields.split(' ');
        let (id, _, number) = (fields.next()?, fields.next()?, fields.next()?);
        let is_devices = source.starts_with("devtmpfs ");
        Some((id, Mount { number, is_devices }))
    };
    mountinfo.lines().filter_map(parse).collect()
}

/// The whole disk of a block device: in sysfs a partition is in the folder of its disk.
fn disk_of(host: &Host, number: &str) -> Option<String> {
    if number.starts_with("0:") {
        return None;
    }
    let link = host
        .read_link(host.sys(&format!("dev/block/{number}")).ok()?)
        .ok()?;
    let name = link.file_name()?;
    let folder = link.parent()?.file_name()?;
    let is_whole = folder == "block";
    Some(escape(
        if is_whole { name } else { folder }.as_encoded_bytes(),
    ))
}

/// A block device that is open itself, as `dd of=/dev/sdb` has it.
fn opened_device(host: &Host, pid: u32, file: &str) -> Option<String> {
    let link = host
        .read_link(host.proc(&format!("{pid}/fd/{file}")).ok()?)
        .ok()?;
    let name = link.strip_prefix("/dev").ok()?;
    let folder = host.sys("block").ok()?.join(name);
    let is_disk = host.read(folder.join("stat")).is_ok();
    (is_disk && name != Path::new("")).then(|| escape(name.as_os_str().as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_and_files_name_each_other() {
        let mountinfo = "27 1 254:0 / / rw,relatime - ext4 /dev/root rw\n\
                         24 27 0:6 / /dev rw - devtmpfs devtmpfs rw\nnonsense\n";
        let mounts = mounts(mountinfo);
        assert_eq!(mounts["27"].number, "254:0");
        assert!(mounts["24"].is_devices && !mounts["27"].is_devices);
        assert_eq!(mount_id("pos:\t0\nflags:\t02\nmnt_id:\t27\n"), Some("27"));
        assert_eq!(mounts.len(), 2);
    }
}
