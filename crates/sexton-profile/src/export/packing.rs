//! gzip on a thread of its own: who reads samples does not wait for who packs them.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use flate2::Compression;
use flate2::write::GzEncoder;

/// What is packed at once. The packer clears all its room for every piece it is given, and
/// a single sample is a small one.
const PIECE_BYTES: usize = 1 << 18;

/// How many pieces may wait to be packed.
const N_WAITING: usize = 2;

/// Packs what is written to it.
pub(super) struct Packing<W> {
    piece: Vec<u8>,
    full: SyncSender<Vec<u8>>,
    packed: Receiver<Vec<u8>>,
    packer: JoinHandle<io::Result<W>>,
}

impl<W: Write + Send + 'static> Packing<W> {
    /// Packs into `out`.
    pub(super) fn new(out: W) -> io::Result<Self> {
        let (full, pieces) = sync_channel(N_WAITING);
        let (give_back, packed) = channel();
        let packer = thread::Builder::new()
            .name("pack".into())
            .spawn(move || pack(out, &pieces, &give_back))?;
        Ok(Self {
            piece: Vec::with_capacity(PIECE_BYTES),
            full,
            packed,
            packer,
        })
    }

    /// Takes these bytes. Says `false` when no more are wanted: then `finish` knows why.
    #[must_use]
    pub(super) fn write(&mut self, bytes: &[u8]) -> bool {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() < PIECE_BYTES {
            return true;
        }
        let empty = self.packed.try_recv().unwrap_or_default();
        let piece = std::mem::replace(&mut self.piece, empty);
        self.full.send(piece).is_ok()
    }

    /// Packs what is left.
    pub(super) fn finish(self) -> io::Result<W> {
        // If it is not wanted, the packer has failed, and says so.
        let _ = self.full.send(self.piece);
        drop(self.full);
        self.packer
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn pack<W: Write>(
    out: W,
    pieces: &Receiver<Vec<u8>>,
    give_back: &Sender<Vec<u8>>,
) -> io::Result<W> {
    let mut gzip = GzEncoder::new(out, Compression::fast());
    for mut piece in pieces {
        gzip.write_all(&piece)?;
        piece.clear();
        // The last ones are not wanted back.
        let _ = give_back.send(piece);
    }
    gzip.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn what_was_written_comes_out() {
        let mut packing = Packing::new(Vec::new()).expect("a thread");
        let mut written = Vec::new();
        for n in 0..500_000_u32 {
            let bytes = n.to_le_bytes();
            assert!(packing.write(&bytes));
            written.extend_from_slice(&bytes);
        }
        let packed = packing.finish().expect("memory takes all");
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed[..])
            .read_to_end(&mut unpacked)
            .expect("it is gzip");
        assert!(unpacked == written);
    }

    /// A disk with little room.
    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told() {
        let mut packing = Packing::new(Full).expect("a thread");
        let noise: Vec<u8> = (0..PIECE_BYTES as u64)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0])
            .collect();
        while packing.write(&noise) {}
        let failed = packing.finish().err().map(|error| error.kind());
        assert_eq!(failed, Some(io::ErrorKind::StorageFull));
    }
}
