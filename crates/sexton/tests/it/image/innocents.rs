//! Units that look broken and are not, and what only looks as if it were started.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{audit, founding, program, text, unit, write};

const INSTALL: &str = "[Install]\nWantedBy=multi-user.target\n";
const SERVICE: &str = "[Service]\nExecStart=/bin/sh\n";
const UNITS: &str = "/usr/lib/systemd/system";

fn on(root: &Path, name: &str, content: &str) {
    write(root.join(&UNITS[1..]).join(name), content);
    want(root, name, &format!("{UNITS}/{name}"));
}

fn want(root: &Path, name: &str, target: &str) {
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    symlink(target, wants.join(name)).expect("linked");
}

/// The root without what is unwanted in it.
fn quiet() -> (tempfile::TempDir, std::path::PathBuf) {
    let (place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::remove_file(wants.join("ecs.service")).expect("removed");
    (place, root)
}

#[test]
fn what_only_looks_broken() {
    let (_place, root) = quiet();
    write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n");
    write(root.join("etc/group"), "root:x:0:\n");
    write(root.join("etc/userdb/json.user"), "{}");
    write(root.join("usr/lib/sysusers.d/a.conf"), "m member crew\n");
    let cloud = "system_info:\n  default_user:\n    name: ubuntu\n";
    write(root.join("etc/cloud/cloud.cfg"), cloud);
    write(root.join("srv/x/run"), "");
    let cases = [
        ("stop", "[Service]\nRemainAfterExit=yes\nExecStop=/bin/sh\n"),
        ("action", "[Unit]\nSuccessAction=reboot\n[Service]\n"),
        ("nobody", "User=nobody\n"),
        ("json", "User=json\n"),
        ("member", "User=member\nGroup=crew\n"),
        ("cloud", "User=ubuntu\nWorkingDirectory=/home/ubuntu\n"),
        (
            "bound",
            "[Service]\nBindPaths=/srv/x:/opt/t\nExecStart=/opt/t/run\n",
        ),
        (
            "extended",
            "[Service]\nExtensionImages=/x.raw\nExecStart=/usr/bin/x\n",
        ),
    ];
    for (name, settings) in cases {
        let head = if settings.starts_with('[') {
            ""
        } else {
            SERVICE
        };
        on(
            &root,
            &format!("{name}.service"),
            &format!("{head}{settings}{INSTALL}"),
        );
    }
    let found = audit(&[text(&root)], 0);
    assert_eq!(unit(&found, "cloud.service")["verdict"], "unknown");
}

#[test]
fn other_names_and_instances() {
    let (_place, root) = quiet();
    write(root.join("usr/lib/systemd/system/zone.service"), SERVICE);
    on(
        &root,
        "zone.timer",
        &format!("[Timer]\nOnCalendar=daily UTC\n{INSTALL}"),
    );
    // A drop-in in the folder of another name of the unit.
    on(
        &root,
        "named.service",
        &format!("[Service]\nExecStart=/gone\n{INSTALL}Alias=other.service\n"),
    );
    symlink(
        format!("{UNITS}/named.service"),
        root.join("etc/systemd/system/other.service"),
    )
    .expect("linked");
    write(
        root.join("etc/systemd/system/other.service.d/own.conf"),
        "[Service]\nExecStart=\nExecStart=/bin/sh\n",
    );
    // What a template lacks, its instances may have.
    write(
        root.join("usr/lib/systemd/system/many@.service"),
        &format!("[Service]\nExecStart=/gone\n{INSTALL}"),
    );
    want(
        &root,
        "many@a.service",
        "/usr/lib/systemd/system/many@.service",
    );
    write(
        root.join("etc/systemd/system/many@a.service.d/own.conf"),
        "[Service]\nExecStart=\nExecStart=/bin/sh\n",
    );
    let found = audit(&[text(&root)], 0);
    assert_eq!(unit(&found, "many@a.service")["verdict"], "unknown");
}

/// Whatever `/etc/fstab` calls it, what is mounted there at boot is not known.
#[test]
fn mounts_by_any_name() {
    let (_place, root) = quiet();
    write(
        root.join("etc/fstab"),
        "LABEL=x /opt auto defaults 0 0\n/data/srv /srv none rw,bind 0 0\nnone /tmp tmpfs size=1g 0 0\n",
    );
    on(
        &root,
        "app.service",
        &format!("[Service]\nExecStart=/opt/app/run\n{INSTALL}"),
    );
    on(
        &root,
        "srv.service",
        &format!("[Service]\nExecStart=/srv/run\n{INSTALL}"),
    );
    let skipped = "[Unit]\nConditionPathExists=/opt/app/on\n";
    on(
        &root,
        "maybe.service",
        &format!("{skipped}[Service]\nExecStart=/bin/sh\n{INSTALL}"),
    );
    let there = "/opt/app/there.service";
    symlink(there, root.join("etc/systemd/system/there.service")).expect("linked");
    want(&root, "there.service", there);
    let found = audit(&[text(&root)], 3);
    for name in ["app", "srv", "maybe", "there"] {
        let unit = unit(&found, &format!("{name}.service"));
        assert_eq!(unit["verdict"], "unknown", "{unit}");
    }
    let gaps = found["gaps"].to_string();
    assert!(
        gaps.contains("/opt: another filesystem (LABEL=x in /etc/fstab)"),
        "{gaps}"
    );
    assert!(
        gaps.contains("/srv: a boot mounts /data/srv in /etc/fstab on it"),
        "{gaps}"
    );
}

/// A link to `/dev/null` turns off what a weaker folder wants, and `.requires` needs its units.
#[test]
fn links_that_turn_off_and_links_that_need() {
    let (_place, root) = quiet();
    write(
        root.join("usr/lib/systemd/system/vendor.service"),
        "[Service]\nExecStart=/gone\n",
    );
    let vendor = root.join("usr/lib/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&vendor).expect("made");
    symlink("../vendor.service", vendor.join("vendor.service")).expect("linked");
    let before = audit(&[text(&root)], 1);
    assert_eq!(unit(&before, "vendor.service")["verdict"], "broken");
    want(&root, "vendor.service", "/dev/null");
    audit(&[text(&root)], 0);
    on(&root, "needs.service", &format!("{SERVICE}{INSTALL}"));
    let requires = root.join("etc/systemd/system/needs.service.requires");
    fs::create_dir_all(&requires).expect("made");
    symlink(
        "/usr/lib/systemd/system/lost.service",
        requires.join("lost.service"),
    )
    .expect("linked");
    let found = audit(&[text(&root)], 1);
    let needs = unit(&found, "needs.service");
    assert_eq!(needs["verdict"], "broken", "{needs}");
    let why = needs["why"].as_str().expect("text");
    assert!(
        why.contains("needs.service.requires: lost.service"),
        "{why}"
    );
}

/// Scripts of SysV become units only where systemd has the generator that makes them.
#[test]
fn scripts_without_their_generator() {
    let (_place, root) = quiet();
    let script = root.join("etc/init.d/old");
    program(script);
    fs::create_dir_all(root.join("etc/rc2.d")).expect("made");
    symlink("../init.d/old", root.join("etc/rc2.d/S01old")).expect("linked");
    let is_there = |root: &Path| {
        let found = audit(&[text(root)], 0);
        let units = found["units"].as_array().expect("units");
        units
            .iter()
            .any(|unit| unit["name"] == "old.service" && unit["on"] == true)
    };
    assert!(!is_there(&root));
    program(root.join("usr/lib/systemd/system-generators/systemd-sysv-generator"));
    assert!(is_there(&root));
    let off = root.join("etc/systemd/system-generators");
    fs::create_dir_all(&off).expect("made");
    symlink("/dev/null", off.join("systemd-sysv-generator")).expect("linked");
    assert!(!is_there(&root));
}
