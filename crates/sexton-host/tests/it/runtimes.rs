//! Container to image, from the files of real runtimes and from hostile ones.

use std::path::Path;

use sexton_host::runtimes::{RuntimeState, states};
use sexton_host::{HostError, READ_LIMIT_BYTES};
use sexton_testkit::{TempTree, fixture};

use crate::open;

/// The ids, shortened to what tells them apart, with their images, in order.
fn images(state: &RuntimeState) -> Vec<(&str, &str)> {
    let mut images: Vec<(&str, &str)> = state
        .images
        .iter()
        .map(|(id, image)| (id.get(..4).unwrap_or(id), image.as_str()))
        .collect();
    images.sort_unstable();
    images
}

/// Asserts that one runtime has state in a folder, what it knows, and the errors.
#[track_caller]
fn check(folder: &Path, runtime: &str, expected: &[(&str, &str)], unread: &[&str]) {
    let states = states(&open(folder));
    let [state] = &states[..] else {
        panic!("expected one runtime, got {states:#?}");
    };
    assert_eq!(state.runtime, runtime);
    assert_eq!(images(state), expected);
    let said: Vec<String> = state.unread.iter().map(HostError::chain).collect();
    let alike = said
        .iter()
        .zip(unread)
        .all(|(said, start)| said.starts_with(start));
    assert!(said.len() == unread.len() && alike, "{said:#?}");
}

#[test]
fn docker() {
    let digest = "sha256:bf92339cf26326fc3ebc36ed6868e0f360e985e219693a7073d6581bbbb01cfe";
    let expected = [
        ("077b", &*format!("localhost:5000/team/bb:2@{digest}")),
        ("0c00", &*format!("localhost:5000/team/bb@{digest}")),
        // By its id, in full and in short: the name is that of the image now.
        ("25f1", "bb:1"),
        ("5136", "gone:1"),
        ("caee", "bb:1"),
        ("cba1", "bb:1"),
        ("ef0a", "bb:1"),
        ("f902", "bb:1"),
    ];
    let folder = fixture("6.18-debian12/runtimes-docker");
    check(&folder, "docker", &expected, &[]);
}

#[test]
fn docker_with_its_images_in_containerd() {
    let folder = fixture("6.18-debian13/runtimes-docker-snapshotter");
    // Only a database knows the names of these, so ids stay ids.
    let expected = [
        ("1bbc", "773971cbda99"),
        ("35ec", "bb:1"),
        ("da74", "bb:1"),
        (
            "dcb9",
            "sha256:773971cbda994e153429abef2a1d06be0784cb2d8ae85bc0846bb7b422449774",
        ),
    ];
    check(&folder, "docker", &expected, &[]);
}

#[test]
fn docker_with_another_data_root_and_mapped_users() {
    let folder = fixture("6.18-debian12/runtimes-docker-remapped");
    let expected = [("72bf", "remapped:1"), ("f8f7", "remapped:1")];
    check(&folder, "docker", &expected, &[]);
}

#[test]
fn containerd() {
    let folder = fixture("6.18-debian12/runtimes-containerd");
    let expected = [("4ae8", "lab.example/app:7"), ("79b4", "lab.example/app:7")];
    check(&folder, "containerd", &expected, &[]);
}

#[test]
fn containerd_with_another_state_folder() {
    let folder = fixture("6.18-debian12/runtimes-containerd-elsewhere");
    check(&folder, "containerd", &[("aa86", "lab.example/app:7")], &[]);
}

#[test]
fn podman() {
    let folder = fixture("6.18-debian12/runtimes-podman");
    let expected = ["58fe", "8265", "850d", "ab2b", "c198"].map(|id| (id, "localhost/bb:1"));
    check(&folder, "podman/cri-o", &expected, &[]);
}

