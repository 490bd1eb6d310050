//! Takes events out of a ring buffer that a BPF program fills.

use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapCore, RingBuffer, RingBufferBuilder};

use crate::LoadError;
use crate::loaded::{Program, heard};

/// Events that are taken out of the ring at once: bounds the memory of a drain.
const BATCH: usize = 256;

/// A type whose values are plain integers, so that any bytes are a valid one.
///
/// # Safety
/// Every bit pattern must be valid.
pub(crate) unsafe trait Plain: Copy {}

/// Reads one off the front of `bytes`; `None` when they are too few.
pub(crate) fn split<T: Plain>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (front, rest) = bytes.split_at_checked(size_of::<T>())?;
    // SAFETY: `front` holds exactly one, any bytes are valid for a plain type, and the
    // read is unaligned on purpose.
    Some((unsafe { front.as_ptr().cast::<T>().read_unaligned() }, rest))
}

/// The bytes of a string that a zero may end.
pub(crate) fn until_zero(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|&b| b == 0).next().unwrap_or(bytes).to_vec()
}

/// The reading end of a ring buffer.
pub(crate) struct Ring {
    ring: RingBuffer<'static>,
    taken: Arc<Mutex<Batch>>,
}

/// Events, one after the other, and where each ends.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Ring {
    /// Reads from `map`.
    pub(crate) fn new(map: &dyn MapCore) -> libbpf_rs::Result<Self> {
        let taken = Arc::new(Mutex::new(Batch::default()));
        let into = Arc::clone(&taken);
        let mut builder = RingBufferBuilder::new();
        builder.add(map, move |bytes| {
            let mut batch = into.lock().unwrap_or_else(PoisonError::into_inner);
            batch.bytes.extend_from_slice(bytes);
            let end = batch.bytes.len();
            batch.ends.push(end);
            0
        })?;
        Ok(Self {
            ring: builder.build()?,
            taken,
        })
    }

    /// Reads from a map of this program.
    pub(crate) fn of(program: Program, map: &dyn MapCore) -> Result<Self, LoadError> {
        Self::new(map).map_err(|source| LoadError::of(program, source, &heard()))
    }

    /// Hands over what is in the ring as what `read` makes of it; returns of how many it
    /// could make nothing.
    pub(crate) fn drain_as<E>(
        &mut self,
        limit: usize,
        read: fn(&[u8]) -> Option<E>,
        mut take: impl FnMut(E),
    ) -> u64 {
        let mut malformed = 0;
        self.drain(limit, |bytes| match read(bytes) {
            Some(event) => take(event),
            None => malformed += 1,
        });
        malformed
    }

    /// Hands over what is in the ring, oldest first, but not many more than `limit`: who
    /// fills it may be faster than we are.
    pub(crate) fn drain(&mut self, limit: usize, mut take: impl FnMut(&[u8])) {
        let mut n = 0;
        while n < limit && self.ring.consume_raw_n(BATCH) > 0 {
            let mut batch = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let mut start = 0;
            for &end in &batch.ends {
                take(&batch.bytes[start..end]);
                start = end;
            }
            n += batch.ends.len();
            batch.bytes.clear();
            batch.ends.clear();
        }
    }
}
