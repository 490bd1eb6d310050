//! Facts about filesystems: how full they are. The subject is the mount point.

use super::metric::{MOUNTS, Metric};
use super::show::{Group, Series, Show};
use crate::payload;

payload! {
    /// A local filesystem that can be written to was seen, or changed.
    pub struct FilesystemSeen {
        /// the name of its device, as the kernel log has it
        pub device: Option<String>,
        /// its type
        pub fs_type: String,
        /// its size
        pub size_bytes: Option<u64>,
        /// whether the filesystem itself is read-only
        pub read_only: bool,
    }
}

facts! {
    /// part of the space that users other than root may use which is in use
    gauge FS_USED_RATIO = "fs_used_ratio" in Ratio,
        shown: Show::Series(
            Series::line("fs.used", Group::Pressure, "filesystem in use", "filesystems").of_any()
        ),
        metric: Metric::gauge("sexton_fs_used_ratio").by(MOUNTS, 64);
    /// space left for users other than root
    gauge FS_AVAILABLE_BYTES = "fs_available_bytes" in Bytes,
        metric: Metric::gauge("sexton_fs_available_bytes").by(MOUNTS, 64);
    /// part of the inodes which is in use; not of filesystems that make them as needed
    gauge FS_INODES_USED_RATIO = "fs_inodes_used_ratio" in Ratio,
        metric: Metric::gauge("sexton_fs_inodes_used_ratio").by(MOUNTS, 64);
    /// inodes left for users other than root
    gauge FS_INODES_AVAILABLE = "fs_inodes_available" in Count,
        metric: Metric::gauge("sexton_fs_inodes_available").by(MOUNTS, 64);
    /// 1 if the filesystem itself is read-only, else 0
    gauge FS_READ_ONLY = "fs_read_only" in Count,
        metric: Metric::gauge("sexton_fs_read_only").by(MOUNTS, 64);
    /// a local filesystem was first seen, or is read-only now and was not, or the reverse
    event FS_SEEN = "fs_seen" of FilesystemSeen;
}