#[test]
fn podman_with_volatile_and_transient_containers() {
    let folder = fixture("6.18-debian13/runtimes-podman-volatile");
    let expected = [
        // With --rm, and as such in the second list.
        ("029b", "localhost/bb:1"),
        // Transient, and as such below the run root.
        ("19c9", "2af9b8e3904f"),
        ("3901", "2af9b8e3904f"),
        ("3a76", "localhost/bb:1"),
        ("4f5c", "localhost/bb:1"),
        ("b780", "localhost/bb:1"),
        ("bd96", "localhost/bb:1"),
    ];
    check(&folder, "podman/cri-o", &expected, &[]);
}

#[test]
fn podman_with_another_store() {
    let folder = fixture("6.18-debian12/runtimes-podman-elsewhere");
    check(&folder, "podman/cri-o", &[("5933", "localhost/vfs:1")], &[]);
}

#[test]
fn a_node_without_runtimes() {
    let folder = fixture("6.18-debian12/cgroup-hybrid");
    assert!(states(&open(&folder)).is_empty());
}

/// Sixty-four digits.
fn id(digit: char) -> String {
    digit.to_string().repeat(64)
}

fn docker_file(id: &str) -> String {
    format!("/var/lib/docker/containers/{id}/config.v2.json")
}

fn docker_config(image: &str) -> String {
    serde_json::json!({"Config": {"Image": image}}).to_string()
}

#[test]
fn one_broken_container_of_docker_does_not_hide_the_others() {
    let tree = TempTree::node("")
        .file(&docker_file(&id('a')), "{\"Config\": {\"Ima")
        .file(&docker_file(&id('b')), docker_config("good:1"))
        .hole(&docker_file(&id('c')), READ_LIMIT_BYTES + 1)
        .file(&docker_file(&id('d')), "{\"Config\": null}")
        .file(&docker_file(&id('e')), "\0\u{fffd}")
        // Just being made or removed.
        .directory(&format!("/var/lib/docker/containers/{}", id('f')));
    let unread = [
        format!("cannot make sense of {}: EOF", docker_file(&id('a'))),
        format!("{} is over 16777216 bytes", docker_file(&id('c'))),
        format!("cannot make sense of {}: invalid", docker_file(&id('d'))),
        format!("cannot make sense of {}: expected", docker_file(&id('e'))),
    ];
    let unread = unread.each_ref().map(String::as_str);
    check(tree.path(), "docker", &[("bbbb", "good:1")], &unread);
}

#[test]
fn only_ids_name_containers_of_docker() {
    let tree = TempTree::node("")
        .file(&docker_file("not-hex"), docker_config("bad:1"))
        .file(&docker_file(&"g".repeat(64)), docker_config("bad:2"))
        .file(&docker_file(&"a".repeat(65)), docker_config("bad:3"))
        .file(&docker_file("new\nline"), docker_config("bad:4"))
        .file(&docker_file(&id('1')), docker_config("good\u{1b}[2J:1"))
        .file("/var/lib/docker/containers/stray", "a file");
    // What is odd in an image's name is left for the report to escape.
    check(tree.path(), "docker", &[("1111", "good\u{1b}[2J:1")], &[]);
}

#[test]
fn links_in_state_are_not_followed_outside() {
    let outside = TempTree::new().file("/config.v2.json", docker_config("outside:1"));
    let folder = "/var/lib/docker/containers";
    let tree = TempTree::node("")
        .link(&format!("{folder}/{}", id('a')), outside.path())
        .link(
            &docker_file(&id('b')),
            outside.path().join("config.v2.json"),
        )
        .file(&docker_file(&id('c')), docker_config("inside:1"));
    check(tree.path(), "docker", &[("cccc", "inside:1")], &[]);
}

#[test]
fn a_broken_configuration_is_said_and_the_default_place_read() {
    let config = "/etc/docker/daemon.json";
    let state = || TempTree::node("").file(&docker_file(&id('a')), docker_config("good:1"));
    let good = [("aaaa", "good:1")];
    let check_config = |content: &str, unread: &[&str]| {
        let tree = state().file(config, content);
        check(tree.path(), "docker", &good, unread);
    };
    check_config("", &[]);
    check_config(" \n", &[]);
    check_config("{}", &[]);
    check_config("{\"data-root\": \"/var/lib/docker\"}", &[]);
    check_config("{\"data-root\": \"/nowhere\"}", &[]);
    let broken = format!("cannot make sense of {config}: ");
    check_config("{\"data-root\":", &[&broken]);
    check_config("{\"data-root\": 5}", &[&broken]);
    let relative = format!("{broken}relative/path is no absolute path");
    check_config("{\"data-root\": \"relative/path\"}", &[&relative]);
}

