//! Memory that the kernel writes an answer of unknown length into.

use std::io;
use std::ptr;
use std::slice;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Memory with a page behind it that cannot be written to. Pages that are not used cost
/// nothing.
#[derive(Debug)]
pub(super) struct Arena {
    start: *mut u8,
    len: usize,
}

// SAFETY: nobody else knows the mapping, so it may go to another thread with its owner.
unsafe impl Send for Arena {}

impl Arena {
    /// Room for at least so many bytes.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let len = len.next_multiple_of(page);
        // SAFETY: a fresh private mapping that nothing else refers to; the page that is
        // taken away is its last one.
        let start = unsafe {
            let start = mmap_anonymous(
                ptr::null_mut(),
                len + page,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?;
            mprotect(start.byte_add(len), page, MprotectFlags::empty())?;
            start.cast()
        };
        Ok(Self { start, len })
    }

    /// Where it begins.
    pub(super) fn start(&mut self) -> *mut u8 {
        self.start
    }

    /// All of it.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` are mapped, were zeroed by the kernel, and are
        // only written through `&mut self`.
        unsafe { slice::from_raw_parts(self.start, self.len) }
    }

    /// Puts numbers at its beginning, in the byte order of this machine, and nothing
    /// behind them where an answer may say how long it is.
    pub(super) fn write(&mut self, numbers: &[u32]) {
        const HEAD: usize = 256;
        let mut head = [0; HEAD];
        for (place, number) in head.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        // SAFETY: as in `bytes`, and `&mut self` makes this the only reference. A page is
        // longer than the head.
        let bytes = unsafe { slice::from_raw_parts_mut(self.start, self.len) };
        bytes[..HEAD].copy_from_slice(&head);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let page = rustix::param::page_size();
        // SAFETY: the whole mapping that `new` made; nothing refers to it any more.
        unsafe { munmap(self.start.cast(), self.len + page) }.ok();
    }
}
