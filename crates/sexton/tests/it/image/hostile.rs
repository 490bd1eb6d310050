//! Roots and images that somebody made to do harm, with the whole command.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::{founding, run, text, write};
use crate::command::{SEXTON, sexton, stdout};

/// The peak of memory of an audit, and what it printed.
fn measured(source: &Path) -> (u64, String, Option<i32>) {
    let output = Command::new("/usr/bin/time")
        .args(["-q", "-f", "%M", SEXTON, "image", "audit"])
        .arg(source)
        .output()
        .expect("GNU time runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let peak = said.lines().last().and_then(|line| line.parse().ok());
    let shown = String::from_utf8(output.stdout).expect("text");
    (
        peak.unwrap_or_else(|| panic!("{said}")),
        shown,
        output.status.code(),
    )
}

/// No terminal is told anything by an image.
#[track_caller]
fn check_is_plain(shown: &str) {
    let is_control = |c: char| c.is_control() && c != '\n';
    assert!(!shown.contains(is_control), "{shown:?}");
}

#[test]
fn pipes_loops_and_long_chains_cost_nothing() {
    let (_place, root) = founding();
    let unit = |name: &str| root.join("usr/lib/systemd/system").join(name);
    let want = |name: &str| {
        let link = root
            .join("etc/systemd/system/multi-user.target.wants")
            .join(name);
        symlink(Path::new("/usr/lib/systemd/system").join(name), link).expect("linked");
    };
    run(Command::new("mkfifo").arg(unit("pipe.service")));
    run(Command::new("mkfifo").arg(root.join("etc/passwd")));
    symlink("loop.service", unit("loop.service")).expect("linked");
    for n in 0..60 {
        symlink(
            format!("chain{}.service", n + 1),
            unit(&format!("chain{n}.service")),
        )
        .expect("linked");
    }
    write(unit("chain60.service"), "[Service]\nExecStart=/bin/sh\n");
    symlink("../../../../../../../../etc/hostname", unit("up.service")).expect("linked");
    let big = fs::File::create(unit("big.service")).expect("made");
    big.set_len(10 << 30).expect("sparse");
    for name in [
        "pipe.service",
        "loop.service",
        "chain0.service",
        "up.service",
        "big.service",
    ] {
        want(name);
    }
    let (peak_kib, shown, code) = measured(&root);
    assert_eq!(code, Some(1), "{shown}");
    assert!(peak_kib < 64 << 10, "{peak_kib} KiB");
    assert!(
        shown.contains("ecs.service"),
        "the rest is judged all the same: {shown}"
    );
    assert!(shown.contains("big.service: file too large"), "{shown}");
    check_is_plain(&shown);
}

#[test]
fn names_and_texts_tell_the_terminal_nothing() {
    let (_place, root) = founding();
    let folder = root.join("usr/lib/systemd/system");
    let names: [&[u8]; 6] = [
        b"nl\nx.service",
        b"esc\x1b[31m.service",
        b"bad\xff\xfe.service",
        b"-rf.service",
        b"$(id).service",
        b"a;b.service",
    ];
    for name in names {
        let name = std::ffi::OsStr::from_bytes(name);
        fs::write(folder.join(name), "[Service]\nExecStart=/gone\n").expect("written");
        let link = root
            .join("etc/systemd/system/multi-user.target.wants")
            .join(name);
        symlink(Path::new("/usr/lib/systemd/system").join(name), link).expect("linked");
    }
    write(
        root.join("etc/os-release"),
        "ID=\x1b[31m\nPRETTY_NAME=\"x\x1b]0;y\x07\"\n",
    );
    write(
        folder.join("ecs.service"),
        "[Service]\nExecStart=/gone\x1b[31m\x07\nRestart=always\nRestartSec=9\n",
    );
    for arguments in [
        &["audit", "--all"][..],
        &["audit", "--json"],
        &["audit", "--why", "ecs.service"],
        &["fix"],
        &["verify"],
        &["verify", "--format", "junit"],
    ] {
        let output = sexton(&[&["image"], arguments, &[text(&root)]].concat());
        check_is_plain(&stdout(&output));
    }
    let script = stdout(&sexton(&["image", "fix", text(&root), "--write", "shell"]));
    assert!(
        script.contains("ecs.service") && !script.contains("$(id)"),
        "{script}"
    );
}

/// More units than any system has, and more settings than any has, cost bounded memory.
#[test]
fn too_many_units_are_a_gap() {
    let (_place, root) = founding();
    let folder = root.join("usr/lib/systemd/system");
    for n in 0..10_500 {
        fs::write(folder.join(format!("u{n}.service")), "").expect("written");
    }
    let long = "a=\n".repeat(300_000);
    for n in 0..60 {
        fs::write(folder.join(format!("a{n}.service")), &long).expect("written");
    }
    let (peak_kib, shown, code) = measured(&root);
    assert!(matches!(code, Some(1 | 3)), "{shown}");
    assert!(
        shown.contains("only the first 10000 of its entries"),
        "{shown}"
    );
    assert!(shown.contains("over 32 MiB of them"), "{shown}");
    assert!(peak_kib < 128 << 10, "{peak_kib} KiB");
}

/// Settings that all units share count for each of them: else a few files would cost minutes.
/// What is beyond the bounds is not known, and not missing.
#[test]
fn shared_settings_are_bounded() {
    let (_place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::remove_file(wants.join("ecs.service")).expect("removed");
    let folder = root.join("usr/lib/systemd/system");
    for n in 0..1_000 {
        let name = format!("u{n:04}.service");
        let text = "[Unit]\nRequires=z.service\n[Service]\nExecStart=/bin/sh\n";
        fs::write(folder.join(&name), text).expect("written");
        let target = Path::new("/usr/lib/systemd/system").join(&name);
        symlink(target, wants.join(&name)).expect("linked");
    }
    for n in 0..1_000 {
        let name = format!("etc/systemd/system/service.d/{n}.conf");
        write(root.join(name), &"[Service]\nUMask=077\n".repeat(20));
    }
    write(folder.join("z.service"), "[Service]\nExecStart=/bin/sh\n");
    let (peak_kib, shown, code) = measured(&root);
    assert_eq!(code, Some(3), "{shown}");
    assert!(shown.contains("too many settings"), "{shown}");
    assert!(shown.contains(" 0 broken"), "{shown}");
    assert!(peak_kib < 128 << 10, "{peak_kib} KiB");
}

#[test]
fn a_damaged_filesystem_is_not_an_empty_one() {
    let (place, root) = founding();
    let image = place.path().join("image");
    run(Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-d"])
        .arg(&root)
        .arg(&image)
        .arg("8M"));
    run(Command::new("debugfs")
        .args(["-w", "-R", "sif / block[0] 0"])
        .arg(&image));
    let output = sexton(&["image", "audit", text(&image)]);
    let said = crate::command::stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("cannot open this as a root filesystem: ext4: /"),
        "{said}"
    );
}

/// A chain of units has ways as long as itself.
#[test]
fn a_long_chain_of_units_costs_no_more_than_as_many_others() {
    let (_place, root) = founding();
    let folder = root.join("usr/lib/systemd/system");
    for n in 0..4_000 {
        let text = format!(
            "[Unit]\nWants=u{}.service\n[Service]\nExecStart=/bin/sh\n",
            n + 1
        );
        fs::write(folder.join(format!("u{n}.service")), text).expect("written");
    }
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    symlink(
        "/usr/lib/systemd/system/u0.service",
        wants.join("u0.service"),
    )
    .expect("linked");
    let (peak_kib, shown, code) = measured(&root);
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("4,004 units on"), "{shown}");
    assert!(peak_kib < 128 << 10, "{peak_kib} KiB");
}
