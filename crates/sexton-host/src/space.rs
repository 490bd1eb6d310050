//! The space of a mounted filesystem.

use std::io;
use std::path::Path;

/// How full a filesystem is, as statvfs(3) tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub size_bytes: u64,
    /// What is not in use, the part for root included.
    pub free_bytes: u64,
    /// What users other than root may use.
    pub available_bytes: u64,
    /// Inodes there are; 0 where they are made as needed.
    pub inodes: u64,
    /// Inodes that are not in use.
    pub inodes_free: u64,
    /// Inodes that users other than root may use.
    pub inodes_available: u64,
}

impl Space {
    /// Asks the kernel. It may wait for as long as the disk does.
    pub fn of(point: &Path) -> io::Result<Self> {
        let stat = rustix::fs::statvfs(point)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Self {
            size_bytes: bytes(stat.f_blocks),
            free_bytes: bytes(stat.f_bfree),
            available_bytes: bytes(stat.f_bavail),
            inodes: stat.f_files,
            inodes_free: stat.f_ffree,
            inodes_available: stat.f_favail,
        })
    }

    /// The part that is in use of what users other than root may use, as df(1) counts it.
    /// `None` when there is no space at all.
    pub fn used_ratio(&self) -> Option<f64> {
        let used = self.size_bytes.saturating_sub(self.free_bytes);
        ratio(used, self.available_bytes)
    }

    /// The same of inodes.
    pub fn inodes_used_ratio(&self) -> Option<f64> {
        let used = self.inodes.saturating_sub(self.inodes_free);
        ratio(used, self.inodes_available).filter(|_| self.inodes > 0)
    }
}

fn ratio(used: u64, available: u64) -> Option<f64> {
    let all = used.checked_add(available).filter(|all| *all > 0)?;
    Some(used as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 blocks, of which 5 are for root and 2 more are free.
    const ALMOST_FULL: Space = Space {
        size_bytes: 100,
        free_bytes: 7,
        available_bytes: 2,
        inodes: 0,
        inodes_free: 0,
        inodes_available: 0,
    };

    #[test]
    fn what_root_keeps_for_itself_is_not_available() {
        assert_eq!(ALMOST_FULL.used_ratio(), Some(93.0 / 95.0));
        assert_eq!(ALMOST_FULL.inodes_used_ratio(), None);
    }

    #[test]
    fn the_root_of_this_system_has_some_space() {
        let space = Space::of(Path::new("/")).expect("it is mounted");
        let used = space.used_ratio().expect("it has a size");
        assert!((0.0..=1.0).contains(&used), "{space:?}");
        assert!(Space::of(Path::new("/nowhere")).is_err());
    }
}
