//! One file per format. A format says whether bytes are of its kind, and opens them as
//! the files of a node.

mod blocks;
mod btrfs;
mod disk;
mod disk_table;
mod ext4;
pub(crate) mod folder;
pub mod fuzz;
mod lvm;
mod lvm_text;
mod oci;
mod oci_digest;
mod qcow2;
mod squashfs;
mod squashfs_inode;
mod tar;
mod tar_header;
mod unread;
mod vhd;
mod vhdx;
mod vmdk;
mod volumes;
mod xfs;

use std::path::Path;

use sexton_host::Root;

use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;

pub use disk_table::MasterRecord;

/// Whether the first bytes of something are of a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sniff {
    /// They are.
    Yes,
    /// They are not.
    No,
    /// That many are needed to tell.
    More(usize),
}

/// The files, and what the image is.
pub(crate) type Opened = (Box<dyn Root>, String);

/// A format.
pub(crate) struct Format {
    /// What people call it.
    pub(crate) name: &'static str,
    pub(crate) sniff: fn(&[u8]) -> Sniff,
    pub(crate) open: fn(&Shared, &mut Gaps, usize) -> Result<Opened, ImageError>,
}

/// In the order in which they are asked. A disk comes after the filesystems, because a
/// bare one may hold a boot sector; what cannot be read comes before the disk for the
/// same reason.
const FORMATS: &[&Format] = &[
    &qcow2::FORMAT,
    &vmdk::FORMAT,
    &vhdx::FORMAT,
    &vhd::FORMAT,
    &ext4::FORMAT,
    &xfs::FORMAT,
    &btrfs::FORMAT,
    &squashfs::FORMAT,
    &tar::FORMAT,
    &tar::GZIP,
    &tar::ZSTD,
    &tar::XZ,
    &lvm::FORMAT,
    &unread::FORMAT,
    &disk::FORMAT,
];

/// A disk in a disk in a disk is somebody's joke.
const N_NESTED_MAX: usize = 3;

/// The longest beginning that any format may ask for.
const HEAD_BYTES_MAX: usize = 128 << 10;

/// Finds the format and opens it; `None` when no format says yes.
pub(crate) fn open(
    bytes: &Shared,
    gaps: &mut Gaps,
    depth: usize,
) -> Result<Option<Opened>, ImageError> {
    if depth > N_NESTED_MAX {
        return Err(ImageError::damaged(
            "an image",
            "images within images within images",
        ));
    }
    let mut head = Vec::new();
    for format in FORMATS {
        loop {
            match (format.sniff)(&head) {
                Sniff::No => break,
                Sniff::Yes => return (format.open)(bytes, gaps, depth).map(Some),
                Sniff::More(n) if n <= head.len() || n > HEAD_BYTES_MAX => break,
                Sniff::More(n) => {
                    let mut longer = vec![0; n];
                    let got = bytes
                        .read_at(0, &mut longer)
                        .map_err(|error| ImageError::damaged(format.name, error))?;
                    longer.truncate(got);
                    if longer.len() <= head.len() {
                        break;
                    }
                    head = longer;
                }
            }
        }
    }
    Ok(None)
}

/// Why this is no tree of a system: not even its first folders can be read, or they hold none.
pub(crate) fn no_root(root: &dyn Root, what: String) -> ImageError {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    for folder in ["/", "/etc", "/usr"] {
        if let Err(error) = root.list(Path::new(folder))
            && !matches!(error.kind(), NotFound | NotADirectory)
        {
            return ImageError::Damaged {
                format: "a root filesystem",
                what: format!("{what}: {folder}: {error}"),
            };
        }
    }
    ImageError::NoRoot { what }
}

/// Whether this is the tree of a system and not any folder of files.
pub(crate) fn is_root(root: &dyn Root) -> bool {
    const SIGNS: &[&str] = &[
        "/etc/os-release",
        "/usr/lib/os-release",
        "/etc/systemd/system",
        "/usr/lib/systemd/system",
        "/lib/systemd/system",
    ];
    // A link to a name that is not there counts: the name shows what it is.
    SIGNS
        .iter()
        .any(|sign| root.link_meta(Path::new(sign)).is_ok())
}

/// Bytes at a fixed place, if the head reaches that far.
fn magic(head: &[u8], at: usize, magic: &[u8]) -> Sniff {
    match head.get(at..at + magic.len()) {
        Some(found) if found == magic => Sniff::Yes,
        Some(_) => Sniff::No,
        None => Sniff::More(at + magic.len()),
    }
}
