//! What a process may change of itself. Nothing of the node is changed.

use std::io;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, unshare_unsafe,
};

/// Lets this process run before all ordinary tasks (`SCHED_FIFO`).
pub fn run_first(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param {
        sched_priority: priority.into(),
    };
    // SAFETY: the pointer is to a value that outlives the call; 0 is this process.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Resident memory of this process; none where `/proc` does not say.
pub fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    pages.checked_mul(crate::machine::page_bytes())
}

/// Gives memory that was used for a moment back to the node. The allocator keeps it otherwise:
/// after a burst of events this process would seem twice its size for good.
pub fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers, and may be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has the kernel map the code and constants of this program anew, page by page as they are used.
/// Most of what starts a recorder (loading BPF programs, reading settings) never runs again. All
/// of it stays in the page cache, so what is used again costs a minor fault for 16 pages. For
/// once a minute.
pub fn unmap_unused_code() {
    /// The part of the program that begins at its first header, and no library.
    unsafe extern "C" fn unmap(
        object: *mut libc::dl_phdr_info,
        _: usize,
        _: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: libc hands over one that is valid during the call, with that many headers.
        let (base, headers) = unsafe {
            let object = &*object;
            let headers = std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into());
            (object.dlpi_addr, headers)
        };
        let is_unchanged = |header: &&libc::Elf64_Phdr| {
            header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0
        };
        let page = rustix::param::page_size() as u64;
        for header in headers.iter().filter(is_unchanged) {
            let from = (base + header.p_vaddr).next_multiple_of(page);
            let to = (base + header.p_vaddr + header.p_memsz) / page * page;
            if from < to {
                // SAFETY: the range holds whole pages of a private mapping of a file that were
                // never written: they read the same afterwards.
                unsafe {
                    libc::madvise(from as *mut _, (to - from) as usize, libc::MADV_DONTNEED);
                }
            }
        }
        // The first one is the program itself; the others are shared with other processes.
        1
    }
    // SAFETY: the function fits, and what it is given is not used.
    unsafe {
        libc::dl_iterate_phdr(Some(unmap), std::ptr::null_mut());
    }
}

/// Has the allocator of this process keep little for itself. Before the first thread starts.
///
/// A recorder has some fifteen threads, each of which allocates much for a moment: by default
/// each would keep an arena of its own for that, and what is large would go there, too. Two
/// arenas, and room from the kernel itself for what is above 128 KiB, take 6 of 47 MB less.
pub fn keep_memory_small() {
    #[cfg(target_env = "gnu")]
    const LARGE: libc::c_int = 128 << 10;
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointers; no other thread allocates yet, as it is documented above.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
    }
}

/// This thread, and the programs that it starts, have no capability from here on.
pub fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, none)?)
}

/// Gives this process a network of its own, with nothing in it, and a `/sys` that shows it.
/// Both end with the process.
pub fn leave_network() -> io::Result<()> {
    let flags = UnshareFlags::NEWNET | UnshareFlags::NEWNS;
    // SAFETY: neither flag touches file descriptors, which is what makes this unsafe.
    unsafe { unshare_unsafe(flags) }?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    mount("sysfs", "/sys", "sysfs", MountFlags::empty(), None)?;
    Ok(())
}
