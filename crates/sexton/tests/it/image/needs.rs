//! A fix breaks no unit that works: what a unit that stays on needs is left on, and said.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{audit, founding, systemctl_state, text, tree, unit, write};
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

#[test]
fn what_an_enabled_unit_requires_is_withheld() {
    let (_place, root) = founding();
    let service = format!("[Service]\nExecStart=/bin/sh\n{INSTALL}");
    on(&root, "postfix.service", &service);
    let refused = audit(&[text(&root)], 1);
    assert_eq!(unit(&refused, "postfix.service")["verdict"], "unwanted");
    let app = format!("[Unit]\nRequires=postfix.service\n{service}");
    on(&root, "myapp.service", &app);
    let found = audit(&[text(&root)], 1);
    let postfix = unit(&found, "postfix.service");
    assert_eq!(postfix["verdict"], "harmless", "{postfix}");
    let plan = stdout(&sexton(&["image", "fix", text(&root)]));
    let shown = "withheld  postfix.service: not masked, another unit needs it\n    why     myapp.service requires it\n";
    assert!(plan.contains(shown), "{plan}");
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(stdout(&done).contains("\npass: "), "{}", stdout(&done));
    assert_eq!(systemctl_state(&root, "postfix.service"), "enabled");
    assert_eq!(systemctl_state(&root, "ecs.service"), "masked");
    let verified = sexton(&["image", "verify", text(&root)]);
    assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
}

/// A share may be mounted by a unit, and mount(8) tells one by its source.
#[test]
fn what_a_mounted_share_needs_is_of_use() {
    let verdict = |mount: &str| {
        let (_place, root) = founding();
        let service = format!("[Service]\nExecStart=/bin/sh\n{INSTALL}");
        on(&root, "rpcbind.service", &service);
        let mount = format!("[Mount]\n{mount}\nWhere=/data\n{INSTALL}");
        on(&root, "data.mount", &mount);
        let found = audit(&[text(&root)], 1);
        unit(&found, "rpcbind.service")["verdict"].clone()
    };
    assert_eq!(verdict("What=/dev/vdb\nType=ext4"), "unwanted");
    for share in [
        "What=srv:/data\nType=nfs",
        "What=srv:/data",
        "What=[fd00::1]:/data",
    ] {
        assert_ne!(verdict(share), "unwanted", "{share}");
    }
}

#[test]
fn a_socket_that_a_started_unit_requires_is_withheld() {
    let (_place, root) = founding();
    on(
        &root,
        "rpcbind.socket",
        "[Socket]\nListenStream=/run/rpcbind.sock\n[Install]\nWantedBy=multi-user.target\n",
    );
    write(
        root.join("usr/lib/systemd/system/rpcbind.service"),
        "[Service]\nExecStart=/bin/sh\n",
    );
    on(
        &root,
        "rpc-statd.service",
        &format!("[Unit]\nRequires=rpcbind.socket\n[Service]\nExecStart=/bin/sh\n{INSTALL}"),
    );
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert_eq!(systemctl_state(&root, "rpcbind.socket"), "enabled");
    assert_eq!(systemctl_state(&root, "rpcbind.service"), "static");
}

/// An instance that only a setting names, and what it hands on to others.
#[test]
fn what_an_instance_requires_is_withheld() {
    let (_place, root) = founding();
    let service = format!("[Service]\nExecStart=/bin/sh\n{INSTALL}");
    on(&root, "postfix.service", &service);
    on(
        &root,
        "myapp.service",
        &format!("[Unit]\nWants=first@x.service\n{service}"),
    );
    for (name, requires) in [
        ("first", "second@%i.service"),
        ("second", "postfix.service"),
    ] {
        let file = format!("usr/lib/systemd/system/{name}@.service");
        let settings = format!("[Unit]\nRequires={requires}\n[Service]\nExecStart=/bin/sh\n");
        write(root.join(file), &settings);
    }
    let plan = stdout(&sexton(&["image", "fix", text(&root)]));
    assert!(
        plan.contains("why     second@x.service requires it\n"),
        "{plan}"
    );
    let found = audit(&[text(&root)], 1);
    assert_eq!(unit(&found, "postfix.service")["verdict"], "harmless");
}

/// What was broken before stays broken, and a fix does not call that done and well.
#[test]
fn a_unit_that_was_broken_before_keeps_the_gate_shut() {
    let (_place, root) = founding();
    on(
        &root,
        "gone.service",
        &format!("[Service]\nExecStart=/usr/bin/gone\n{INSTALL}"),
    );
    let before = tree(&root);
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    assert!(stdout(&done).contains("gone.service"), "{}", stdout(&done));
    assert_eq!(systemctl_state(&root, "ecs.service"), "masked");
    let undone = sexton(&["image", "undo", text(&root), "--yes"]);
    assert_eq!(undone.status.code(), Some(0), "{}", stderr(&undone));
    assert_eq!(tree(&root), before);
    assert!(fs::exists(root.join("usr/lib/systemd/system/gone.service")).expect("asked"));
}
