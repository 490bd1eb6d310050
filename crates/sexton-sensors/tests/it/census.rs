//! The census without BPF.

use sexton_host::{FolderRoot, Host};
use sexton_model::census::{Census, Method};
use sexton_model::gap::Gap;
use sexton_sensors::memcg::{CensusOptions, census};
use sexton_testkit::{TempTree, fixture};

fn take(folder: &std::path::Path) -> Result<Census, Gap> {
    let root = FolderRoot::open(folder).expect("the folder is there");
    let host = Host::new(Box::new(root)).expect("it has a mount table");
    census(&host, CensusOptions::default())
}

const V2: &str = "30 22 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";

/// A v2 node with these `cgroup.stat` counts of dying cgroups, by directory.
fn v2_node(dying: &[(&str, u64)]) -> TempTree {
    let mut node = TempTree::node(V2)
        .file("/proc/self/cgroup", "0::/\n")
        .file(
            "/proc/cgroups",
            "#subsys_name\thierarchy\tnum_cgroups\tenabled\n",
        )
        .file("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    for (directory, n) in dying {
        let stat = format!(
            "nr_descendants {}\nnr_dying_descendants {n}\nnr_subsys_memory {}\nnr_dying_subsys_memory {n}\n",
            dying.len() - 1,
            dying.len()
        );
        node = node.file(&format!("/sys/fs/cgroup{directory}/cgroup.stat"), stat);
    }
    node
}

/// A v1 node whose kernel counts so many memory cgroups, with these directories.
fn v1_node(mounts: &str, n_cgroups: u64, directories: &[&str]) -> TempTree {
    let mut node = TempTree::node(mounts)
        .file("/proc/self/cgroup", "4:memory:/\n0::/\n")
        .file(
            "/proc/cgroups",
            format!("#subsys_name\tx\ty\tz\nmemory\t4\t{n_cgroups}\t1\n"),
        );
    for directory in directories {
        node = node
            .directory(directory)
            .file(&format!("{directory}/tasks"), "");
    }
    node
}

fn origins(census: &Census) -> Vec<(String, u64)> {
    let line = |pattern: &[u8]| String::from_utf8_lossy(pattern).into_owned();
    census
        .origins
        .iter()
        .map(|group| (line(&group.pattern), group.dying))
        .collect()
}

/// What `/proc` says of 64 pages: to whom each is charged, and what it is.
fn with_pages(node: &TempTree, charged: &[(u64, u64)]) {
    let zones = "Node 0, zone   Normal\n        spanned  64\n        present  64\n  start_pfn:           0\n";
    let words = |pick: fn(&(u64, u64)) -> u64| -> Vec<u8> {
        charged
            .iter()
            .flat_map(|page| pick(page).to_ne_bytes())
            .collect()
    };
    let proc = node.path().join("proc");
    std::fs::write(proc.join("zoneinfo"), zones).expect("written");
    std::fs::write(proc.join("kpagecgroup"), words(|page| page.0)).expect("written");
    std::fs::write(proc.join("kpageflags"), words(|page| page.1)).expect("written");
}

/// As on Linux 5.4: `/docker` has pages and no tasks, the reader's cgroup has its own.
#[test]
fn on_v1_owners_of_pages_name_the_parents() {
    const LRU: u64 = 1 << 5;
    let mounts = "30 22 0:30 / /cg rw - cgroup cgroup rw,memory\n";
    let directories = ["/cg", "/cg/docker", "/cg/kubepods", "/cg/kubepods/pod1"];
    let mut node = v1_node(mounts, 4 + 20, &directories);
    for (directory, own_bytes, tasks) in [
        ("/cg", 5 * 4096, "1\n"),
        ("/cg/docker", 0, ""),
        ("/cg/kubepods", 0, ""),
        ("/cg/kubepods/pod1", 7 * 4096, "165\n"),
    ] {
        let stat = format!("cache 1\ninactive_file {own_bytes}\ntotal_inactive_file 99999999\n");
        node = node
            .file(&format!("{directory}/memory.stat"), stat)
            .file(&format!("{directory}/cgroup.procs"), tasks);
    }
    let inode = |directory: &str| {
        let path = node.path().join(directory);
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("a directory"))
    };
    let mut pages = vec![(0, 0); 12];
    pages.extend(vec![(inode("cg"), LRU); 5]);
    pages.extend(vec![(inode("cg/docker"), LRU); 20]);
    pages.extend(vec![(inode("cg/kubepods/pod1"), LRU); 8]);
    // Kernel memory is on no list.
    pages.extend(vec![(inode("cg/kubepods"), 0); 19]);
    with_pages(&node, &pages);
    let root = FolderRoot::open(node.path()).expect("the folder is there");
    let host = Host::new(Box::new(root)).expect("it has a mount table");
    let options = CensusOptions {
        owners: true,
        ..CensusOptions::default()
    };
    let census = census(&host, options).expect("it can be counted");
    assert_eq!(census.method, Method::PageOwnership);
    assert_eq!(census.counts.dying, Some(20));
    assert_eq!(origins(&census), [("/docker/<gone>".to_owned(), 20)]);
    assert_eq!(census.origins[0].pages.map(|pages| pages.file), Some(20));
}

