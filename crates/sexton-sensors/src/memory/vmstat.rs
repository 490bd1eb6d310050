//! `/proc/vmstat` and `/proc/meminfo`.

/// What the kernel has counted since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Pages that were reclaimed and read again.
    pub(super) refaults: u64,
    /// Kibibytes read from block devices.
    pub(super) read_in_kib: u64,
    /// Pages read from swap.
    pub(super) swapped_in: u64,
    /// Pages written to swap.
    pub(super) swapped_out: u64,
    /// Tasks that had to reclaim themselves.
    pub(super) stalls: u64,
    /// Page faults that waited for a disk.
    pub(super) major_faults: u64,
}

impl Counters {
    /// `None` when it has no line on what was read again, or on what was read at all.
    pub(super) fn parse(vmstat: &str) -> Option<Self> {
        let mut counters = Self::default();
        let (mut has_refaults, mut has_reads) = (false, false);
        for line in vmstat.lines() {
            let Some((name, value)) = line.split_once(' ') else {
                continue;
            };
            let add = |sum: &mut u64| {
                *sum = sum.saturating_add(value.trim().parse().unwrap_or(0));
            };
            match name {
                // One counter until 5.8, then one for files and one for the rest.
                "workingset_refault" | "workingset_refault_file" | "workingset_refault_anon" => {
                    has_refaults = true;
                    add(&mut counters.refaults);
                }
                "pgpgin" => {
                    has_reads = true;
                    add(&mut counters.read_in_kib);
                }
                "pswpin" => add(&mut counters.swapped_in),
                "pswpout" => add(&mut counters.swapped_out),
                "pgmajfault" => add(&mut counters.major_faults),
                // One for each zone; one for all until 4.9.
                _ if name == "allocstall" || name.starts_with("allocstall_") => {
                    add(&mut counters.stalls);
                }
                _ => {}
            }
        }
        (has_refaults && has_reads).then_some(counters)
    }

    pub(super) fn read_in_bytes(&self) -> u64 {
        self.read_in_kib.saturating_mul(1024)
    }
}

/// A line of `/proc/meminfo`, in bytes.
pub(super) fn meminfo(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_old_and_new_kernels() {
        let new = "pgpgin 7\npswpin 1\npswpout 2\nworkingset_refault_anon 3\n\
                   workingset_refault_file 4\nallocstall_dma 5\nallocstall_normal 6\n\
                   pgmajfault 9\npgscan_direct_throttle 8\n";
        let expected = Counters {
            refaults: 7,
            read_in_kib: 7,
            swapped_in: 1,
            swapped_out: 2,
            stalls: 11,
            major_faults: 9,
        };
        assert_eq!(Counters::parse(new), Some(expected));
        let old = "pgpgin 1\nworkingset_refault 2\nallocstall 3\n";
        let old = Counters::parse(old).expect("counters");
        assert_eq!((old.refaults, old.stalls), (2, 3));
        for bad in ["", "pgpgin 1\n", "workingset_refault 1\n"] {
            assert_eq!(Counters::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn lines_of_meminfo() {
        let text = "MemTotal:       24684100 kB\nMemAvailable: 1 kB\nHugePages_Total: 0\n";
        assert_eq!(meminfo(text, "MemTotal:"), Some(24_684_100 * 1024));
        assert_eq!(meminfo(text, "HugePages_Total:"), None);
        assert_eq!(meminfo(text, "MemFree:"), None);
    }
}
