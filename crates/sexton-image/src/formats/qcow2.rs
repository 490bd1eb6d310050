//! qcow2, versions 2 and 3. The disk inside is opened as any other.
//!
//! A backing file is never opened: an image may name any file of this machine there.

use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use super::blocks::{self, Block, Blocks, Last, last};
use super::{Format, Opened, magic};
use crate::bytes::Shared;
use crate::error::ImageError;
use crate::gaps::Gaps;
use crate::tree::invalid;

const NAME: &str = "qcow2";

pub(super) static FORMAT: Format = Format {
    name: NAME,
    sniff: |head| magic(head, 0, b"QFI\xfb"),
    open,
};

/// QEMU's own limits: clusters of 512 bytes to 2 MiB, an L1 table of 32 MiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;
const L1_BYTES_MAX: u64 = 32 << 20;

/// Features that change how the image is read: a data file beside it (bit 2) and extended
/// L2 entries (bit 4). Dirty and corrupt (0 and 1) do not, and bit 3 names the compression.
const INCOMPATIBLE: u64 = !0b1011;

fn open(bytes: &Shared, gaps: &mut Gaps, depth: usize) -> Result<Opened, ImageError> {
    blocks::open(NAME, Qcow2::open(Arc::clone(bytes)), gaps, depth)
}

struct Qcow2 {
    file: Shared,
    len: u64,
    cluster_bits: u32,
    zstd: bool,
    l1: Vec<u64>,
    /// The table and the unpacked cluster that were used last, by their place.
    tables: Last<Vec<u64>>,
    unpacked: Last<Vec<u8>>,
}

impl Qcow2 {
    fn open(file: Shared) -> io::Result<Self> {
        let mut header = [0; 112];
        let n = file.read_at(0, &mut header)?;
        if n < 72 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("four"));
        let long = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().expect("eight"));
        let version = word(4);
        if !(2..=3).contains(&version) {
            return Err(invalid("a version that is not 2 or 3"));
        }
        if long(8) != 0 {
            return Err(invalid(
                "it has a backing file; join them with qemu-img convert and give the result",
            ));
        }
        if word(32) != 0 {
            return Err(invalid("it is encrypted"));
        }
        let features = if version >= 3 { long(72) } else { 0 };
        if features & INCOMPATIBLE != 0 {
            return Err(invalid(
                "it has a data file beside it or extended L2 entries",
            ));
        }
        let cluster_bits = word(20);
        let l1_bytes = u64::from(word(36)) * 8;
        if !CLUSTER_BITS.contains(&cluster_bits) || l1_bytes > L1_BYTES_MAX {
            return Err(invalid("impossible sizes in the header"));
        }
        let zstd = features & 0b1000 != 0 && word(100) > 104 && header[104] == 1;
        Ok(Self {
            l1: table(&file, long(40), l1_bytes)?,
            file,
            len: long(24),
            cluster_bits,
            zstd,
            tables: Mutex::new(None),
            unpacked: Mutex::new(None),
        })
    }

    fn cluster_bytes(&self) -> u64 {
        1 << self.cluster_bits
    }
}

impl Blocks for Qcow2 {
    fn file(&self) -> &Shared {
        &self.file
    }

    fn disk_bytes(&self) -> u64 {
        self.len
    }

    fn block_bytes(&self) -> u64 {
        self.cluster_bytes()
    }

    fn find(&self, offset: u64) -> io::Result<Block> {
        let l2_bits = self.cluster_bits - 3;
        let index = offset >> self.cluster_bits;
        let l1 = usize::try_from(index >> l2_bits)
            .ok()
            .and_then(|n| self.l1.get(n));
        let table_at = l1.copied().unwrap_or(0) & 0x00ff_ffff_ffff_fe00;
        if table_at == 0 {
            return Ok(Block::Nowhere);
        }
        let tables = last(&self.tables, table_at, || {
            table(&self.file, table_at, self.cluster_bytes())
        })?;
        let entry = tables[(index & ((1 << l2_bits) - 1)) as usize];
        if entry >> 62 & 1 == 1 {
            let at_bits = 62 - (self.cluster_bits - 8);
            let at = entry & ((1 << at_bits) - 1);
            let n_sectors = (entry & ((1 << 62) - 1)) >> at_bits;
            let len = (n_sectors + 1) * 512 - at % 512;
            return Ok(Block::Packed { at, len });
        }
        let at = entry & 0x00ff_ffff_ffff_fe00;
        // Bit 0 says that it reads as zeros, whatever is there.
        Ok(if at == 0 || entry & 1 == 1 {
            Block::Nowhere
        } else {
            Block::At(at)
        })
    }

    fn unpack(&self, at: u64, len: u64) -> io::Result<Arc<Vec<u8>>> {
        last(&self.unpacked, at, || {
            // At most as long as a cluster, by the bits of the entry, and a sector.
            let mut packed = vec![0; usize::try_from(len).map_err(io::Error::other)?];
            let n = self.file.read_at(at, &mut packed)?;
            let packed = &packed[..n];
            let mut cluster = Vec::new();
            if self.zstd {
                let decoder = zstd::stream::Decoder::with_buffer(packed)?.single_frame();
                decoder
                    .take(self.cluster_bytes())
                    .read_to_end(&mut cluster)?;
            } else {
                let decoder = flate2::bufread::DeflateDecoder::new(packed);
                decoder
                    .take(self.cluster_bytes())
                    .read_to_end(&mut cluster)?;
            }
            if cluster.len() as u64 != self.cluster_bytes() {
                return Err(invalid("a compressed cluster that is too short"));
            }
            Ok(cluster)
        })
    }
}

/// A table of big-endian words.
fn table(file: &Shared, at: u64, len: u64) -> io::Result<Vec<u64>> {
    if at.saturating_add(len) > file.len() {
        return Err(invalid("a table beyond the end of the file"));
    }
    let mut raw = vec![0; usize::try_from(len).map_err(io::Error::other)?];
    file.read_exact_at(at, &mut raw)?;
    let words = raw.chunks_exact(8);
    Ok(words
        .map(|word| u64::from_be_bytes(word.try_into().expect("eight")))
        .collect())
}
