//! qcow2, versions 2 and 3. The disk inside is opened as any other.
//!
//! A backing file is never opened: an image may name any file of this machine there.

use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Format, Opened, magic};
use crate::bytes::{Bytes, Shared};
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
    let damaged = |error: io::Error| ImageError::damaged(NAME, error);
    let disk: Shared = Arc::new(Qcow2::open(Arc::clone(bytes)).map_err(damaged)?);
    match super::open(&disk, gaps, depth + 1)? {
        Some((root, what)) => Ok((root, format!("{NAME}, {what}"))),
        None => Err(ImageError::damaged(
            NAME,
            "nothing inside that sexton knows",
        )),
    }
}

struct Qcow2 {
    file: Shared,
    len: u64,
    cluster_bits: u32,
    zstd: bool,
    l1: Vec<u64>,
    /// The table and the unpacked cluster that were used last, by their place.
    tables: Mutex<Last<Vec<u64>>>,
    unpacked: Mutex<Last<Vec<u8>>>,
}

type Last<T> = Option<(u64, Arc<T>)>;

/// Where a cluster is.
enum Cluster {
    Nowhere,
    At(u64),
    Packed { at: u64, len: u64 },
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

    fn find(&self, offset: u64) -> io::Result<Cluster> {
        let l2_bits = self.cluster_bits - 3;
        let index = offset >> self.cluster_bits;
        let l1 = usize::try_from(index >> l2_bits)
            .ok()
            .and_then(|n| self.l1.get(n));
        let table_at = l1.copied().unwrap_or(0) & 0x00ff_ffff_ffff_fe00;
        if table_at == 0 {
            return Ok(Cluster::Nowhere);
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
            return Ok(Cluster::Packed { at, len });
        }
        let at = entry & 0x00ff_ffff_ffff_fe00;
        // Bit 0 says that it reads as zeros, whatever is there.
        Ok(if at == 0 || entry & 1 == 1 {
            Cluster::Nowhere
        } else {
            Cluster::At(at)
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

    /// Reads within one cluster.
    fn read_piece(&self, offset: u64, piece: &mut [u8]) -> io::Result<()> {
        let within = offset % self.cluster_bytes();
        match self.find(offset)? {
            Cluster::Nowhere => piece.fill(0),
            Cluster::At(at) => self.file.read_exact_at(at.saturating_add(within), piece)?,
            Cluster::Packed { at, len } => {
                let cluster = self.unpack(at, len)?;
                let from = usize::try_from(within).map_err(io::Error::other)?;
                piece.copy_from_slice(&cluster[from..from + piece.len()]);
            }
        }
        Ok(())
    }
}

impl Bytes for Qcow2 {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let mut done = 0;
        while done < wanted {
            let at = offset + done as u64;
            let rest = self.cluster_bytes() - at % self.cluster_bytes();
            let n = (wanted - done).min(usize::try_from(rest).unwrap_or(usize::MAX));
            self.read_piece(at, &mut buffer[done..done + n])?;
            done += n;
        }
        Ok(wanted)
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

/// What was made for `place` before, or made now.
fn last<T>(
    slot: &Mutex<Last<T>>,
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