#[test]
fn on_v2_the_counts_lead_to_the_directories() {
    let node = v2_node(&[
        ("", 60),
        ("/init.scope", 0),
        ("/system.slice", 53),
        ("/system.slice/ecs.service", 41),
        ("/system.slice/ecs.service/agent", 41),
        ("/system.slice/quiet.service", 0),
        ("/user.slice", 5),
    ]);
    let census = take(node.path()).expect("it can be counted");
    assert_eq!(census.method, Method::CgroupStat);
    assert_eq!(
        (census.counts.live, census.counts.dying),
        (Some(7), Some(60))
    );
    let expected = [
        ("/system.slice/ecs.service/agent/<gone>", 41),
        ("/system.slice/<gone>", 12),
        ("/user.slice/<gone>", 5),
        ("/<gone>", 2),
    ];
    assert_eq!(
        origins(&census),
        expected.map(|(path, n)| (path.to_owned(), n))
    );
    assert_eq!(census.origins[0].unit.as_deref(), Some("ecs.service"));
    assert!(
        census.origins.iter().all(|group| group.pages.is_none()),
        "unknown is not zero"
    );
    assert!(!census.gaps.is_empty(), "names and pins were not seen");
}

#[test]
fn a_quiet_branch_is_not_read() {
    // Below a directory without dying ones there is nothing that could be read.
    let node = v2_node(&[("", 1), ("/busy", 1), ("/quiet", 0)]);
    let node = node.file("/sys/fs/cgroup/quiet/deeper/cgroup.stat", "nonsense");
    let census = take(node.path()).expect("it can be counted");
    assert_eq!(origins(&census), [("/busy/<gone>".to_owned(), 1)]);
    assert!(
        census.gaps.iter().all(|gap| !gap.text.contains("deeper")),
        "{:?}",
        census.gaps
    );
}

#[test]
fn a_directory_that_makes_no_sense_is_a_gap() {
    let node = v2_node(&[("", 3), ("/good", 2)]);
    let node = node.file("/sys/fs/cgroup/bad/cgroup.stat", "nr_descendants many\n");
    let census = take(node.path()).expect("the rest can be counted");
    assert_eq!(
        origins(&census),
        [("/good/<gone>".to_owned(), 2), ("/<gone>".to_owned(), 1)]
    );
    assert!(
        census
            .gaps
            .iter()
            .any(|gap| gap.text.contains("/bad/cgroup.stat")),
        "{:?}",
        census.gaps
    );
}

#[test]
fn on_v1_the_kernel_counts_and_we_count_directories() {
    let mounts = "30 22 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    let top = "/sys/fs/cgroup/memory";
    let node = v1_node(
        mounts,
        68_680,
        &[
            top,
            "/sys/fs/cgroup/memory/docker",
            "/sys/fs/cgroup/memory/docker/a",
        ],
    );
    let census = take(node.path()).expect("it can be counted");
    assert_eq!(census.method, Method::ProcCgroups);
    let counts = census.counts;
    assert_eq!(
        (counts.live, counts.dying, counts.total),
        (Some(3), Some(68_677), Some(68_680))
    );
    assert_eq!(counts.leaked, None, "unknown is not zero");
}

#[test]
fn a_part_of_the_hierarchy_gives_no_wrong_count() {
    let mounts = "30 22 0:30 /docker /mnt/part rw - cgroup cgroup rw,memory\n";
    let census = take(v1_node(mounts, 500, &["/mnt/part"]).path()).expect("the total is known");
    assert_eq!((census.counts.live, census.counts.dying), (None, None));
    assert_eq!(census.counts.kernel_total, Some(500));
    let says_so = |gap: &Gap| gap.text.starts_with("one count only");
    assert!(census.gaps.iter().any(says_so), "{:?}", census.gaps);
}

#[test]
fn a_node_without_the_controller_is_not_a_clean_node() {
    let node = TempTree::node(V2)
        .file("/proc/self/cgroup", "0::/\n")
        .file("/proc/cgroups", "#subsys_name\tx\ty\tz\nmemory\t0\t1\t0\n")
        .file("/sys/fs/cgroup/cgroup.controllers", "cpu\n");
    let gap = take(node.path()).expect_err("there is nothing to count");
    assert!(
        gap.text.contains("memory controller is off"),
        "{}",
        gap.text
    );
    assert!(gap.remedy.is_some());
}

#[test]
fn captured_nodes_are_counted_by_the_way_they_allow() {
    for (story, method) in [
        ("6.12-debian13/cgroup-v2", Method::CgroupStat),
        ("6.1-debian12/cgroup-v2", Method::CgroupStat),
        ("6.18-debian12/cgroup-hybrid", Method::ProcCgroups),
    ] {
        let census = take(&fixture(story)).unwrap_or_else(|gap| panic!("{story}: {}", gap.text));
        assert_eq!(census.method, method, "{story}");
        assert!(census.counts.kernel_total.is_some(), "{story}");
    }
    for story in [
        "6.18-debian12/cgroup-namespace",
        "6.18-debian12/cgroup-part",
    ] {
        let census = take(&fixture(story)).unwrap_or_else(|gap| panic!("{story}: {}", gap.text));
        assert_eq!(
            census.counts.dying, None,
            "{story} shows a part of the node only"
        );
    }
}
