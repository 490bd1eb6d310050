//! Which directories lie above dying cgroups, by counters alone.

use std::path::Path;

use sexton_host::cgroup::MemoryHierarchy;
use sexton_host::cgroup::survey::Survey;
use sexton_host::{FolderRoot, Host};
use sexton_model::census::Hierarchy;
use sexton_testkit::TempTree;

/// Directories as (path, used bytes, processes, dying). What is called idle has used it itself.
fn survey(hierarchy: Hierarchy, directories: &[(&str, u64, &str, u64)]) -> Survey {
    let mut tree = TempTree::new();
    for (path, used, processes, dying) in directories {
        let stat = format!("nr_descendants 0\nnr_dying_descendants {dying}\n");
        let own = if path.ends_with("idle") { *used } else { 0 };
        let own = format!("cache {own}\nrss 0\ntotal_cache 7\n");
        let used = used.to_string();
        for (name, text) in [
            ("memory.usage_in_bytes", used.as_str()),
            ("memory.current", used.as_str()),
            ("cgroup.procs", processes),
            ("cgroup.stat", &stat),
            ("memory.stat", &own),
        ] {
            tree = tree.file(&format!("cg/{path}/{name}"), text);
        }
    }
    let root = FolderRoot::open(tree.path()).expect("the folder is there");
    let memory = MemoryHierarchy {
        hierarchy,
        mount: Some("/cg".into()),
        part: "/".into(),
        narrowed_by: None,
    };
    Survey::take(&Host::unbooted(Box::new(root)), &memory).expect("directories")
}

const NODE: &[(&str, u64, &str, u64)] = &[
    (".", 900 << 20, "1\n", 20_003),
    ("docker", 80 << 20, "", 20_000),
    ("docker/live", 10 << 20, "7\n", 0),
    ("kubepods", 30 << 20, "", 0),
    ("kubepods/pod1", 30 << 20, "9\n", 0),
    ("system.slice", 40 << 20, "", 3),
    ("system.slice/a.service", 20 << 20, "8\n", 0),
    ("system.slice/idle", 19 << 20, "", 0),
];

#[test]
fn counters_tell_who_lies_above_dead_ones() {
    let found = survey(Hierarchy::V1, NODE);
    let parents: Vec<(&Path, u64)> = found
        .parents
        .iter()
        .map(|one| (one.directory.as_path(), one.orphan_bytes >> 20))
        .collect();
    let expected = [("/cg/docker", 70), ("/cg/system.slice", 1)];
    assert_eq!(parents, expected.map(|(path, mib)| (Path::new(path), mib)));
    assert_eq!(found.parents[0].living_bytes, 10 << 20);
    assert_eq!(found.leaf, Some("/cg/docker/live".into()));
    assert!(found.is_whole);
}

#[test]
fn the_kernel_counts_them_on_v2() {
    let found = survey(Hierarchy::V2, NODE);
    let parents: Vec<Option<u64>> = found.parents.iter().map(|one| one.n_dying).collect();
    assert_eq!(parents, [Some(20_000), Some(3)]);
}

#[test]
fn an_empty_directory_above_dead_ones_is_no_leaf() {
    let found = survey(
        Hierarchy::V1,
        &[
            (".", 0, "", 0),
            ("docker", 80 << 20, "", 0),
            ("quiet", 4096, "", 0),
        ],
    );
    assert_eq!(found.leaf, Some("/cg/quiet".into()));
    assert_eq!(found.parents[0].directory, Path::new("/cg/docker"));
}
