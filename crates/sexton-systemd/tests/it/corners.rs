//! A root of nothing but odd cases, each asked of systemctl as well.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::roots::compare;

/// What is at a path: text, or where a link leads.
const FILES: &[(&str, &str)] = &[
    (
        "usr/lib/systemd/system/plain.service",
        "[Service]\nExecStart=/bin/true\n",
    ),
    (
        "usr/lib/systemd/system/wanted.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "usr/lib/systemd/system/on.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "etc/systemd/system/multi-user.target.wants/on.service",
        "-> /usr/lib/systemd/system/on.service",
    ),
    (
        "usr/lib/systemd/system/vendor.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "usr/lib/systemd/system/multi-user.target.wants/vendor.service",
        "-> ../vendor.service",
    ),
    (
        "usr/lib/systemd/system/also.service",
        "[Install]\nAlso=also.socket\n",
    ),
    (
        "usr/lib/systemd/system/also.socket",
        "[Install]\nWantedBy=sockets.target\n",
    ),
    (
        "usr/lib/systemd/system/named.service",
        "[Install]\nAlias=other.service\n",
    ),
    (
        "usr/lib/systemd/system/named-on.service",
        "[Install]\nAlias=another.service\n",
    ),
    (
        "etc/systemd/system/another.service",
        "-> /usr/lib/systemd/system/named-on.service",
    ),
    (
        "usr/lib/systemd/system/unknown-name.service",
        "[Install]\nWantedBy=x.target\n",
    ),
    (
        "etc/systemd/system/strange.service",
        "-> /usr/lib/systemd/system/unknown-name.service",
    ),
    (
        "usr/lib/systemd/system/vendor-alias.service",
        "-> plain.service",
    ),
    (
        "usr/lib/systemd/system/masked.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    ("etc/systemd/system/masked.service", "-> /dev/null"),
    (
        "usr/lib/systemd/system/masked-now.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    ("run/systemd/system/masked-now.service", "-> /dev/null"),
    ("usr/lib/systemd/system/empty.service", ""),
    (
        "etc/systemd/system/to-empty.service",
        "-> /usr/lib/systemd/system/empty.service",
    ),
    (
        "opt/linked.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "etc/systemd/system/linked.service",
        "-> /opt/linked.service",
    ),
    ("opt/renamed.service", "[Service]\nExecStart=/bin/true\n"),
    (
        "etc/systemd/system/linked-otherwise.service",
        "-> /opt/renamed.service",
    ),
    (
        "run/systemd/system/linked-now.service",
        "-> /opt/linked.service",
    ),
    (
        "etc/systemd/system/dangling.service",
        "-> /usr/lib/systemd/system/gone.service",
    ),
    (
        "etc/systemd/system/dangling-same.service",
        "-> /opt/gone/dangling-same.service",
    ),
    ("etc/systemd/system/loop.service", "-> loop2.service"),
    ("etc/systemd/system/loop2.service", "-> loop.service"),
    (
        "etc/systemd/system/wrong-sort.service",
        "-> /usr/lib/systemd/system/also.socket",
    ),
    (
        "etc/systemd/system/some.mount",
        "-> /usr/lib/systemd/system/real.mount",
    ),
    (
        "usr/lib/systemd/system/real.mount",
        "[Mount]\nWhere=/real\n",
    ),
    (
        "usr/lib/systemd/system/t@.service",
        "[Install]\nDefaultInstance=one\nWantedBy=multi-user.target\n",
    ),
    (
        "etc/systemd/system/multi-user.target.wants/t@one.service",
        "-> /usr/lib/systemd/system/t@.service",
    ),
    (
        "usr/lib/systemd/system/u@.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "etc/systemd/system/multi-user.target.wants/u@two.service",
        "-> /usr/lib/systemd/system/u@.service",
    ),
    (
        "etc/systemd/system/v@x.service",
        "-> /usr/lib/systemd/system/u@.service",
    ),
    (
        "usr/lib/systemd/system/w@.service",
        "[Service]\nExecStart=/bin/true\n",
    ),
    ("usr/lib/systemd/system/w@fixed.service", "-> w@.service"),
    (
        "usr/lib/systemd/system/cannot@.mount",
        "[Mount]\nWhere=/x\n",
    ),
    (
        "usr/lib/systemd/system/now.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "run/systemd/system/multi-user.target.wants/now.service",
        "-> /usr/lib/systemd/system/now.service",
    ),
    (
        "run/systemd/generator/made.service",
        "[Service]\nExecStart=/bin/true\n",
    ),
    (
        "run/systemd/transient/passing.service",
        "[Service]\nExecStart=/bin/true\n",
    ),
    (
        "usr/lib/systemd/system/dropped.service",
        "[Service]\nExecStart=/bin/true\n",
    ),
    (
        "etc/systemd/system/dropped.service.d/install.conf",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "usr/lib/systemd/system/required.service",
        "[Install]\nRequiredBy=x.service\n",
    ),
    (
        "etc/systemd/system/x.service.requires/required.service",
        "-> /usr/lib/systemd/system/required.service",
    ),
    (
        "usr/lib/systemd/system/covered.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "etc/systemd/system/covered.service",
        "[Service]\nExecStart=/bin/false\n",
    ),
    (
        "usr/local/lib/systemd/system/local.service",
        "[Install]\nWantedBy=multi-user.target\n",
    ),
    (
        "usr/lib/systemd/system/ctrl-alt-del.target",
        "-> reboot.target",
    ),
    (
        "usr/lib/systemd/system/reboot.target",
        "[Install]\nAlias=ctrl-alt-del.target\n",
    ),
    (
        "etc/systemd/system/default.target",
        "-> /usr/lib/systemd/system/reboot.target",
    ),
    ("usr/lib/systemd/system/not a unit.service", "x"),
    ("usr/lib/systemd/system/readme.txt", "x"),
    (
        "usr/lib/systemd/system-preset/90-vendor.preset",
        "enable on.service\ndisable want*\nenable t@.service one\n",
    ),
    (
        "usr/lib/systemd/system-preset/95-off.preset",
        "disable named.service\n",
    ),
    ("etc/systemd/system-preset/95-off.preset", "-> /dev/null"),
    (
        "usr/lib/systemd/system-preset/99-default.preset",
        "# all others\ndisable *\n",
    ),
    (
        "etc/systemd/system-preset/10-mine.preset",
        "enable also.*\nnonsense\n  disable on.service  \n",
    ),
];

fn make(root: &Path) {
    for (path, content) in FILES {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        match content.strip_prefix("-> ") {
            Some(target) => symlink(target, path).expect("linked"),
            None => fs::write(path, content).expect("written"),
        }
    }
    symlink("usr/lib", root.join("lib")).expect("linked");
}

#[test]
fn every_odd_case_is_as_systemctl_says() {
    let root = tempfile::tempdir().expect("a folder");
    make(root.path());
    let n_units = compare(root.path());
    assert!(n_units > 40, "only {n_units}");
}

/// The same without `/lib`, as on systems that never had the merge.
#[test]
fn and_with_units_in_lib() {
    let root = tempfile::tempdir().expect("a folder");
    for (path, content) in FILES {
        let path = root
            .path()
            .join(path.replacen("usr/lib/systemd", "lib/systemd", 1));
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        match content.strip_prefix("-> ") {
            Some(target) => symlink(target.replace("/usr/lib/", "/lib/"), path).expect("linked"),
            None => fs::write(path, content).expect("written"),
        }
    }
    compare(root.path());
}
