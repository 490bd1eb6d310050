//! Where the memory controller is found, and what its files say.

use std::path::{Path, PathBuf};

use sexton_host::cgroup::{CgroupStat, Controller, MemoryHierarchy, count_directories};
use sexton_host::{Host, HostError};
use sexton_model::census::Hierarchy::{self, V1, V2};
use sexton_testkit::{TempTree, fixture};

use crate::open;

/// What a node is found to have: the hierarchy, its mount point, whether and why it
/// is narrowed, and the directories at and below the mount point.
#[track_caller]
fn check(host: &Host, hierarchy: Hierarchy, mount: Option<(&str, u64)>, narrowed: Option<&str>) {
    let found = MemoryHierarchy::find(host)
        .expect("the files are good")
        .expect("there is a memory controller");
    assert_eq!(found.hierarchy, hierarchy);
    assert_eq!(found.mount, mount.map(|(point, _)| PathBuf::from(point)));
    assert_eq!(found.narrowed_by.as_deref(), narrowed);
    if let Some((point, n_directories)) = mount {
        let counted = count_directories(host, Path::new(point)).expect("the tree is there");
        assert_eq!(counted, (n_directories, 0));
    }
}

#[track_caller]
fn check_capture(
    story: &str,
    mount: Option<(&str, u64)>,
    narrowed: Option<&str>,
    n_cgroups: u64,
) -> Host {
    let host = open(&fixture(story));
    let hierarchy = if story.ends_with("v2") { V2 } else { V1 };
    check(&host, hierarchy, mount, narrowed);
    let row = Controller::memory(&host).expect("the files are good");
    let expected = Controller {
        n_cgroups,
        enabled: true,
    };
    assert_eq!(row, Some(expected));
    host
}

const USUAL: &str = "/sys/fs/cgroup/memory";
const IN_NAMESPACE: Option<&str> = Some("this process is in a cgroup namespace");

#[test]
fn v1_beside_v2() {
    check_capture("6.18-debian12/cgroup-hybrid", Some((USUAL, 17)), None, 37);
}

#[test]
fn v1_at_another_mount_point() {
    let mount = Some(("/run/memcg", 17));
    check_capture("6.18-debian12/cgroup-elsewhere", mount, None, 37);
}

#[test]
fn v1_mounted_nowhere() {
    check_capture("6.18-debian12/cgroup-unmounted", None, None, 37);
}

#[test]
fn a_part_bound_over_the_mount_point() {
    let narrowed = format!("{USUAL} shows only /jobs/{:032}/rt-lab of the hierarchy", 1);
    let story = "6.18-debian12/cgroup-part";
    check_capture(story, Some((USUAL, 6)), Some(&narrowed), 37);
}

#[test]
fn a_cgroup_namespace_with_a_mount_of_its_own() {
    let story = "6.18-debian12/cgroup-namespace";
    check_capture(story, Some((USUAL, 6)), IN_NAMESPACE, 39);
}

#[test]
fn a_cgroup_namespace_with_older_mounts() {
    let story = "6.18-debian12/cgroup-namespace-old-mounts";
    check_capture(story, Some((USUAL, 17)), IN_NAMESPACE, 39);
}

#[test]
fn an_older_mount_shows_more_than_one_of_the_namespace() {
    let story = "6.18-debian12/cgroup-namespace-both";
    check_capture(story, Some((USUAL, 17)), IN_NAMESPACE, 39);
}

#[test]
fn v2_of_a_kernel_that_counts_memory_states() {
    let mount = Some(("/sys/fs/cgroup", 5));
    let host = check_capture("6.12-debian13/cgroup-v2", mount, None, 12);
    let stat = CgroupStat::read(&host, Path::new("/sys/fs/cgroup")).expect("it is there");
    let expected = CgroupStat {
        n_descendants: 4,
        n_dying: 7,
        n_memory: Some(5),
        n_dying_memory: Some(7),
    };
    assert_eq!(stat, expected);
    assert_eq!(stat.dying(), 7);
}

#[test]
fn v2_of_a_kernel_that_does_not() {
    let mount = Some(("/sys/fs/cgroup", 5));
    let host = check_capture("6.1-debian12/cgroup-v2", mount, None, 12);
    let slice = Path::new("/sys/fs/cgroup/system.slice");
    let stat = CgroupStat::read(&host, slice).expect("it is there");
    let expected = CgroupStat {
        n_descendants: 2,
        n_dying: 7,
        n_memory: None,
        n_dying_memory: None,
    };
    assert_eq!(stat, expected);
    assert_eq!(stat.dying(), 7);
}

#[test]
fn a_controller_that_is_off() {
    let host = open(&fixture("6.1-debian12/cgroup-off"));
    assert_eq!(
        MemoryHierarchy::find(&host).expect("the files are good"),
        None
    );
    let row = Controller::memory(&host).expect("the files are good");
    assert!(row.is_some_and(|row| !row.enabled));
}

/// A node with one cgroup2 mount, which this test invents.
fn v2_node(mount_root: &str, controllers: &str, rows: &str) -> TempTree {
    let mount = format!("30 22 0:23 {mount_root} /sys/fs/cgroup rw - cgroup2 none rw\n");
    TempTree::node(&mount)
        .file("/proc/self/cgroup", "0::/\n")
        .file(
            "/proc/cgroups",
            format!("#subsys_name\thierarchy\tnum_cgroups\tenabled\n{rows}"),
        )
        .file("/sys/fs/cgroup/cgroup.controllers", controllers)
        .link("/proc/self/ns/cgroup", "cgroup:[4026531835]")
}

#[test]
fn v2_without_a_row() {
    let tree = v2_node("/", "cpu memory pids\n", "cpu\t0\t5\t1\n");
    let host = open(tree.path());
    check(&host, V2, Some(("/sys/fs/cgroup", 1)), None);
    assert_eq!(Controller::memory(&host).expect("the file is good"), None);
}

#[test]
fn v2_without_a_row_that_is_off() {
    let tree = v2_node("/", "cpu memory_not pids\n", "cpu\t0\t5\t1\n");
    let found = MemoryHierarchy::find(&open(tree.path())).expect("the files are good");
    assert_eq!(found, None);
}

#[test]
fn a_part_of_v2_that_was_not_given_the_controller() {
    let tree = v2_node("/../a.slice", "cpu pids\n", "memory\t0\t5\t1\n");
    let narrowed = "/sys/fs/cgroup shows only /../a.slice of the hierarchy";
    let mount = Some(("/sys/fs/cgroup", 1));
    check(&open(tree.path()), V2, mount, Some(narrowed));
}

#[test]
fn a_row_that_makes_no_sense_is_said() {
    for row in [
        "memory\t0\tmany\t1\n",
        "memory\t0\t5\n",
        "memory\t0\t-1\t1\n",
    ] {
        let tree = v2_node("/", "memory\n", row);
        let error = Controller::memory(&open(tree.path())).expect_err("the row is bad");
        assert!(matches!(error, HostError::Malformed { .. }), "{error}");
    }
}

#[test]
fn a_stat_file_that_makes_no_sense_is_said() {
    let tree = v2_node("/", "memory\n", "").file(
        "/sys/fs/cgroup/cgroup.stat",
        "nr_descendants 4\nnr_dying_descendants \n",
    );
    let error = CgroupStat::read(&open(tree.path()), Path::new("/sys/fs/cgroup"));
    assert_eq!(
        error.expect_err("a number is missing").to_string(),
        "cannot make sense of /sys/fs/cgroup/cgroup.stat: it has no nr_dying_descendants"
    );
}
