//! The census as text and JSON, on censuses that are made up here.

use std::collections::HashMap;

use sexton_model::census::{
    Census, CgroupIx, Cost, Counts, Device, FileKind, Hierarchy, Look, Method, Pin, PinFile, State,
};
use sexton_model::gap::{Gap, Why};
use sexton_report::zombies::{By, Options, json, text};
use sexton_testkit::check_snapshot;

/// What the node of the founding incident may have looked like.
fn founding() -> Census {
    let mut census = Census::new(Method::BpfWalk, Hierarchy::V1, 4096);
    let root = census.tree.push(None, b"/");
    let slice = census.tree.push(Some(root), b"system.slice");
    let docker = census.tree.push(Some(root), b"docker");
    for name in ["kubelet.service", "docker.service", "ecs.service"] {
        census.tree.push(Some(slice), name.as_bytes());
    }
    for i in 0..68_412u32 {
        let id = format!("{:064x}", 0xec5_0000_0000u64 + u64::from(i) * 7919);
        dying(
            &mut census,
            docker,
            id.as_bytes(),
            9 * 86_400 - u64::from(i) * 11,
            &[(0, 1)],
        );
    }
    for _ in 0..28 {
        dying(&mut census, slice, b"ecs.service", 86_400, &[(1, 12)]);
    }
    census.files = vec![
        file("/var/log/ecs/ecs-agent.log", 68_412, 68_412),
        file("/usr/bin/docker", 28, 336),
    ];
    census.files[1].mapped = true;
    census.cost = Some(Cost {
        bytes_per_cgroup: 262_144,
        n_cpus: 96,
        n_nodes: 2,
    });
    census.counts.kernel_total = Some(census.tree.len() as u64);
    let image = "amazon/amazon-ecs-agent:latest".to_owned();
    census.summarize(&HashMap::from([(
        format!("{:064x}", 0xec5_0000_0000u64),
        image,
    )]));
    census.looks = looks(census.counts.dying);
    census
}

fn dying(census: &mut Census, parent: CgroupIx, name: &[u8], age: u64, pins: &[(u32, u64)]) {
    let ix = census.tree.push(Some(parent), name);
    let cgroup = census.tree.get_mut(ix);
    cgroup.state = State::Dying;
    cgroup.has_directory = false;
    cgroup.age_seconds = Some(age);
    cgroup.pages.file = pins.iter().map(|(_, pages)| pages).sum();
    cgroup.pages.kernel = 2;
    census.pins.extend(pins.iter().map(|(file, pages)| Pin {
        cgroup: ix,
        file: *file,
        pages: *pages,
    }));
}

fn file(path: &str, zombies: u64, pages: u64) -> PinFile {
    PinFile {
        path: path.into(),
        mounted: true,
        device: Device {
            major: 259,
            minor: 1,
        },
        inode: 4242,
        kind: FileKind::File,
        deleted: false,
        mapped: false,
        dirty: false,
        zombies,
        pages,
    }
}

fn looks(dying: Option<u64>) -> Vec<Look> {
    let look = |method, dying, remark: &str| Look {
        method,
        dying,
        remark: remark.into(),
    };
    vec![
        look(Method::BpfWalk, dying, "used"),
        look(
            Method::CgroupStat,
            None,
            "not possible: cgroup v1 has no cgroup.stat",
        ),
        look(
            Method::ProcCgroups,
            dying,
            "one count for the node; no names, no pins",
        ),
    ]
}

/// What is left to see without privileges.
fn blind() -> Census {
    let mut census = Census::new(Method::ProcCgroups, Hierarchy::V1, 4096);
    census.counts = Counts {
        live: Some(240),
        dying: Some(68_440),
        leaked: None,
        total: Some(68_680),
        kernel_total: Some(68_680),
    };
    census.gaps.push(
        Gap::new(
            "memcg",
            Why::Denied,
            "loading a BPF program was refused: needs CAP_BPF and CAP_PERFMON, or root",
        )
        .with_remedy("run as root: sudo sexton zombies"),
    );
    census.looks = looks(None);
    census.looks[0].remark = "not possible: loading a BPF program was refused".into();
    census
}

/// Names that try to fool a terminal, and pins of every other kind.
fn hostile() -> Census {
    let mut census = Census::new(Method::BpfWalk, Hierarchy::V2, 4096);
    let root = census.tree.push(None, b"/");
    dying(&mut census, root, b"\x1b[2Jgone\nDYING 0", 5, &[(0, 3)]);
    dying(&mut census, root, b"\xff\xfe", 5, &[]);
    let swapped = census
        .tree
        .push(Some(root), "\u{202e}gnitautcnup".as_bytes());
    census.tree.get_mut(swapped).state = State::Dying;
    census.tree.get_mut(swapped).pages.swap = 9;
    let parent = census.tree.push(Some(root), b"parent");
    census.tree.get_mut(parent).state = State::Dying;
    census.tree.get_mut(parent).has_children = true;
    dying(&mut census, parent, b"child", 5, &[(1, 2)]);
    census.files = vec![file("/log/\u{7}bell", 1, 3), file("memfd:x", 1, 2)];
    census.files[0].deleted = true;
    census.files[1].kind = FileKind::Shmem;
    census.files[1].mounted = false;
    census.sampled = true;
    census.summarize(&HashMap::new());
    census
}

fn as_text(census: &Census, options: Options) -> String {
    let mut out = Vec::new();
    text(&mut out, census, options).expect("a vector takes all");
    let text = String::from_utf8(out).expect("output is text");
    for line in text.lines().filter(|_| !options.all) {
        assert!(
            line.chars().count() <= 80,
            "{} columns: {line}",
            line.chars().count()
        );
    }
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "{text:?}"
    );
    text
}

fn as_json(census: &Census, options: Options) -> String {
    let mut out = Vec::new();
    json(&mut out, census, options).expect("a vector takes all");
    String::from_utf8(out).expect("output is text")
}

#[test]
fn the_founding_incident_is_two_lines() {
    let census = founding();
    check_snapshot!("zombies-founding.txt", as_text(&census, Options::default()));
    check_snapshot!(
        "zombies-founding-unit.txt",
        as_text(
            &census,
            Options {
                by: By::Unit,
                ..Options::default()
            }
        )
    );
    check_snapshot!(
        "zombies-founding-file.txt",
        as_text(
            &census,
            Options {
                by: By::File,
                ..Options::default()
            }
        )
    );
    check_snapshot!(
        "zombies-founding.json",
        as_json(
            &census,
            Options {
                top: Some(2),
                ..Options::default()
            }
        )
    );
}

#[test]
fn without_privileges_it_says_what_is_missing() {
    check_snapshot!("zombies-blind.txt", as_text(&blind(), Options::default()));
    check_snapshot!("zombies-blind.json", as_json(&blind(), Options::default()));
}

#[test]
fn hostile_names_are_shown_escaped() {
    let all = Options {
        all: true,
        ..Options::default()
    };
    check_snapshot!("zombies-hostile.txt", as_text(&hostile(), all));
    check_snapshot!("zombies-hostile.json", as_json(&hostile(), all));
}

#[test]
fn a_clean_node_is_one_sentence() {
    let mut census = Census::new(Method::BpfWalk, Hierarchy::V2, 4096);
    census.tree.push(None, b"/");
    census.summarize(&HashMap::new());
    census.counts.kernel_total = Some(1);
    let text = as_text(&census, Options::default());
    assert!(
        text.starts_with("0 dying memory cgroups, 1 live. The kernel counts 1 in all.\n"),
        "{text}"
    );
}
