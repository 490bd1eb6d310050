//! `sexton image` on the founding image: a root with a unit like the ECS agent's Debian
//! packaging next to kubelet and Docker.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{sexton, stderr, stdout};

mod bake;
mod deployments;
mod examples;
mod fleets;
mod hostile;
mod innocents;
mod killed;
mod needs;
mod pipelines;
mod predictions;
mod protected;
mod undo;

const ECS: &str = "[Unit]\nDescription=Amazon ECS - container agent\nRequires=docker.service\nAfter=docker.service\n\
    [Service]\nType=simple\nRestart=on-failure\nRestartSec=10s\nExecStart=/usr/libexec/amazon-ecs-init start\n\
    [Install]\nWantedBy=multi-user.target\n";

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn program(path: PathBuf) {
    write(path.clone(), "#!/bin/sh\n");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

/// The root, in a folder of its own.
fn founding() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a folder");
    let root = place.path().join("root");
    let unit = |name: &str| root.join("usr/lib/systemd/system").join(name);
    write(
        root.join("etc/os-release"),
        "ID=ubuntu\nVERSION_ID=20.04\nPRETTY_NAME=\"Ubuntu 20.04\"\n",
    );
    write(unit("ecs.service"), ECS);
    write(
        unit("kubelet.service"),
        "[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\nRestartSec=10\n[Install]\nWantedBy=multi-user.target\n",
    );
    write(
        unit("docker.service"),
        "[Service]\nExecStart=/usr/bin/dockerd\nRestart=always\n[Install]\nWantedBy=multi-user.target\n",
    );
    write(
        unit("multi-user.target"),
        "[Unit]\nDescription=Multi-User System\n",
    );
    symlink("multi-user.target", unit("default.target")).expect("linked");
    for name in [
        "bin/sh",
        "usr/bin/kubelet",
        "usr/bin/dockerd",
        "usr/libexec/amazon-ecs-init",
    ] {
        program(root.join(name));
    }
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).expect("made");
    for name in ["ecs.service", "kubelet.service", "docker.service"] {
        symlink(
            Path::new("/usr/lib/systemd/system").join(name),
            wants.join(name),
        )
        .expect("linked");
    }
    (place, root)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[track_caller]
