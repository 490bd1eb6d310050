//! The memory that one core writes its records to, shared with the kernel.

use std::ffi::c_void;
use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use super::record::{Header, u64_at};

/// Offsets in the first page (`struct perf_event_mmap_page`).
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// A record of what was lost: its header, an id, and how many.
const LOST_AT: usize = 8;

/// The reading end.
#[derive(Debug)]
pub(super) struct Ring {
    at: NonNull<c_void>,
    page_bytes: usize,
    /// Of the records, a power of two; the page before them is not counted.
    bytes: usize,
    n_lost: u64,
    record: Vec<u8>,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event, with room for at least one page.
    pub(super) fn map(event: &OwnedFd, room_bytes: usize) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let bytes = room_bytes.max(page_bytes).next_power_of_two();
        // SAFETY: the kernel chooses the place; it is unmapped in `Drop`.
        let at = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                page_bytes + bytes,
                // Writable, so that the kernel does not write over what we have not read.
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                event,
                0,
            )
        }?;
        let at = NonNull::new(at).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Self {
            at,
            page_bytes,
            bytes,
            n_lost: 0,
            record: Vec::new(),
        })
    }

    /// Records that found no room, as far as the kernel has told.
    pub(super) fn n_lost(&self) -> u64 {
        self.n_lost
    }

    /// Hands over the records that are there now: header, and what follows it.
    pub(super) fn drain(&mut self, mut take: impl FnMut(Header, &[u8])) {
        // Pairs with the kernel's barrier: what is before the head has been written.
        let head = self.position(HEAD_AT).load(Ordering::Acquire);
        let mut tail = self.position(TAIL_AT).load(Ordering::Relaxed);
        let mut record = std::mem::take(&mut self.record);
        while tail < head {
            let mut header = [0; Header::BYTES];
            self.copy(tail, &mut header);
            let header = Header::read(header);
            let len = usize::from(header.len);
            if len < Header::BYTES || len as u64 > head - tail {
                // Not what we take it for: nothing after it can be found.
                tail = head;
                break;
            }
            record.resize(len, 0);
            self.copy(tail, &mut record);
            match u64_at(&record, LOST_AT + 8) {
                Some(n) if header.is_lost() => self.n_lost += n,
                _ => take(header, &record[Header::BYTES..]),
            }
            tail += len as u64;
        }
        self.record = record;
        // The kernel may write there from now on.
        self.position(TAIL_AT).store(tail, Ordering::Release);
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as `self` is, the field is aligned, and the
        // kernel writes and reads it whole.
        unsafe { AtomicU64::from_ptr(self.at.as_ptr().byte_add(offset).cast()) }
    }

    /// Copies what begins at that position, around the end of the ring if need be.
    fn copy(&self, position: u64, into: &mut [u8]) {
        let begin = (position as usize) & (self.bytes - 1);
        let first = into.len().min(self.bytes - begin);
        let (front, rest) = into.split_at_mut(first);
        self.copy_from(begin, front);
        self.copy_from(0, rest);
    }

    fn copy_from(&self, begin: usize, into: &mut [u8]) {
        // SAFETY: both parts lie within the ring, because a record is never longer than it;
        // the kernel does not write between tail and head.
        unsafe {
            let from = self.at.as_ptr().byte_add(self.page_bytes + begin);
            ptr::copy_nonoverlapping(from.cast::<u8>(), into.as_mut_ptr(), into.len());
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length, and unmapped once. A failure leaves it
        // mapped, which harms nothing.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr(), self.page_bytes + self.bytes) };
    }
}
