//! The examples of pipelines on a real root, as the machine that is being built would run them:
//! Debian with many packages, kubelet, and the agent that should not be there.
//!
//! cloud-init is that of the root. Packer and Docker themselves are run by the kernel tests, on a
//! smaller root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{ECS, program, run, write};
use crate::command::SEXTON;

/// A root over a real one: what is changed goes elsewhere, and away when the test ends.
struct Built {
    place: tempfile::TempDir,
    lower: PathBuf,
}

impl Built {
    fn new() -> Self {
        let Some(roots) = std::env::var_os("SEXTON_IMAGE_ROOTS") else {
            panic!("sexton-missing: roots: cargo xtask test image makes them");
        };
        // Of the newest release, whose libraries take what is built on any of them.
        let lower = Path::new(&roots).join("trixie");
        assert!(
            lower.is_dir(),
            "sexton-missing: roots: trixie could not be made"
        );
        let place = tempfile::tempdir().expect("a folder");
        let built = Self { place, lower };
        for folder in ["upper", "work", "root"] {
            fs::create_dir(built.place.path().join(folder)).expect("made");
        }
        let upper = |path: &str| built.place.path().join("upper").join(path);
        let kubelet = "[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\nRestartSec=10\n[Install]\nWantedBy=multi-user.target\n";
        write(upper("usr/lib/systemd/system/ecs.service"), ECS);
        write(upper("usr/lib/systemd/system/kubelet.service"), kubelet);
        for name in [
            "usr/bin/kubelet",
            "usr/libexec/amazon-ecs-init",
            "usr/bin/sudo",
        ] {
            program(upper(name));
        }
        fs::write(upper("usr/bin/sudo"), "#!/bin/sh\nexec \"$@\"\n").expect("written");
        for folder in ["tmp", "gate"] {
            fs::create_dir_all(upper(folder)).expect("made");
            fs::copy(SEXTON, upper(folder).join("sexton")).expect("copied");
            fs::write(
                upper(folder).join("policy.toml"),
                super::example("policy.toml"),
            )
            .expect("written");
        }
        let enabled = built.inside("systemctl enable ecs.service kubelet.service");
        assert!(enabled.status.success(), "{enabled:?}");
        built
    }

    /// Runs a script in the root, which is only mounted for that.
    fn inside(&self, script: &str) -> Output {
        let place = self.place.path().display();
        let mount = format!(
            "mount -t overlay overlay -o lowerdir={},upperdir={place}/upper,workdir={place}/work {place}/root",
            self.lower.display()
        );
        Command::new("unshare")
            .args(["--mount", "sh", "-c"])
            .arg(format!(
                "set -e; {mount}; exec chroot {place}/root sh -c \"$0\""
            ))
            .arg(script)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .output()
            .expect("unshare, of util-linux, runs")
    }

    #[track_caller]
    fn check(&self, script: &str, code: i32) -> String {
        let output = self.inside(script);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{script}: {said}{shown}");
        shown
    }
}

/// The lines between quotes that a list in the Packer example holds.
fn inline(text: &str) -> Vec<String> {
    let list = text.split("inline = [\n").nth(1).expect("a list");
    let lines = list
        .lines()
        .take_while(|line| !line.trim().starts_with(']'));
    lines
        .map(|line| line.trim().trim_matches([',', '"']).to_owned())
        .collect()
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn the_provisioner_of_packer_mends_a_real_root() {
    let built = Built::new();
    let steps = inline(&super::example("packer/node.pkr.hcl"));
    let [fix, script, verify] = steps.as_slice() else {
        panic!("three steps: {steps:?}");
    };
    let refused = built.check(verify, 1);
    assert!(refused.contains("ecs.service"), "{refused}");
    built.check(fix, 0);
    built.check(script, 0);
    built.check(verify, 0);
    let state = built.inside("systemctl is-enabled ecs.service kubelet.service ssh.service");
    assert_eq!(
        String::from_utf8_lossy(&state.stdout),
        "masked\nenabled\nenabled\n"
    );
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn the_gate_of_the_dockerfile_refuses_and_then_passes_a_real_root() {
    let built = Built::new();
    let text = super::example("dockerfile/Dockerfile");
    let gate = text
        .lines()
        .find_map(|line| line.strip_prefix("RUN /gate/"));
    let gate = format!("/gate/{}", gate.expect("the gate"));
    built.check(&gate, 1);
    let lines = built.check(
        "/gate/sexton image fix / --shape kubernetes-node --write dockerfile",
        0,
    );
    let step = lines.split_once("RUN ").expect("a step").1;
    built.check(step, 0);
    built.check(&gate, 0);
    // The whole as a tar, as `docker save` of a single layer holds it, passes from outside too.
    let tar = built.place.path().join("node.tar");
    let place = built.place.path().display();
    let pack = format!(
        "mount -t overlay overlay -o lowerdir={},upperdir={place}/upper,workdir={place}/work {place}/root && tar -C {place}/root --exclude=./tmp --exclude=./gate -cf {} .",
        built.lower.display(),
        tar.display()
    );
    run(Command::new("unshare").args(["--mount", "sh", "-c", &pack]));
    let policy = built.place.path().join("upper/gate/policy.toml");
    let verified = Command::new(SEXTON)
        .args(["image", "verify", "--policy"])
        .args([&policy, &tar])
        .output()
        .expect("it runs");
    assert_eq!(verified.status.code(), Some(0), "{verified:?}");
}

/// Checks user data by its schema, and runs the commands of it as a boot does.
const CLOUD_INIT: &str = r#"
set -e
cloud-init schema --config-file /tmp/user-data
python3 -c "
from cloudinit import util
from cloudinit.config.cc_bootcmd import handle

class Cloud:
    def get_instance_id(self):
        return 'i-1'

handle('bootcmd', util.load_yaml(open('/tmp/user-data').read()), Cloud(), [])
"
"#;

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn cloud_init_takes_the_step_and_mends_a_real_root() {
    let built = Built::new();
    let gate = "/gate/sexton image verify / --policy /gate/policy.toml --shape kubernetes-node";
    built.check(gate, 1);
    let step = "/gate/sexton image fix / --shape kubernetes-node --write cloud-init";
    built.check(&format!("{step} > /tmp/user-data"), 0);
    built.check(CLOUD_INIT, 0);
    built.check(gate, 0);
}
