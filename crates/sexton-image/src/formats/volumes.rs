//! The filesystems of one image: which is the root, and what is mounted where below it, by the
//! root's `/etc/fstab` and by the types of GPT partitions.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use sexton_host::Root;
use sexton_signatures::units::grammar::{self, Mount};

use super::{N_NESTED_MAX, Opened, btrfs, is_root, no_root};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::mounted::Mounted;

/// A filesystem that can be read.
pub(super) struct Volume {
    /// `partition 2`, `logical volume vg/root`.
    title: String,
    /// What it is: `ext4`.
    what: String,
    root: Box<dyn Root>,
    /// What it is read from.
    bytes: Shared,
    /// By what a table of mounts may name it: `UUID=…`, `/dev/mapper/vg-root`.
    ids: Vec<String>,
    /// Where it belongs by the type of its partition.
    by_type: Option<&'static str>,
}

/// What came of opening one.
pub(super) enum Tried {
    Volume(Box<Volume>),
    /// Nothing that could be mounted below the root and hold units: swap, an ESP.
    Nothing,
    Unread(String),
}

impl Tried {
    pub(super) fn into_volume(self, unread: &mut Vec<String>) -> Option<Volume> {
        match self {
            Self::Volume(volume) => Some(*volume),
            Self::Nothing => None,
            Self::Unread(why) => {
                unread.push(why);
                None
            }
        }
    }
}

impl Volume {
    pub(super) fn open(
        title: String,
        bytes: Shared,
        mut ids: Vec<String>,
        gaps: &mut Gaps,
    ) -> Tried {
        if is_passive(&bytes) {
            return Tried::Nothing;
        }
        ids.extend(names(&bytes));
        // No boot looks for a disk in a partition, and a thousand of them that are all the same
        // would keep us busy for ever.
        match super::open(&bytes, gaps, N_NESTED_MAX) {
            Ok(Some((root, what))) => Tried::Volume(Box::new(Self {
                title,
                what,
                root,
                bytes: Arc::clone(&bytes),
                ids,
                by_type: None,
            })),
            Ok(None) => Tried::Nothing,
            Err(error) => Tried::Unread(format!("{title}: {error}")),
        }
    }

    pub(super) fn of_type(mut self, by_type: Option<&'static str>) -> Self {
        self.by_type = by_type;
        self
    }

    fn is_named(&self, what: &str) -> bool {
        // The digits of a UUID may be written in either case, labels may not.
        let is_uuid = what.contains("UUID=") || what.contains("/by-uuid/");
        self.ids
            .iter()
            .any(|id| id == what || is_uuid && id.eq_ignore_ascii_case(what))
    }
}

/// FAT, which holds boot loaders, and swap.
fn is_passive(bytes: &Shared) -> bool {
    let is_there = |at: u64, magic: &[u8]| {
        let mut found = vec![0; magic.len()];
        bytes.read_exact_at(at, &mut found).is_ok() && found == magic
    };
    is_there(54, b"FAT1") || is_there(82, b"FAT32") || is_there(4086, b"SWAPSPACE2")
}

/// What is in the superblock of a filesystem of which both are: where its UUID is, and its label.
type Names = (u64, &'static [u8], u64, u64, usize);

/// From the layouts of ext4, XFS and Btrfs: the place of the magic, the magic, the UUID, the
/// label and its length.
const NAMES: &[Names] = &[
    (1080, b"\x53\xef", 1024 + 0x68, 1024 + 0x78, 16),
    (0, b"XFSB", 32, 108, 12),
    (65600, b"_BHRfS_M", 65536 + 0x20, 65536 + 0x12b, 256),
];

/// How a filesystem is called in a table of mounts.
pub(super) fn names(bytes: &Shared) -> Vec<String> {
    for &(at, magic, uuid_at, label_at, label_len) in NAMES {
        let mut found = vec![0; magic.len()];
        let mut uuid = [0; 16];
        let mut label = vec![0; label_len];
        let is_read = bytes.read_exact_at(at, &mut found).is_ok()
            && bytes.read_exact_at(uuid_at, &mut uuid).is_ok()
            && bytes.read_exact_at(label_at, &mut label).is_ok();
        if !is_read || found != magic {
            continue;
        }
        let label = label.split(|&b| b == 0).next().unwrap_or_default();
        let uuid = hyphened(uuid.map(|byte| format!("{byte:02x}")).concat());
        let mut names = tagged("UUID", "uuid", &uuid);
        if !label.is_empty() {
            names.extend(tagged("LABEL", "label", &String::from_utf8_lossy(label)));
        }
        return names;
    }
    Vec::new()
}

/// `UUID=x`, and the same as a link of udev's.
pub(super) fn tagged(tag: &str, folder: &str, value: &str) -> Vec<String> {
    vec![
        format!("{tag}={value}"),
        format!("/dev/disk/by-{folder}/{value}"),
    ]
}

/// 32 digits as a UUID is written.
pub(super) fn hyphened(digits: String) -> String {
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|part| &digits[part]);
    parts.join("-")
}

