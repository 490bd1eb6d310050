//! Disks that are kept in blocks, of which those that hold nothing are left out: what qcow2,
//! VMDK, VHD and VHDX have in common.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::Opened;
use crate::bytes::{Bytes, Shared};
use crate::error::ImageError;
use crate::gaps::Gaps;

/// Where a block is.
pub(super) enum Block {
    /// It reads as zeros.
    Nowhere,
    /// In the file, from this byte on.
    At(u64),
    Packed {
        at: u64,
        len: u64,
    },
}

/// A format of such disks.
pub(super) trait Blocks: Send + Sync {
    fn file(&self) -> &Shared;
    fn disk_bytes(&self) -> u64;
    fn block_bytes(&self) -> u64;
    /// Where the block is that holds a byte of the disk.
    fn find(&self, offset: u64) -> io::Result<Block>;
    /// A whole block, unpacked; only of formats that pack any.
    fn unpack(&self, _at: u64, _len: u64) -> io::Result<Arc<Vec<u8>>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Such a disk, as bytes.
pub(super) struct Disk<B>(pub(super) B);

impl<B: Blocks> Disk<B> {
    /// Reads within one block.
    fn read_piece(&self, offset: u64, piece: &mut [u8]) -> io::Result<()> {
        let within = offset % self.0.block_bytes();
        match self.0.find(offset)? {
            Block::Nowhere => piece.fill(0),
            Block::At(at) => {
                let file = self.0.file();
                file.read_exact_at(at.saturating_add(within), piece)?;
            }
            Block::Packed { at, len } => {
                let block = self.0.unpack(at, len)?;
                let from = usize::try_from(within).map_err(io::Error::other)?;
                let part = block.get(from..from + piece.len());
                piece.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
            }
        }
        Ok(())
    }
}

impl<B: Blocks> Bytes for Disk<B> {
    fn len(&self) -> u64 {
        self.0.disk_bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let rest = self.0.block_bytes() - at % self.0.block_bytes();
            let n = (wanted - done).min(usize::try_from(rest).unwrap_or(usize::MAX));
            self.read_piece(at, &mut buffer[done..done + n])?;
            done += n;
        }
        Ok(wanted)
    }
}

/// Opens what is on a disk.
pub(super) fn open<B: Blocks + 'static>(
    name: &'static str,
    disk: io::Result<B>,
    gaps: &mut Gaps,
    depth: usize,
) -> Result<Opened, ImageError> {
    let disk = disk.map_err(|error| ImageError::damaged(name, error))?;
    let disk: Shared = Arc::new(Disk(disk));
    match super::open(&disk, gaps, depth + 1)? {
        Some((root, what)) => Ok((root, format!("{name}, {what}"))),
        None => Err(ImageError::damaged(
            name,
            "nothing inside that sexton knows",
        )),
    }
}

/// What was made last, by its place.
pub(super) type Last<T> = Mutex<Option<(u64, Arc<T>)>>;

/// What was made for `place` before, or made now.
pub(super) fn last<T>(
    slot: &Last<T>,
    place: u64,
    make: impl FnOnce() -> io::Result<T>,
) -> io::Result<Arc<T>> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, made)) = slot.as_ref()
        && *known == place
    {
        return Ok(Arc::clone(made));
    }
    let made = Arc::new(make()?);
    *slot = Some((place, Arc::clone(&made)));
    Ok(made)
}