#[test]
fn broken_configurations_of_runtimes_without_state() {
    let config = "/etc/containerd/config.toml";
    let tree = TempTree::node("").file(config, "state = \n");
    let unread = format!("cannot make sense of {config}: ");
    check(tree.path(), "containerd", &[], &[&unread]);

    let config = "/etc/containers/storage.conf";
    let tree = TempTree::node("").hole(config, READ_LIMIT_BYTES + 1);
    let unread = format!("{config} is over 16777216 bytes");
    check(tree.path(), "podman/cri-o", &[], &[&unread]);
}

#[test]
fn the_first_storage_configuration_counts_alone() {
    let store = |root: &str| format!("{root}/vfs-containers/containers.json");
    let entry = |id: &str| format!("[{{\"id\": {id:?}, \"image\": \"abc\"}}]");
    let tree = TempTree::node("")
        .file(
            "/etc/containers/storage.conf",
            "[storage]\ndriver = \"vfs\"\n",
        )
        .file(
            "/usr/share/containers/storage.conf",
            "[storage]\ngraphroot = \"/vendor\"\n",
        )
        .file(&store("/vendor"), entry(&id('a')))
        .file(&store("/var/lib/containers/storage"), entry(&id('b')));
    check(tree.path(), "podman/cri-o", &[("bbbb", "abc")], &[]);
}

#[test]
fn one_broken_entry_of_a_store_does_not_hide_the_others() {
    let folder = "/var/lib/containers/storage/overlay-containers";
    let list = r#"[
        {"id": "a1a1", "image": "0f0f", "metadata": "{\"image-name\":\"good:1\"}"},
        {"id": 5},
        {"id": "b2b2", "image": "0f0f", "metadata": "no JSON"},
        {"id": "c3c3", "image": "", "metadata": "{\"image-name\":\"\"}"},
        {"id": "d4d4", "image": "0e0e", "metadata": "{\"image-name\":\"\"}"},
        null
    ]"#;
    let names = r#"[{"id": "0f0f", "names": null}, {"id": "0e0e", "names": ["named:1"]}]"#;
    let tree = TempTree::node("")
        .file(&format!("{folder}/containers.json"), list)
        .file(&format!("{folder}/volatile-containers.json"), "[{]")
        .file(
            "/var/lib/containers/storage/overlay-images/images.json",
            names,
        );
    let expected = [("a1a1", "good:1"), ("b2b2", "0f0f"), ("d4d4", "named:1")];
    let unread = [
        &*format!("cannot make sense of {folder}/containers.json: invalid type"),
        &*format!("cannot make sense of {folder}/containers.json: invalid type"),
        &*format!("cannot make sense of {folder}/volatile-containers.json: key"),
    ];
    check(tree.path(), "podman/cri-o", &expected, &unread);
}

#[test]
fn one_broken_bundle_of_containerd_does_not_hide_the_others() {
    let folder = "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io";
    let bundle = |id: &str| format!("{folder}/{id}/config.json");
    let named = |name: &str| format!("{{\"annotations\": {{{name:?}: \"good:1\"}}}}");
    let tree = TempTree::node("")
        .file(&bundle("aaaa"), "{")
        .file(&bundle("bbbb"), named("io.kubernetes.cri.image-name"))
        .file(&bundle("cccc"), "{\"annotations\": null}")
        .file(&bundle("dddd"), named("something.else"))
        .file(&bundle("new\nline"), named("io.kubernetes.cri.image-name"))
        .file(&format!("{folder}/stray"), "a file");
    let unread = format!("cannot make sense of {}: EOF", bundle("aaaa"));
    check(tree.path(), "containerd", &[("bbbb", "good:1")], &[&unread]);
}
