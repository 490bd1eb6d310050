//! Whether the filesystem was unmounted. If it was not, changes are in its log that are not
//! in its blocks, and the log is not read.
//!
//! As in the kernel's fs/xfs/xfs_log_recover.c: each sector of the log begins with the number of
//! its round, so that the newest is where that number drops. The last record of a filesystem
//! that was unmounted says so.

use std::io;

use super::Xfs;
use super::layout::word;
use crate::tree::invalid;

const SECTOR_BYTES: u64 = 512;
const MAGIC: u32 = 0xfeed_babe;
const IS_UNMOUNT: u8 = 0x20;

/// The longest record, 256 KiB, with its heads of one sector for each 32 KiB.
const N_SECTORS_MAX: u64 = 512 + 8;

/// What is to be said of the log, if anything.
pub(super) fn gap(filesystem: &Xfs) -> Option<String> {
    const MEND: &str = "mount and unmount a copy, and give that";
    let (block, n_blocks) = filesystem.superblock.log;
    if block == 0 {
        return Some("the XFS log is on another device: changes in it are not read".into());
    }
    let log = filesystem.block_at(block).map(|at| Log {
        filesystem,
        at,
        n_sectors: u64::from(n_blocks) * filesystem.superblock.block_bytes / SECTOR_BYTES,
    });
    match log.and_then(|log| log.is_clean()) {
        Ok(true) => None,
        Ok(false) => Some(format!(
            "the XFS filesystem was not unmounted: changes in its log are not read; {MEND}"
        )),
        Err(error) => Some(format!("the XFS log cannot be read: {error}; {MEND}")),
    }
}

struct Log<'a> {
    filesystem: &'a Xfs,
    at: u64,
    n_sectors: u64,
}

impl Log<'_> {
    fn sector(&self, number: u64) -> io::Result<[u8; 512]> {
        let mut sector = [0; 512];
        let at = self.at.saturating_add(number * SECTOR_BYTES);
        self.filesystem.bytes.read_exact_at(at, &mut sector)?;
        Ok(sector)
    }

    /// The round in which a sector was written; a record's head has its magic before it.
    fn round(&self, number: u64) -> io::Result<u32> {
        let sector = self.sector(number)?;
        match word(&sector, 0)? {
            MAGIC => word(&sector, 4),
            round => Ok(round),
        }
    }

    /// The sector after the newest one.
    fn head(&self) -> io::Result<u64> {
        let last = self.round(self.n_sectors - 1)?;
        if last == self.round(0)? {
            return Ok(self.n_sectors);
        }
        // All before the head are of a newer round than the last.
        let (mut newer, mut older) = (0, self.n_sectors - 1);
        while older - newer > 1 {
            let middle = newer + (older - newer) / 2;
            match self.round(middle)? == last {
                true => older = middle,
                false => newer = middle,
            }
        }
        Ok(older)
    }

    fn is_clean(&self) -> io::Result<bool> {
        if self.n_sectors < 2 {
            return Err(invalid("it has no size"));
        }
        // A log of zeros was never used.
        if self.round(0)? == 0 {
            return Ok(true);
        }
        let head = self.head()?;
        for back in 1..=N_SECTORS_MAX.min(self.n_sectors) {
            let number = (head + self.n_sectors - back) % self.n_sectors;
            let sector = self.sector(number)?;
            if word(&sector, 0)? == MAGIC {
                return self.is_unmount(number, &sector, back);
            }
        }
        Ok(false)
    }

    /// Whether a record holds nothing but the word that all is done, and is the last.
    fn is_unmount(&self, number: u64, record: &[u8], n_sectors: u64) -> io::Result<bool> {
        // Records of version 2 have a head for each 32 KiB of their buffer.
        let n_heads = match word(record, 8)? & 2 {
            0 => 1,
            _ => u64::from(word(record, 320)?).div_ceil(32 << 10).max(1),
        };
        let n_data = u64::from(word(record, 12)?).div_ceil(SECTOR_BYTES);
        let data = self.sector((number + n_heads) % self.n_sectors)?;
        Ok(word(record, 40)? == 1 && data[9] & IS_UNMOUNT != 0 && n_heads + n_data == n_sectors)
    }
}
