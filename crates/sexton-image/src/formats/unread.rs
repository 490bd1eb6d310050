//! What is known by its first bytes and cannot be read: so that an error says what it is.

use super::{Format, Opened, Sniff, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;

/// Its name, where its magic is, and the magic.
type Known = (&'static str, usize, &'static [u8], &'static str);

pub(super) const MOUNT: &str = "mount it read-only and give the folder";
const CONVERT: &str = "convert it with qemu-img convert -O qcow2, and give that";

const KNOWN: &[Known] = &[
    (
        "a LUKS container",
        0,
        b"LUKS\xba\xbe",
        "open it with cryptsetup and give the device",
    ),
    ("a VMDK disk", 0, b"# Disk DescriptorFile", CONVERT),
    ("a VDI disk", 64, b"\x7f\x10\xda\xbe", CONVERT),
    ("a QED disk", 0, b"QED\0", CONVERT),
    ("a Parallels disk", 0, b"WithoutFreeSpace", CONVERT),
    ("a Parallels disk", 0, b"WithouFreSpacExt", CONVERT),
    (
        "a FAT filesystem",
        54,
        b"FAT1",
        "give the partition that holds the root",
    ),
    (
        "a FAT filesystem",
        82,
        b"FAT32",
        "give the partition that holds the root",
    ),
    ("an EROFS filesystem", 1024, b"\xe2\xe1\xf5\xe0", MOUNT),
    ("an F2FS filesystem", 1024, b"\x10\x20\xf5\xf2", MOUNT),
    (
        "an ISO 9660 filesystem",
        32769,
        b"CD001",
        "give the squashfs or disk image inside",
    ),
    ("a ZFS pool", 16384, b"\x0c\xb1\xba\0", MOUNT),
];

pub(super) static FORMAT: Format = Format {
    name: "an unread format",
    sniff,
    open,
};

fn find(head: &[u8]) -> Option<&'static Known> {
    KNOWN
        .iter()
        .find(|(_, at, bytes, _)| magic(head, *at, bytes) == Sniff::Yes)
}

fn sniff(head: &[u8]) -> Sniff {
    let longest = KNOWN.iter().map(|(_, at, bytes, _)| at + bytes.len()).max();
    match find(head) {
        Some(_) => Sniff::Yes,
        None => match longest {
            Some(n) if head.len() < n => Sniff::More(n),
            _ => Sniff::No,
        },
    }
}

fn open(bytes: &Shared, _gaps: &mut Gaps, _depth: usize) -> Result<Opened, ImageError> {
    let mut head = vec![0; 66 << 10];
    let n = bytes
        .read_at(0, &mut head)
        .map_err(|error| ImageError::damaged(FORMAT.name, error))?;
    let (what, remedy) = find(&head[..n]).map_or(("something", MOUNT), |(what, _, _, remedy)| {
        (*what, *remedy)
    });
    Err(ImageError::Unread {
        what: what.into(),
        remedy,
    })
}
