//! Memory of a BPF array map that user space reads and writes while programs run.

use std::ffi::c_void;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use libbpf_rs::{MapCore, MapMut};
use rustix::mm::{MapFlags, ProtFlags};

use crate::ring;

/// A type whose values are plain integers, so that any bytes are a valid one.
///
/// # Safety
/// Every bit pattern must be valid, and its size a multiple of eight bytes.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer of eight bytes.
unsafe impl Plain for u64 {}

/// A copy of a global of a program that is loaded.
pub(crate) fn now<T: ring::Plain>(global: &T) -> T {
    // SAFETY: a reference is valid, and any bytes are. Volatile, because the kernel writes it.
    unsafe { ptr::from_ref(global).read_volatile() }
}

/// The elements of an array map. Programs write to them at any time, so each read is a
/// copy, whole only as far as the processor writes words whole.
pub(crate) struct Mapped<T> {
    at: NonNull<c_void>,
    n: usize,
    element: PhantomData<T>,
}

// SAFETY: the mapping belongs to the process, not to a thread.
unsafe impl<T> Send for Mapped<T> {}

impl<T: Plain> Mapped<T> {
    /// Maps all elements of `map`, which must have been made mappable.
    pub(crate) fn new(map: &MapMut<'_>) -> io::Result<Self> {
        if map.value_size() as usize != size_of::<T>() {
            return Err(io::Error::other("the map holds something else"));
        }
        let n = map.max_entries() as usize;
        // SAFETY: the kernel chooses the place; it is unmapped in `Drop`.
        let at = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                n * size_of::<T>(),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.as_fd(),
                0,
            )
        }?;
        let at = NonNull::new(at).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Self {
            at,
            n,
            element: PhantomData,
        })
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// Where an element lies. Valid as long as this is; the kernel may write to it.
    pub(crate) fn at(&self, index: usize) -> Option<*mut T> {
        // SAFETY: the mapping holds `n` elements.
        (index < self.n).then(|| unsafe { self.at.as_ptr().cast::<T>().add(index) })
    }

    /// A copy of an element.
    pub(crate) fn read(&self, index: usize) -> Option<T> {
        // SAFETY: `at` gives valid places only, and any bytes are valid. Volatile,
        // because the kernel writes them.
        self.at(index).map(|at| unsafe { at.read_volatile() })
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and unmapped once. A failure leaves
        // it mapped, which harms nobody.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr(), self.n * size_of::<T>()) };
    }
}
