use std::io;
use std::path::PathBuf;

/// Why something could not be opened as an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// It cannot be read at all.
    #[error("cannot read {}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No format knows it.
    #[error(
        "{} is no image that sexton knows: give a root folder, a disk image (raw, qcow2, VMDK, VHD \
         or VHDX), a filesystem (ext4, XFS, Btrfs or squashfs), an OCI layout, or a tar", path.display()
    )]
    Unknown {
        /// What was looked at.
        path: PathBuf,
    },
    /// It is known, and cannot be read by sexton.
    #[error("this is {what}, which sexton cannot read: {remedy}")]
    Unread {
        /// What it is: `a ZFS pool`.
        what: String,
        /// What to do instead.
        remedy: &'static str,
    },
    /// It says it is of a format and is not, or is damaged too early to be of use.
    #[error("cannot open this as {format}: {what}")]
    Damaged {
        /// The format.
        format: &'static str,
        /// What is wrong.
        what: String,
    },
    /// It opens, and holds no root filesystem.
    #[error(
        "{what} holds no root filesystem: neither /etc/os-release nor a folder of systemd units"
    )]
    NoRoot {
        /// What was opened.
        what: String,
    },
}

impl ImageError {
    pub(crate) fn damaged(format: &'static str, what: impl ToString) -> Self {
        Self::Damaged {
            format,
            what: what.to_string(),
        }
    }
}
