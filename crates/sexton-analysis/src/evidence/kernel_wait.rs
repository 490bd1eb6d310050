//! What a task waits for, by the kernel functions it is in.

/// A part of the kernel, by how names of its functions begin, and whether a block device is
/// what is waited for there.
struct Part {
    name: &'static str,
    begins: &'static [&'static str],
    is_disk: bool,
}

const fn part(name: &'static str, begins: &'static [&'static str], is_disk: bool) -> Part {
    Part {
        name,
        begins,
        is_disk,
    }
}

const VFORK: &str = "vfork, for its child";

/// Those that say most come first: a task in NFS is also in the code for all filesystems.
static PARTS: &[Part] = &[
    part("NFS", &["nfs", "rpc_"], false),
    part("SMB", &["cifs_", "smb2_", "smb3_"], false),
    part("CephFS", &["ceph_"], false),
    part("FUSE", &["fuse_", "request_wait_answer"], false),
    part("ext4", &["ext4_", "jbd2_"], true),
    part("XFS", &["xfs_", "xlog_"], true),
    part("Btrfs", &["btrfs_"], true),
    part("NVMe", &["nvme_"], true),
    part("swap", &["swap_", "do_swap_page", "swapin_"], true),
    part(
        "a frozen filesystem",
        &[
            "sb_start_write",
            "__sb_start_write",
            "freeze_super",
            "thaw_super",
        ],
        false,
    ),
    part(
        "reclaim of memory",
        &["shrink_", "try_to_free_", "mem_cgroup_handle_over_high"],
        false,
    ),
    part(
        "the block layer",
        &[
            "blk_",
            "submit_bio",
            "bio_wait",
            "io_schedule",
            "folio_wait",
            "wait_on_page",
            "balance_dirty",
            "rq_qos",
            "wbt_wait",
        ],
        true,
    ),
    part(
        VFORK,
        &[
            "__do_sys_vfork",
            "__x64_sys_vfork",
            "__arm64_sys_vfork",
            "wait_for_vfork_done",
        ],
        false,
    ),
    part(
        "exit of a process",
        &["do_exit", "exit_mm", "zap_pid_ns_processes"],
        false,
    ),
];

fn part_of(wait: &str, stack: &[String]) -> Option<&'static Part> {
    let frames = || std::iter::once(wait).chain(stack.iter().map(String::as_str));
    PARTS
        .iter()
        .find(|part| frames().any(|frame| part.begins.iter().any(|begin| frame.starts_with(begin))))
}

/// The part of the kernel that a task waits in, by the function it sleeps in and its stack.
pub(crate) fn place(wait: &str, stack: &[String]) -> Option<&'static str> {
    part_of(wait, stack).map(|part| part.name)
}

/// Whether it waits there for a child of its own, until that exits or becomes another program.
pub(crate) fn is_for_child(wait: &str, stack: &[String]) -> bool {
    place(wait, stack) == Some(VFORK)
}

/// Whether tasks wait there in state S, for the server of a filesystem in user space.
pub(crate) fn is_for_server(wait: &str) -> bool {
    wait == "request_wait_answer"
}

/// How calls of FUSE begin that may take as long as it takes: what was written is stored, or a
/// lock is granted.
static LONG_CALLS: [&str; 5] = [
    "fuse_flush",
    "fuse_fsync",
    "fuse_setlk",
    "fuse_file_lock",
    "fuse_file_flock",
];

/// Why a long wait there is no trouble, where it is none.
pub(crate) fn excuse(wait: &str, stack: &[String]) -> Option<&'static str> {
    let is_long_call = |frame: &String| LONG_CALLS.iter().any(|call| frame.starts_with(call));
    if is_for_child(wait, stack) {
        Some(
            "such a wait ends when the child exits or becomes another program, and the task can \
             be killed",
        )
    } else if is_for_server(wait) && stack.iter().any(is_long_call) {
        Some("the server may take its time to store what was written, or to grant a lock")
    } else {
        None
    }
}

/// Whether a slow disk would make it wait there.
pub(crate) fn is_of_disk(wait: &str, stack: &[String]) -> bool {
    part_of(wait, stack).is_some_and(|part| part.is_disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wait: &str, stack: &[&str], expected: Option<(&str, bool)>) {
        let stack: Vec<String> = stack.iter().map(|&frame| frame.to_owned()).collect();
        let found = place(wait, &stack).map(|place| (place, is_of_disk(wait, &stack)));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_most_telling_frame_counts() {
        check(
            "folio_wait_bit_common",
            &["folio_wait_bit_common", "nfs_file_fsync"],
            Some(("NFS", false)),
        );
        check(
            "jbd2_log_wait_commit",
            &["jbd2_log_wait_commit", "vfs_fsync_range"],
            Some(("ext4", true)),
        );
        check(
            "kernel_clone",
            &["kernel_clone", "__do_sys_vfork"],
            Some(("vfork, for its child", false)),
        );
        let stack = ["kernel_clone", "__do_sys_vfork"].map(str::to_owned);
        assert!(is_for_child("kernel_clone", &stack));
        assert!(!is_for_child("kernel_clone", &[]));
        assert!(excuse("kernel_clone", &stack).is_some());
        let fuse = |call: &str| excuse("request_wait_answer", &[call.to_owned()]).is_some();
        assert!(fuse("fuse_flush") && fuse("fuse_setlk"));
        assert!(!fuse("fuse_lookup_name"));
        check("io_schedule", &[], Some(("the block layer", true)));
        check("unknown", &[], None);
    }
}
