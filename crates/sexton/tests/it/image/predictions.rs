//! What a boot will refuse, and what cannot be told because it could not be seen.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{audit, founding, text, unit, write};
use crate::command::{sexton, stderr, stdout};

const INSTALL: &str = "[Install]\nWantedBy=multi-user.target\n";

fn on(root: &Path, name: &str, content: &str) {
    write(root.join("usr/lib/systemd/system").join(name), content);
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    symlink(
        Path::new("/usr/lib/systemd/system").join(name),
        wants.join(name),
    )
    .expect("linked");
}

fn executable(path: std::path::PathBuf, content: &[u8]) {
    write(path.clone(), "");
    fs::write(&path, content).expect("written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("set");
}

/// Services that cannot start: name, settings, and why.
const REFUSED: &[(&str, &str, &str)] = &[
    ("dos", "ExecStart=/usr/bin/dos\n", "carriage return"),
    ("void", "ExecStart=/usr/bin/void\n", "it is empty"),
    ("garbage", "ExecStart=/usr/bin/garbage\n", "no program"),
    (
        "foreign",
        "ExecStart=/usr/bin/foreign\n",
        "another processor",
    ),
    ("none", "Type=simple\n", "it has no ExecStart="),
    (
        "two",
        "ExecStart=/bin/sh\nExecStart=/bin/sh\n",
        "2 ExecStart=",
    ),
    (
        "cwd",
        "ExecStart=/bin/sh\nWorkingDirectory=/srv/none\n",
        "WorkingDirectory=/srv/none",
    ),
    (
        "group",
        "ExecStart=/bin/sh\nSupplementaryGroups=none-such\n",
        "SupplementaryGroups=none-such",
    ),
    (
        "jail",
        "ExecStart=/bin/sh\nRootDirectory=/srv/jail\n",
        "RootDirectory=/srv/jail",
    ),
    (
        "paths",
        "ExecStart=/bin/sh\nReadWritePaths=/srv/none\n",
        "ReadWritePaths=/srv/none",
    ),
    (
        "bind",
        "ExecStart=/bin/sh\nBindReadOnlyPaths=/srv/none:/opt/x\n",
        "BindReadOnlyPaths=/srv/none",
    ),
    (
        "image",
        "ExecStart=/bin/sh\nRootImage=/srv/none.raw\n",
        "RootImage=/srv/none.raw",
    ),
    (
        "output",
        "ExecStart=/bin/sh\nStandardOutput=append:/var/log/own/out.log\n",
        "/var/log/own is not there",
    ),
    (
        "script",
        "ExecStart=/bin/sh /opt/none.sh\n",
        "/opt/none.sh: no such script",
    ),
];

/// Services that look like these, and can.
const FINE: &[(&str, &str)] = &[
    (
        "oneshot",
        "Type=oneshot\nExecStart=/bin/sh\nExecStart=/bin/sh\n",
    ),
    (
        "stop",
        "Type=oneshot\nRemainAfterExit=yes\nExecStop=/bin/sh\n",
    ),
    (
        "state",
        "ExecStart=/bin/sh\nStateDirectory=own\nWorkingDirectory=/var/lib/own\n",
    ),
    ("maybe", "ExecStart=/bin/sh\nWorkingDirectory=-/srv/none\n"),
    ("made", "ExecStart=/bin/sh\nWorkingDirectory=/var/made\n"),
    (
        "paths-made",
        "ExecStart=/bin/sh\nStateDirectory=own\nReadWritePaths=-/srv/none /var/lib/own\n",
    ),
    ("other", "ExecStart=/bin/sh\nReadWritePaths=/srv/other/x\n"),
    (
        "maker",
        "Type=oneshot\nExecStart=/bin/sh -c 'mkdir -p /srv/other/x'\n",
    ),
    ("script-there", "ExecStart=/bin/sh /opt/there.sh\n"),
];

/// Programs that no kernel runs, for a root whose systemd is for x86-64.
fn programs(root: &Path) {
    executable(root.join("usr/bin/dos"), b"#!/bin/sh\r\nexit 0\r\n");
    executable(root.join("usr/bin/void"), b"");
    executable(root.join("usr/bin/garbage"), b"\x01\x02garbage");
    let mut elf = vec![0_u8; 64];
    elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    elf[18] = 62;
    executable(root.join("usr/lib/systemd/systemd"), &elf);
    elf[18] = 183;
    executable(root.join("usr/bin/foreign"), &elf);
}

fn services<'a>(root: &Path, services: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, settings) in services {
        let content = format!("[Service]\n{settings}{INSTALL}");
        on(root, &format!("{name}.service"), &content);
    }
}

#[test]
fn what_systemd_and_the_kernel_refuse() {
    let (_place, root) = founding();
    write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n");
    write(root.join("etc/group"), "root:x:0:\n");
    programs(&root);
    services(
        &root,
        REFUSED.iter().map(|(name, settings, _)| (*name, *settings)),
    );
    let timer = |when: &str| format!("[Timer]\nOnCalendar={when}\n{INSTALL}");
    on(&root, "lone.timer", &timer("daily"));
    let socket = format!("[Socket]\nListenStream=/run/x\n{INSTALL}");
    on(&root, "lone.socket", &socket);
    let never = root.join("usr/lib/systemd/system/never.service");
    write(never, "[Service]\nExecStart=/bin/sh\n");
    on(&root, "never.timer", &timer("every day"));
    let made = root.join("usr/lib/tmpfiles.d/made.conf");
    write(made, "d /var/made 0755 - - -\n");
    write(root.join("opt/there.sh"), "true\n");
    services(&root, FINE.iter().copied());
    on(
        &root,
        "srv-a.mount",
        &format!("[Mount]\nWhat=/dev/sdb\nWhere=/srv/b\n{INSTALL}"),
    );
    let found = audit(&[text(&root)], 1);
    let check = |name: &str, why: &str| {
        let unit = unit(&found, name);
        assert_eq!(unit["verdict"], "broken", "{unit}");
        assert!(unit["why"].as_str().expect("text").contains(why), "{unit}");
    };
    for (name, _, why) in REFUSED {
        check(&format!("{name}.service"), why);
    }
    let lone = "it starts lone.service, and there is no such unit";
    check("lone.timer", lone);
    check("lone.socket", lone);
    let never = "OnCalendar=every day: not a time of the calendar";
    check("never.timer", never);
    check("srv-a.mount", "Where= does not fit its name");
    for (name, _) in FINE {
        let unit = unit(&found, &format!("{name}.service"));
        assert_ne!(unit["verdict"], "broken", "{unit}");
    }
}

