//! Which filesystems are local and can fill up, from the mount table.

use std::collections::BTreeMap;
use std::path::PathBuf;

use sexton_host::mounts::{Mount, MountTable};
use sexton_host::{Host, HostError};
use sexton_model::text::escape;

use crate::node_mounts;

/// Types whose data is on this node and that can be written to. Images such as squashfs and
/// iso9660 are always full; overlay shows the space of what lies below it.
const LOCAL: [&str; 15] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "jfs", "nilfs2", "vfat",
    "exfat", "ntfs3", "hfsplus", "tmpfs",
];

/// A local filesystem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Local {
    pub(super) point: PathBuf,
    /// Where this process reaches it.
    pub(super) reached_at: PathBuf,
    pub(super) fs_type: String,
    /// The name of its device, as the kernel log has it.
    pub(super) device: Option<String>,
    pub(super) is_read_only: bool,
}

/// The local filesystems that are mounted now, each once, the shortest mount point first.
pub(super) fn locals(host: &Host) -> Result<Vec<Local>, HostError> {
    let whose = node_mounts::whose(host)?;
    let path = whose.join("mountinfo");
    let table = host.read(&path)?;
    let table = MountTable::parse(&table).map_err(|what| HostError::Malformed { path, what })?;
    let chosen = choose(&table);
    let local = |mount: &Mount| Local {
        point: mount.point.clone(),
        reached_at: node_mounts::reached_at(&whose, &mount.point),
        fs_type: mount.fs_type.clone(),
        device: device_name(host, mount),
        // ext4 since 6.15 has a state of its own for after an error.
        is_read_only: mount.has_option("ro") || mount.has_option("emergency_ro"),
    };
    Ok(chosen.into_iter().map(local).collect())
}

/// One mount for each local filesystem: one that shows all of it if possible, and of those
/// the one with the shortest path. What another mount covers cannot be asked.
fn choose(table: &MountTable) -> Vec<&Mount> {
    let mut on_top: BTreeMap<&PathBuf, &Mount> = BTreeMap::new();
    for mount in table.iter() {
        on_top.insert(&mount.point, mount);
    }
    let mut by_device: BTreeMap<(u32, u32), &Mount> = BTreeMap::new();
    for mount in on_top.into_values() {
        if !LOCAL.contains(&mount.fs_type.as_str()) {
            continue;
        }
        let device = (mount.device.major, mount.device.minor);
        let known = by_device.entry(device).or_insert(mount);
        if rank(mount) < rank(known) {
            *known = mount;
        }
    }
    let mut chosen: Vec<&Mount> = by_device.into_values().collect();
    chosen.sort_by_key(|mount| (mount.point.as_os_str().len(), &mount.point));
    chosen
}

fn rank(mount: &Mount) -> (bool, usize) {
    let is_part = mount.root.as_os_str() != "/";
    (is_part, mount.point.as_os_str().len())
}

/// The kernel's name of the device behind a mount: `sda1`, `dm-0`.
fn device_name(host: &Host, mount: &Mount) -> Option<String> {
    let device = mount.device;
    let link = host.sys(&format!("dev/block/{}:{}", device.major, device.minor));
    let target = host.read_link(link.ok()?).ok()?;
    Some(escape(target.file_name()?.as_encoded_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(table: &str, expected: &[&str]) {
        let table = MountTable::parse(table.as_bytes()).expect("a table");
        let chosen = choose(&table).into_iter();
        let points: Vec<String> = chosen.map(|one| one.point.display().to_string()).collect();
        assert_eq!(points, expected);
    }

    #[test]
    fn local_filesystems_are_chosen_once_each() {
        check(
            "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             22 21 8:1 /var/lib /srv rw - ext4 /dev/sda1 rw\n\
             23 21 0:20 / /dev/shm rw - tmpfs tmpfs rw\n\
             24 21 0:21 / /home rw - nfs4 server:/home rw\n\
             25 21 7:3 / /snap/core/1 ro - squashfs /dev/loop3 ro\n\
             26 21 0:22 / /proc rw - proc proc rw\n\
             27 21 0:23 / /var/lib/docker/overlay2/x/merged rw - overlay overlay rw\n",
            &["/", "/dev/shm"],
        );
    }

    #[test]
    fn what_is_covered_is_not_asked_and_all_of_it_goes_before_a_part() {
        check(
            "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             22 21 8:2 / /mnt rw - xfs /dev/sda2 rw\n\
             23 22 0:30 / /mnt rw - nfs4 server:/x rw\n\
             24 21 8:3 /a /b rw - xfs /dev/sda3 rw\n\
             25 21 8:3 / /data/all rw - xfs /dev/sda3 rw\n",
            &["/", "/data/all"],
        );
    }
}