fn audit(arguments: &[&str], code: i32) -> Value {
    let output = sexton(&[&["image", "audit", "--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn unit<'a>(audit: &'a Value, name: &str) -> &'a Value {
    let units = audit["units"].as_array().expect("units");
    units
        .iter()
        .find(|unit| unit["name"] == name)
        .expect("the unit")
}

fn example(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_founding_image_is_refused() {
    let (_place, root) = founding();
    let found = audit(&[text(&root)], 1);
    assert_eq!(found["schema"], "sexton.audit/1");
    assert_eq!(found["shape"], "kubernetes-node");
    let ecs = unit(&found, "ecs.service");
    assert_eq!(ecs["verdict"], "unwanted");
    assert_eq!(ecs["state"], "enabled");
    assert_eq!(ecs["codes"], serde_json::json!(["UNIT004", "UNIT005"]));
    assert_eq!(ecs["reached_by"], serde_json::json!(["multi-user.target"]));
    let endless = found["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|finding| finding["id"] == "UNIT005:ecs.service");
    let runs = endless.expect("the loop")["evidence"][1]["value"].as_f64();
    assert_eq!(runs, Some(8_640.0));
    assert_eq!(unit(&found, "kubelet.service")["verdict"], "needed");
}

#[test]
fn as_a_node_of_ecs_it_is_needed() {
    let (_place, root) = founding();
    let found = audit(&[text(&root), "--shape", "ecs-node"], 0);
    assert_eq!(unit(&found, "ecs.service")["verdict"], "needed");
}

/// Nobody knows what the machine is for: the offender is named, bounded and not masked.
#[test]
fn where_nobody_is_sure_it_is_bounded() {
    let (_place, root) = founding();
    for name in ["kubelet.service", "docker.service"] {
        let wants = root.join("etc/systemd/system/multi-user.target.wants");
        fs::remove_file(wants.join(name)).expect("removed");
    }
    let before = tree(&root);
    let shown = stdout(&sexton(&["image", "audit", text(&root)]));
    assert!(
        shown.starts_with("No unit is known to be wrong; what this machine is for"),
        "{shown}"
    );
    assert!(
        shown.contains("\nunknown   ecs.service\n    why     it may be of no use"),
        "{shown}"
    );
    assert!(
        shown.contains("up to 8,640 memory cgroups a day"),
        "{shown}"
    );
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(systemctl_state(&root, "ecs.service"), "enabled");
    let drop_in = root.join("etc/systemd/system/ecs.service.d/50-sexton-bound.conf");
    let drop_in = fs::read_to_string(drop_in).expect("written");
    assert!(
        drop_in.contains("StartLimitIntervalSec=1h\nStartLimitBurst=10\n"),
        "{drop_in}"
    );
    let ecs = &audit(&[text(&root)], 0);
    assert_eq!(unit(ecs, "ecs.service")["codes"], serde_json::json!([]));
    let undone = sexton(&["image", "undo", text(&root), "--yes"]);
    assert_eq!(undone.status.code(), Some(0), "{}", stderr(&undone));
    assert_eq!(tree(&root), before);
}

#[test]
fn why_shows_the_way_to_a_unit() {
    let (_place, root) = founding();
    let output = sexton(&["image", "audit", text(&root), "--why", "ecs.service"]);
    let text = stdout(&output);
    assert!(text.starts_with("ecs.service is unwanted.\n"), "{text}");
    assert!(
        text.contains("multi-user.target wants ecs.service"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

/// Names, contents, targets, modes, owners and times of all that is in a folder.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let meta = fs::symlink_metadata(&folder).expect("there");
        all.insert(
            folder.clone(),
            format!("{:o} {} {}", meta.mode(), meta.mtime(), meta.mtime_nsec()),
        );
        for entry in fs::read_dir(&folder).expect("listed") {
            let path = entry.expect("an entry").path();
            let meta = fs::symlink_metadata(&path).expect("there");
            if meta.is_dir() {
                folders.push(path);
                continue;
            }
            let content = match meta.is_symlink() {
                true => fs::read_link(&path).expect("a link").display().to_string(),
                false => format!("{:?}", fs::read(&path).expect("a file")),
            };
            let shown = format!(
                "{:o} {} {} {} {content}",
                meta.mode(),
                meta.uid(),
                meta.mtime(),
                meta.mtime_nsec()
            );
            all.insert(path, shown);
        }
    }
    all
}

fn systemctl_state(root: &Path, unit: &str) -> String {
    let output = Command::new("systemctl")
        .arg("--root")
        .arg(root)
        .args(["is-enabled", unit])
        .output();
    String::from_utf8_lossy(&output.expect("systemctl runs").stdout)
        .trim()
        .to_owned()
}

#[test]
fn a_fix_is_seen_by_systemctl_and_taken_back_byte_for_byte() {
    let (_place, root) = founding();
    // An administrator's own unit in the way, and a preset of theirs.
    write(root.join("etc/systemd/system/ecs.service"), ECS);
    let before = tree(&root);
    let plan = sexton(&["image", "fix", text(&root)]);
    assert_eq!(
        (plan.status.code(), tree(&root)),
        (Some(1), before.clone()),
        "a plan changes nothing"
    );
    let refused = sexton(&["image", "fix", text(&root), "--apply"]);
    assert_eq!(
        (refused.status.code(), tree(&root)),
        (Some(2), before.clone()),
        "nobody said yes"
    );
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(systemctl_state(&root, "ecs.service"), "masked");
    assert_eq!(systemctl_state(&root, "kubelet.service"), "enabled");
    assert_eq!(
        unit(&audit(&[text(&root)], 0), "ecs.service")["preset"],
        "disabled"
    );
    assert_eq!(
        sexton(&["image", "verify", text(&root)]).status.code(),
        Some(0)
    );
    let undone = sexton(&["image", "undo", text(&root), "--yes"]);
    assert_eq!(undone.status.code(), Some(0), "{}", stderr(&undone));
    assert_eq!(tree(&root), before);
    let again = sexton(&["image", "undo", text(&root), "--yes"]);
    assert_eq!(again.status.code(), Some(2));
}

/// A package whose scripts are those that debhelper writes for a unit.
fn package(place: &Path, version: &str) -> PathBuf {
    let folder = place.join(format!("ecs-{version}"));
    let control = format!(
        "Package: amazon-ecs-init\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@example.com>\nDescription: x\n"
    );
    write(folder.join("DEBIAN/control"), &control);
    write(
        folder.join("usr/lib/systemd/system/ecs.service"),
        &format!("{ECS}# {version}\n"),
    );
    let script = "#!/bin/sh\nset -e\ndeb-systemd-helper unmask ecs.service >/dev/null || true\n\
        if deb-systemd-helper --quiet was-enabled ecs.service; then deb-systemd-helper enable ecs.service >/dev/null || true\n\
        else deb-systemd-helper update-state ecs.service >/dev/null || true\nfi\n";
    program(folder.join("DEBIAN/postinst"));
    fs::write(folder.join("DEBIAN/postinst"), script).expect("written");
    let file = place.join(format!("ecs-{version}.deb"));
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", "-b"])
        .arg(&folder)
        .arg(&file));
    file
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn install(root: &Path, package: &Path) {
    let root = format!("--root={}", root.display());
    run(Command::new("dpkg")
        .args([&root, "--force-script-chrootless,not-root,bad-path", "-i"])
        .arg(package));
}

#[test]
fn it_stays_off_when_the_package_is_upgraded() {
    let (place, root) = founding();
    fs::remove_file(root.join("etc/systemd/system/multi-user.target.wants/ecs.service"))
        .expect("removed");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates"] {
        fs::create_dir_all(root.join(folder)).expect("made");
    }
    write(root.join("var/lib/dpkg/status"), "");
    install(&root, &package(place.path(), "1.0"));
    assert_eq!(
        systemctl_state(&root, "ecs.service"),
        "enabled",
        "the package turns it on"
    );
    let found = audit(&[text(&root)], 1);
    assert_eq!(unit(&found, "ecs.service")["package"], "amazon-ecs-init");
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    install(&root, &package(place.path(), "2.0"));
    let unit_file =
        fs::read_to_string(root.join("usr/lib/systemd/system/ecs.service")).expect("there");
    assert!(unit_file.ends_with("# 2.0\n"), "the upgrade was installed");
    assert_eq!(systemctl_state(&root, "ecs.service"), "masked");
    assert_eq!(
        sexton(&["image", "verify", text(&root)]).status.code(),
        Some(0)
    );
}

#[test]
fn an_image_file_is_judged_and_not_changed() {
    let (place, root) = founding();
    let image = place.path().join("image");
    run(Command::new("tar")
        .arg("-C")
        .arg(&root)
        .arg("-czf")
        .arg(&image)
        .arg("."));
    assert_eq!(
        unit(&audit(&[text(&image)], 1), "ecs.service")["verdict"],
        "unwanted"
    );
    let refused = sexton(&["image", "fix", text(&image), "--apply", "--yes"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("root folder"),
        "{}",
        stderr(&refused)
    );
    fs::write(&image, "XFSB and no more of it, which is enough to tell").expect("written");
    let unread = sexton(&["image", "audit", text(&image)]);
    assert_eq!(unread.status.code(), Some(2));
    assert!(stderr(&unread).contains("XFS"), "{}", stderr(&unread));
}

/// What cannot start is broken; what a condition keeps off is harmless.
#[test]
fn broken_and_skipped() {
    let (_place, root) = founding();
    let on = |name: &str, content: &str| {
        write(root.join("usr/lib/systemd/system").join(name), content);
        let link = root
            .join("etc/systemd/system/multi-user.target.wants")
            .join(name);
        symlink(Path::new("/usr/lib/systemd/system").join(name), link).expect("linked");
    };
    on(
        "gone.service",
        "[Service]\nExecStart=/usr/bin/gone\nRestart=always\nRestartSec=5\n",
    );
    on(
        "noenv.service",
        "[Service]\nExecStart=/bin/sh\nEnvironmentFile=/etc/no/env\n",
    );
    on(
        "nouser.service",
        "[Service]\nExecStart=/bin/sh\nUser=nobody-here\n",
    );
    on(
        "norequired.service",
        "[Unit]\nRequires=not-there.service\n[Service]\nExecStart=/bin/sh\n",
    );
    on(
        "skipped.service",
        "[Unit]\nConditionPathExists=/etc/never\n[Service]\nExecStart=/usr/bin/gone\n",
    );
    on(
        "fine.service",
        "[Service]\nExecStart=-/usr/bin/gone\nEnvironmentFile=-/etc/no/env\n",
    );
    write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n");
    let found = audit(&[text(&root)], 1);
    let check = |name: &str, verdict: &str, why: &str| {
        let unit = unit(&found, name);
        assert_eq!(unit["verdict"], verdict, "{unit}");
        assert!(unit["why"].as_str().expect("text").contains(why), "{unit}");
    };
    check(
        "gone.service",
        "broken",
        "ExecStart=/usr/bin/gone: no such file",
    );
    check(
        "noenv.service",
        "broken",
        "EnvironmentFile=/etc/no/env: no such file",
    );
    check("nouser.service", "broken", "User=nobody-here");
    check("norequired.service", "broken", "Requires=not-there.service");
    check(
        "skipped.service",
        "harmless",
        "ConditionPathExists=/etc/never",
    );
    check("fine.service", "unknown", "");
}

#[test]
fn users_bring_files_of_their_own() {
    let (place, root) = founding();
    let offender = place.path().join("mine.toml");
    let known = "title = 'x'\nunits = ['docker.service', 'ecs.service']\nwhy = 'we do not use it'\nrisk = 'low'\nsource = ['us']\n";
    fs::write(&offender, known).expect("written");
    let shape = place.path().join("edge-node.toml");
    fs::write(
        &shape,
        "title = 'edge node'\nincludes = ['base']\nmust = ['kubelet.service']\n",
    )
    .expect("written");
    let arguments = [
        text(&root),
        "--signatures",
        text(&offender),
        "--signatures",
        text(&shape),
        "--shape",
        "edge-node",
    ];
    let found = audit(&arguments, 1);
    assert_eq!(unit(&found, "docker.service")["verdict"], "unwanted");
    assert_eq!(unit(&found, "kubelet.service")["verdict"], "needed");
}
