//! Working units of which only one sign says that they are in use, written in a way of its own. None
//! of them is unwanted; without the sign each of them is.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::{audit, founding, program, text, unit, write};

/// A file of the root, and what it holds.
type File = (&'static str, &'static str);

struct Case {
    unit: &'static str,
    /// What makes it unwanted.
    accused: &'static [File],
    /// What shows that it is in use.
    sign: &'static [File],
    /// The verdict with the sign, and the code of the audit then.
    verdict: (&'static str, i32),
}

const HARMLESS: (&str, i32) = ("harmless", 0);

const CRI: &[File] = &[
    (
        "etc/crictl.yaml",
        "runtime-endpoint: unix:///run/containerd/containerd.sock\n",
    ),
    (
        "usr/lib/systemd/system/containerd.service",
        "[Service]\nExecStart=/bin/sh\n[Install]\nWantedBy=multi-user.target\n",
    ),
];

const CASES: &[Case] = &[
    // A service uses Docker and requires nothing.
    Case {
        unit: "docker.service",
        accused: CRI,
        sign: &[(
            "usr/lib/systemd/system/exporter.service",
            "[Service]\nExecStart=/bin/sh -c 'exec docker run --rm exporter'\n",
        )],
        verdict: HARMLESS,
    },
    // The same by a script.
    Case {
        unit: "docker.service",
        accused: CRI,
        sign: &[
            (
                "usr/lib/systemd/system/exporter.service",
                "[Service]\nExecStart=/opt/exporter/run\n",
            ),
            (
                "opt/exporter/run",
                "#!/bin/sh\nexec /usr/bin/docker run x\n",
            ),
        ],
        verdict: HARMLESS,
    },
    // The same by name alone.
    Case {
        unit: "docker.service",
        accused: CRI,
        sign: &[(
            "usr/lib/systemd/system/exporter.service",
            "[Unit]\nWants=docker.service\n[Service]\nExecStart=/bin/sh\n",
        )],
        verdict: HARMLESS,
    },
    Case {
        unit: "ecs.service",
        accused: &[],
        sign: &[
            (
                "etc/systemd/system/ecs.service.d/own.conf",
                "[Service]\nEnvironmentFile=-/etc/ecs/conf.d/*.env\n",
            ),
            ("etc/ecs/conf.d/a.env", "ECS_CLUSTER=prod\n"),
        ],
        verdict: ("unknown", 0),
    },
    Case {
        unit: "ecs.service",
        accused: &[],
        sign: &[(
            "etc/systemd/system.conf.d/ecs.conf",
            "[Manager]\nDefaultEnvironment=\"ECS_CLUSTER=prod\"\n",
        )],
        verdict: ("unknown", 0),
    },
    Case {
        unit: "ecs.service",
        accused: &[],
        sign: &[(
            "etc/cloud/cloud.cfg.d/90-ecs.cfg",
            "bootcmd:\n  - echo ECS_CLUSTER=prod >> /etc/ecs/ecs.config\n",
        )],
        verdict: ("unknown", 0),
    },
    // What would tell is on a filesystem that is not here.
    Case {
        unit: "ecs.service",
        accused: &[],
        sign: &[("etc/fstab", "UUID=2 /var ext4 defaults 0 2\n")],
        verdict: ("unknown", 3),
    },
    Case {
        unit: "snapd.service",
        accused: &[],
        sign: &[("var/lib/snapd/seed/snaps/amazon-ssm-agent_1.snap", "x")],
        verdict: HARMLESS,
    },
    Case {
        unit: "multipathd.service",
        accused: &[],
        sign: &[("etc/multipath/conf.d/san.conf", "devices {}\n")],
        verdict: HARMLESS,
    },
    Case {
        unit: "ModemManager.service",
        accused: &[],
        sign: &[(
            "etc/NetworkManager/system-connections/lte.nmconnection",
            "[connection]\ntype=gsm\n",
        )],
        verdict: HARMLESS,
    },
    Case {
        unit: "atd.service",
        accused: &[],
        sign: &[("var/spool/at/b0000101c2d3e4", "x")],
        verdict: HARMLESS,
    },
    Case {
        unit: "conntrackd.service",
        accused: &[],
        sign: &[(
            "etc/conntrackd/conntrackd.conf",
            "Sync {\n Multicast {\n  IPv4_address 225.0.0.50\n }\n}\n",
        )],
        verdict: HARMLESS,
    },
];

fn lay(root: &Path, files: &[File]) {
    for (path, content) in files {
        let whole = root.join(path);
        match content.starts_with("#!") {
            true => {
                program(whole.clone());
                std::fs::write(whole, content).expect("written");
            }
            false => write(whole, content),
        }
        let name = Path::new(path).file_name().expect("a name");
        if path.ends_with(".service") {
            want(root, name.to_str().expect("text"));
        }
    }
}

fn want(root: &Path, name: &str) {
    let link = root
        .join("etc/systemd/system/multi-user.target.wants")
        .join(name);
    let file = Path::new("/usr/lib/systemd/system").join(name);
    if link.symlink_metadata().is_err() {
        symlink(file, link).expect("linked");
    }
}

/// A node of Kubernetes on which this unit is on, and nothing else that has no use there.
fn node(name: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let (place, root) = founding();
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    for other in ["ecs.service", "docker.service"] {
        if other != name {
            std::fs::remove_file(wants.join(other)).expect("removed");
        }
    }
    let file = root.join("usr/lib/systemd/system").join(name);
    if !file.exists() {
        write(
            file,
            "[Service]\nExecStart=/bin/sh\n[Install]\nWantedBy=multi-user.target\n",
        );
    }
    want(&root, name);
    (place, root)
}

#[test]
fn one_sign_in_any_form_is_enough() {
    for case in CASES {
        let (_place, root) = node(case.unit);
        lay(&root, case.accused);
        let before = audit(&[text(&root)], 1);
        assert_eq!(unit(&before, case.unit)["verdict"], "unwanted");
        lay(&root, case.sign);
        let (verdict, code) = case.verdict;
        let after = audit(&[text(&root)], code);
        let found = unit(&after, case.unit);
        assert_eq!(found["verdict"], verdict, "{:?}: {found}", case.sign);
    }
}

/// A link in a folder of the vendor starts a unit as well, though `systemctl` calls it disabled.
#[test]
fn what_a_vendor_starts_is_on() {
    let (_place, root) = node("multipathd.service");
    write(
        root.join("usr/lib/systemd/system/iscsid.service"),
        "[Service]\nExecStart=/bin/sh\n[Install]\nWantedBy=multi-user.target\n",
    );
    let before = audit(&[text(&root)], 1);
    assert_eq!(unit(&before, "multipathd.service")["verdict"], "unwanted");
    let vendor = root.join("usr/lib/systemd/system/multi-user.target.wants");
    std::fs::create_dir_all(&vendor).expect("made");
    symlink("../iscsid.service", vendor.join("iscsid.service")).expect("linked");
    let after = audit(&[text(&root)], 0);
    assert_eq!(unit(&after, "multipathd.service")["verdict"], "harmless");
}

/// What cannot start stands in for no other unit.
#[test]
fn a_broken_clock_replaces_none() {
    let (_place, root) = node("systemd-timesyncd.service");
    let chrony = "[Service]\nExecStart=/usr/sbin/chronyd\n[Install]\nWantedBy=multi-user.target\n";
    lay(&root, &[("usr/lib/systemd/system/chrony.service", chrony)]);
    let broken = audit(&[text(&root)], 1);
    let found = unit(&broken, "systemd-timesyncd.service");
    assert_eq!(found["verdict"], "needed", "{found}");
    program(root.join("usr/sbin/chronyd"));
    let works = audit(&[text(&root)], 1);
    let found = unit(&works, "systemd-timesyncd.service");
    assert_eq!(found["verdict"], "unwanted", "{found}");
}

/// An agent that manages machines of any cloud does not tell which one it is.
#[test]
fn tools_of_a_hypervisor_stay_beside_the_agent_of_a_cloud() {
    let (_place, root) = node("open-vm-tools.service");
    let package = |name: &str| {
        format!(
            "Package: {name}\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\n\n"
        )
    };
    write(
        root.join("var/lib/dpkg/status"),
        &package("amazon-ssm-agent"),
    );
    let found = audit(&[text(&root)], 0);
    assert_eq!(unit(&found, "open-vm-tools.service")["verdict"], "unknown");
    write(
        root.join("var/lib/dpkg/status"),
        &package("ec2-instance-connect"),
    );
    let found = audit(&[text(&root)], 1);
    assert_eq!(unit(&found, "open-vm-tools.service")["verdict"], "unwanted");
}