/// A boot ends in the rescue shell.
#[test]
fn a_masked_start_is_no_boot() {
    let (_place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::remove_file(wants.join("ecs.service")).expect("removed");
    audit(&[text(&root)], 0);
    let target = root.join("etc/systemd/system/multi-user.target");
    symlink("/dev/null", target).expect("linked");
    let found = audit(&[text(&root)], 1);
    let start = unit(&found, "multi-user.target");
    assert_eq!(start["verdict"], "broken", "{start}");
    let why = start["why"].as_str().expect("text");
    assert!(why.contains("ends in rescue.target"), "{why}");
}

/// A file that is too large, and what is on another filesystem: unknown, and exit code 3.
#[test]
fn what_could_not_be_seen_is_a_gap() {
    let (_place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::remove_file(wants.join("ecs.service")).expect("removed");
    let large = format!("[Service]\nExecStart=/bin/sh\n{}", "# x\n".repeat(300_000));
    on(&root, "large.service", &large);
    let found = audit(&[text(&root)], 3);
    assert_eq!(unit(&found, "large.service")["verdict"], "unknown");
    let verified = sexton(&["image", "verify", text(&root)]);
    assert_eq!(verified.status.code(), Some(3));
    let said = stdout(&verified);
    assert!(!said.starts_with("pass"), "{said}");
    fs::remove_file(wants.join("large.service")).expect("removed");
    fs::remove_file(root.join("usr/lib/systemd/system/large.service")).expect("removed");
    let app = format!("[Service]\nExecStart=/opt/app/run\n{INSTALL}");
    on(&root, "app.service", &app);
    assert_eq!(
        unit(&audit(&[text(&root)], 1), "app.service")["verdict"],
        "broken"
    );
    fs::create_dir_all(root.join("opt")).expect("made");
    write(
        root.join("etc/fstab"),
        "UUID=12-34\t/opt\text4\tdefaults\t0\t2\n",
    );
    let found = audit(&[text(&root)], 3);
    let app = unit(&found, "app.service");
    assert_eq!(app["verdict"], "unknown", "{app}");
    let gaps = found["gaps"].to_string();
    assert!(
        gaps.contains("/opt: another filesystem (UUID=12-34"),
        "{gaps}"
    );
    // With the filesystem in its place it is known again.
    write(root.join("opt/other"), "");
    assert_eq!(
        unit(&audit(&[text(&root)], 1), "app.service")["verdict"],
        "broken"
    );
}

/// Thousands of instances of one template are read once, and none of them is broken.
#[test]
fn instances_share_what_their_template_says() {
    let (_place, root) = founding();
    let template = format!("[Service]\nExecStart=/bin/sh\n{}", "# x\n".repeat(10_000));
    write(
        root.join("usr/lib/systemd/system/worker@.service"),
        &template,
    );
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    for n in 0..2_000 {
        symlink(
            "/usr/lib/systemd/system/worker@.service",
            wants.join(format!("worker@{n}.service")),
        )
        .expect("linked");
    }
    fs::remove_file(wants.join("ecs.service")).expect("removed");
    let found = audit(&[text(&root)], 0);
    assert_eq!(found["gaps"], serde_json::json!([]));
    assert_eq!(unit(&found, "worker@1999.service")["verdict"], "unknown");
}

/// A pipe as the source would be waited for.
#[test]
fn a_pipe_is_no_image() {
    let place = tempfile::tempdir().expect("a folder");
    let pipe = place.path().join("pipe");
    super::run(std::process::Command::new("mkfifo").arg(&pipe));
    let output = sexton(&["image", "audit", text(&pipe)]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

/// On a plain machine too, a loop without end and a timer of five seconds are said and denied.
#[test]
fn a_plain_machine_is_no_excuse() {
    let (place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    for name in ["ecs.service", "kubelet.service", "docker.service"] {
        fs::remove_file(wants.join(name)).expect("removed");
    }
    write(root.join("boot/vmlinuz-6.1"), "");
    let endless = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/sh\nRestart=always\n";
    on(&root, "loop.service", &format!("{endless}{INSTALL}"));
    write(
        root.join("usr/lib/systemd/system/fast.service"),
        "[Service]\nExecStart=/bin/sh\n",
    );
    on(
        &root,
        "fast.timer",
        &format!("[Timer]\nOnBootSec=1\nOnUnitActiveSec=5\n{INSTALL}"),
    );
    let shown = stdout(&sexton(&["image", "audit", text(&root)]));
    assert!(shown.contains("864,000 memory cgroups a day"), "{shown}");
    let policy = place.path().join("policy.toml");
    fs::write(&policy, "deny-endless = true\n").expect("written");
    let verified = sexton(&["image", "verify", text(&root), "--policy", text(&policy)]);
    assert_eq!(verified.status.code(), Some(1));
    let said = stdout(&verified);
    assert!(
        said.contains("loop.service") && said.contains("fast.timer"),
        "{said}"
    );
}