/// A tree that is only what belongs below `/usr`.
fn is_usr(root: &dyn Root) -> bool {
    let is_there = |path: &str| root.link_meta(Path::new(path)).is_ok();
    !is_there("/usr") && !is_there("/etc")
}

/// The tree of a system, and not only what belongs below `/usr`.
pub(super) fn is_system(root: &dyn Root) -> bool {
    is_root(root) && !is_usr(root)
}

/// Makes one root of all: the first that holds a system, with the others where they belong.
pub(super) fn join(
    name: &'static str,
    mut volumes: Vec<Volume>,
    mut unread: Vec<String>,
    gaps: &mut Gaps,
) -> Result<Opened, ImageError> {
    let is_system = |volume: &Volume| is_system(volume.root.as_ref());
    let typed = |volume: &Volume| volume.by_type == Some("/") && is_system(volume);
    let chosen = volumes
        .iter()
        .position(typed)
        .or_else(|| volumes.iter().position(is_system));
    let Some(chosen) = chosen else {
        return Err(none(name, volumes, unread));
    };
    let root = volumes.remove(chosen);
    let what = format!("{name}, {}, {}", root.title, root.what);
    let table = root.root.read(Path::new("/etc/fstab"), 1 << 20);
    let table = String::from_utf8_lossy(&table.unwrap_or_default()).into_owned();
    let mut mounted = Mounted::new(root.root);
    let mounts = grammar::fstab(&table);
    let mut taken = HashSet::new();
    for mount in mounts.iter().filter(|mount| is_disk(mount)) {
        let place = Path::new(&mount.place);
        let Some(number) = volumes.iter().position(|v| v.is_named(&mount.what)) else {
            continue;
        };
        if mount.sort != "btrfs" {
            mounted.mount(place, volumes.remove(number).root);
            continue;
        }
        // Several of its subvolumes may be mounted.
        taken.insert(volumes[number].title.clone());
        match btrfs::mounted(&volumes[number].bytes, &mount.options) {
            Ok(root) => mounted.mount(place, root),
            Err(why) => gaps.add(format!("{}: {why} (/etc/fstab)", mount.place)),
        }
    }
    volumes.retain(|volume| !taken.contains(&volume.title));
    // As systemd-gpt-auto-generator does: only where the table says nothing and nothing is.
    for number in (0..volumes.len()).rev() {
        let Some(place) = volumes[number].by_type.filter(|place| *place != "/") else {
            continue;
        };
        let is_said = mounts.iter().any(|mount| mount.place == place);
        if !is_said && is_empty(&mounted, place) {
            mounted.mount(Path::new(place), volumes.remove(number).root);
        }
    }
    let others = volumes.into_iter().map(|volume| {
        let (title, what) = (volume.title, volume.what);
        format!("{title} ({what}) is mounted nowhere by /etc/fstab or its type")
    });
    unread.extend(others);
    unread.into_iter().for_each(|text| gaps.add(text));
    Ok((mounted.into_root(), what))
}

fn is_disk(mount: &Mount) -> bool {
    mount.place.starts_with('/') && mount.place != "/" && mount.sort != "swap"
}

fn is_empty(mounted: &Mounted, place: &str) -> bool {
    let entries = mounted.list(Path::new(place));
    entries.is_ok_and(|entries| entries.iter().all(|entry| entry.name == "lost+found"))
}

fn none(name: &'static str, volumes: Vec<Volume>, mut unread: Vec<String>) -> ImageError {
    for volume in volumes {
        let root = volume.root.as_ref();
        unread.push(match is_root(root) {
            true => format!("{} holds only what belongs below /usr", volume.title),
            false => format!("{}: {}", volume.title, no_root(root, volume.what)),
        });
    }
    if unread.is_empty() {
        return ImageError::NoRoot {
            what: format!("a {name}"),
        };
    }
    let listed = unread.join("; ");
    ImageError::Damaged {
        format: name,
        what: format!("no partition with a root filesystem can be read; {listed}"),
    }
}

/// Devices by which a partition of the first disk is named, which is the only one here.
pub(super) fn device_names(number: u32) -> Vec<String> {
    let plain = ["sda", "vda", "xvda", "hda"].map(|disk| format!("/dev/{disk}{number}"));
    let with_p = ["nvme0n1", "mmcblk0"].map(|disk| format!("/dev/{disk}p{number}"));
    plain.into_iter().chain(with_p).collect()
}
