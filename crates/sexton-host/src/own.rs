//! What a process may change of itself. Nothing of the node is changed.

use std::io;
use std::time::Duration;

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

/// A thread of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadUse {
    /// Its id.
    pub id: u32,
    /// Its name, of which the kernel keeps 15 bytes.
    pub name: String,
    /// Processor time so far, the kernel's part included.
    pub cpu_time: Duration,
}

/// The threads of this process; none where `/proc` does not say.
pub fn threads() -> Vec<ThreadUse> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    // One that ends meanwhile is left out.
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let ticks = rustix::param::clock_ticks_per_second();
    stats.filter_map(|stat| thread_use(&stat, ticks)).collect()
}

/// A line of `stat`: the id, the name in brackets, which may hold any, and 11 fields before the times.
fn thread_use(stat: &str, ticks_per_second: u64) -> Option<ThreadUse> {
    let (head, fields) = stat.rsplit_once(") ")?;
    let (id, name) = head.split_once(" (")?;
    let mut times = fields.split(' ').skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    let ticks = user.checked_add(system)?;
    Some(ThreadUse {
        id: id.parse().ok()?,
        name: name.to_owned(),
        cpu_time: Duration::from_secs_f64(ticks as f64 / ticks_per_second.max(1) as f64),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_told_by_its_line() {
        let line = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0\n";
        let expected = ThreadUse {
            id: 42,
            name: "a) b (c".into(),
            cpu_time: Duration::from_secs(2),
        };
        assert_eq!(thread_use(line, 100), Some(expected));
        for wrong in ["", "42 (a) S 1 2", "x (a) S 1 2 3 4 5 6 7 8 9 10 1 1 0"] {
            assert_eq!(thread_use(wrong, 100), None, "{wrong}");
        }
    }

    #[test]
    fn this_thread_is_among_those_of_the_process() {
        let named = std::thread::Builder::new().name("reads".into());
        let seen = named.spawn(threads).expect("a thread").join();
        let seen = seen.expect("no panic");
        assert!(seen.iter().any(|thread| thread.name == "reads"), "{seen:?}");
    }
}
