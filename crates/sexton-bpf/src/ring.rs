//! Takes events out of a ring buffer that a BPF program fills.
//!
//! libbpf has a reader of its own, which maps the ring twice in a row, so that no event is ever
//! cut in two. All of both counts as memory of this process, so this one maps it once.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libbpf_rs::MapCore;
use rustix::mm::{MapFlags, ProtFlags};

use crate::LoadError;
use crate::loaded::Program;

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
    /// The page that says how far we have read.
    own: Pages,
    /// The page that says how far the kernel has written, and what it wrote.
    kernels: Pages,
    page_bytes: usize,
    taken: Batch,
}

/// Events, one after the other, and where each ends.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Ring {
    /// Reads from `map`.
    pub(crate) fn new(map: &dyn MapCore) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let n_bytes = map.max_entries() as usize;
        if !n_bytes.is_power_of_two() {
            return Err(io::Error::other("its size is no power of two"));
        }
        let write = ProtFlags::READ | ProtFlags::WRITE;
        let own = Pages::map(map.as_fd(), 0, page_bytes, write)?;
        let all = page_bytes + n_bytes;
        let kernels = Pages::map(map.as_fd(), page_bytes as u64, all, ProtFlags::READ)?;
        Ok(Self {
            own,
            kernels,
            page_bytes,
            taken: Batch::default(),
        })
    }

    /// Reads from a map of this program.
    pub(crate) fn of(program: Program, map: &dyn MapCore) -> Result<Self, LoadError> {
        Self::new(map)
            .map_err(|source| LoadError::of(program, source.into(), "cannot map its ring buffer"))
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
        while n < limit && self.take_out() {
            let mut start = 0;
            for &end in &self.taken.ends {
                take(&self.taken.bytes[start..end]);
                start = end;
            }
            n += self.taken.ends.len();
        }
    }

    /// Takes events out, as many as are looked at together, so that the kernel has their room
    /// before anything is made of them. Whether there were any.
    fn take_out(&mut self) -> bool {
        self.taken.bytes.clear();
        self.taken.ends.clear();
        // SAFETY: the page begins with that number, which nobody else writes.
        let read_to = unsafe { AtomicU64::from_ptr(self.own.at.as_ptr().cast()) };
        // SAFETY: the page begins with that number; the mapping lives as long as `self`, and
        // nothing is ever stored through it.
        let written_to = unsafe { AtomicU64::from_ptr(self.kernels.at.as_ptr().cast()) };
        let mut at = read_to.load(Ordering::Relaxed);
        while at < written_to.load(Ordering::Acquire) && self.taken.ends.len() < BATCH {
            let header = self.header(at);
            if header & BUSY != 0 {
                break;
            }
            let n_bytes = (header & !(BUSY | DISCARDED)) as usize;
            if n_bytes > self.n_bytes() {
                // No kernel writes that; going on would read what is no event.
                break;
            }
            if header & DISCARDED == 0 {
                self.copy(at + HEADER_BYTES, n_bytes);
            }
            at += HEADER_BYTES + (n_bytes as u64).next_multiple_of(HEADER_BYTES);
            read_to.store(at, Ordering::Release);
        }
        !self.taken.ends.is_empty()
    }

    fn n_bytes(&self) -> usize {
        self.kernels.n_bytes - self.page_bytes
    }

    /// Where a byte that was written lies.
    fn place(&self, at: u64) -> usize {
        self.page_bytes + (at as usize & (self.n_bytes() - 1))
    }

    /// The length of the event that begins there, and its state.
    fn header(&self, at: u64) -> u32 {
        let place = self.place(at);
        // SAFETY: events begin at multiples of eight, so that these four bytes are inside and
        // aligned; nothing is ever stored through it.
        let header =
            unsafe { AtomicU32::from_ptr(self.kernels.at.as_ptr().byte_add(place).cast()) };
        header.load(Ordering::Acquire)
    }

    /// Copies an event, the end of which may lie where the ring begins anew.
    fn copy(&mut self, at: u64, n_bytes: usize) {
        let place = self.place(at);
        let n_first = n_bytes.min(self.kernels.n_bytes - place);
        for (place, n) in [(place, n_first), (self.page_bytes, n_bytes - n_first)] {
            // SAFETY: inside of the mapping, and the kernel does not write there before it is
            // told that we have read so far.
            let part = unsafe {
                std::slice::from_raw_parts(self.kernels.at.as_ptr().cast::<u8>().add(place), n)
            };
            self.taken.bytes.extend_from_slice(part);
        }
        self.taken.ends.push(self.taken.bytes.len());
    }
}

/// What each event begins with: its length, and the page it lies in.
const HEADER_BYTES: u64 = 8;

/// It is being written (`BPF_RINGBUF_BUSY_BIT`, `include/uapi/linux/bpf.h`).
const BUSY: u32 = 1 << 31;

/// It is not to be read (`BPF_RINGBUF_DISCARD_BIT`).
const DISCARDED: u32 = 1 << 30;

/// Pages of a map in our memory.
struct Pages {
    at: NonNull<c_void>,
    n_bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Pages {}

impl Pages {
    fn map(map: BorrowedFd<'_>, from: u64, n_bytes: usize, may: ProtFlags) -> io::Result<Self> {
        // SAFETY: the kernel chooses the place; it is unmapped in `Drop`.
        let at = unsafe {
            rustix::mm::mmap(ptr::null_mut(), n_bytes, may, MapFlags::SHARED, map, from)
        }?;
        let at = NonNull::new(at).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Self { at, n_bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length, and unmapped once. A failure leaves it
        // mapped, which harms nobody.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr(), self.n_bytes) };
    }
}
