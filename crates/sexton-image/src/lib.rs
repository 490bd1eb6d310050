//! Images that have not booted, opened as the files of a node.
//!
//! Nothing is mounted, nothing of an image is executed, and no byte outside of it is read:
//! every path resolves inside. Formats are told apart by content, never by name.

pub mod bytes;

mod error;
mod formats;
mod gaps;
mod inodes;
mod mounted;
mod spool;
mod tree;
mod xz;

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use sexton_host::{LiveRoot, Root};

use bytes::{FileBytes, Shared};
pub use error::ImageError;
pub use formats::{MasterRecord, fuzz};
use gaps::Gaps;

/// An image, opened.
pub struct Image {
    /// Its files.
    pub root: Box<dyn Root>,
    /// What it is: `disk image (GPT), partition 2, ext4`.
    pub what: String,
    /// Parts of it that cannot be read, and why.
    pub gaps: Vec<String>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("what", &self.what)
            .field("gaps", &self.gaps)
            .finish_non_exhaustive()
    }
}

/// Opens whatever is at `source`. The path `/` is the running system.
pub fn open(source: &Path) -> Result<Image, ImageError> {
    if source == Path::new("/") {
        return Ok(Image {
            root: Box::new(LiveRoot),
            what: "the running system".into(),
            gaps: Vec::new(),
        });
    }
    let unread = |error| ImageError::Read {
        path: source.to_owned(),
        source: error,
    };
    let mut gaps = Gaps::default();
    let sort = fs::metadata(source).map_err(unread)?.file_type();
    // A pipe would keep us waiting for bytes that may never come.
    if sort.is_fifo() || sort.is_socket() || sort.is_char_device() {
        return Err(ImageError::Unknown {
            path: source.to_owned(),
        });
    }
    let (root, what) = if sort.is_dir() {
        formats::folder::open(source, &mut gaps)?
    } else {
        let file = fs::File::open(source).map_err(unread)?;
        let bytes: Shared = Arc::new(FileBytes::new(file).map_err(unread)?);
        match formats::open(&bytes, &mut gaps, 0)? {
            Some(opened) => opened,
            None => {
                return Err(ImageError::Unknown {
                    path: source.to_owned(),
                });
            }
        }
    };
    if !formats::is_root(root.as_ref()) {
        return Err(formats::no_root(root.as_ref(), what));
    }
    Ok(Image {
        root,
        what,
        gaps: gaps.into_texts(),
    })
}
