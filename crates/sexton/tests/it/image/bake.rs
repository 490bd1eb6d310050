//! Every form of the bake step, read by the tool that it is written for and run on a root:
//! twice, because a build may run a step again, and then the gate must pass.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{ECS, founding, run, systemctl_state, text, write};
use crate::command::{sexton, stderr, stdout};

/// The founding root, with the offender's file where `systemctl mask` refuses it, and a unit
/// that is bounded: it cannot start and restarts without end.
fn root() -> (tempfile::TempDir, PathBuf) {
    let (place, root) = founding();
    write(root.join("etc/systemd/system/ecs.service"), ECS);
    (place, root)
}

/// What is written, and that writing it is no failure.
fn written(root: &Path, format: &str) -> String {
    let output = sexton(&["image", "fix", text(root), "--write", format]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

/// A step speaks of the machine it runs on; here that is the root.
pub(super) fn aimed(step: &str, root: &Path) -> String {
    let root = root.display();
    step.replace("systemctl ", &format!("systemctl --root={root} "))
        .replace("/etc/systemd", &format!("{root}/etc/systemd"))
        .replace("/etc/sexton", &format!("{root}/etc/sexton"))
}

#[track_caller]
fn check(root: &Path) {
    assert_eq!(systemctl_state(root, "ecs.service"), "masked");
    let replaced = fs::read_to_string(root.join("etc/sexton/replaced/ecs.service"));
    assert_eq!(replaced.expect("kept"), ECS);
    let preset = fs::read_to_string(root.join("etc/systemd/system-preset/00-sexton.preset"));
    assert_eq!(preset.expect("written"), "disable ecs.service\n");
    let verified = sexton(&["image", "verify", text(root)]);
    assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
}

/// Runs a script twice as a shell, and wants the gate to pass.
#[track_caller]
fn shell(root: &Path, script: &str) {
    for _ in 0..2 {
        run(Command::new("sh").args(["-c", &aimed(script, root)]));
        check(root);
    }
}

/// What a Python program makes of a form: the script that its tool would run.
fn read_by(place: &Path, form: &str, program: &str) -> String {
    let python = crate::profile::prepared("python", "python/bin/python");
    let file = place.join("form");
    fs::write(&file, form).expect("written");
    let output = Command::new(python)
        .args(["-c", program])
        .arg(&file)
        .output()
        .expect("Python runs");
    assert!(output.status.success(), "{}\n{form}", stderr(&output));
    stdout(&output)
}

#[test]
fn as_a_shell_script() {
    let (_place, root) = root();
    shell(&root, &written(&root, "shell"));
}

#[test]
fn as_lines_of_a_dockerfile() {
    let (_place, root) = root();
    let form = written(&root, "dockerfile");
    shell(&root, form.split_once("RUN ").expect("a step").1);
}

#[test]
fn as_a_cloud_config() {
    let (place, root) = root();
    let program = "import sys, yaml\n\
        text = open(sys.argv[1]).read()\n\
        assert text.startswith('#cloud-config\\n')\n\
        (script,) = yaml.safe_load(text)['bootcmd']\n\
        print(script)\n";
    shell(
        &root,
        &read_by(place.path(), &written(&root, "cloud-init"), program),
    );
}

#[test]
fn as_a_kickstart_file() {
    let (place, root) = root();
    let program = "import sys\n\
        from pykickstart.parser import KickstartParser\n\
        from pykickstart.version import makeVersion\n\
        parser = KickstartParser(makeVersion('RHEL9'))\n\
        parser.readKickstart(sys.argv[1])\n\
        assert parser.handler.services.disabled == ['ecs'], parser.handler.services\n\
        (script,) = parser.handler.scripts\n\
        print(script.script)\n";
    shell(
        &root,
        &read_by(place.path(), &written(&root, "kickstart"), program),
    );
}

#[test]
fn as_a_provisioner_of_packer() {
    let (place, root) = root();
    let program = "import hcl2, sys\n\
        build = hcl2.load(open(sys.argv[1]))\n\
        (shell,) = build['provisioner']\n\
        (inline,) = [body['inline'] for body in shell.values()]\n\
        for line in inline:\n\
        \x20   if line.startswith('\"'):\n\
        \x20       line = line[1:-1]\n\
        \x20   print(line.replace('\\\\\"', '\"').replace('\\\\\\\\', '\\\\'))\n";
    shell(
        &root,
        &read_by(place.path(), &written(&root, "packer"), program),
    );
}

#[test]
fn as_tasks_of_ansible() {
    let (place, root) = root();
    let ansible = crate::profile::prepared("python", "python/bin/ansible-playbook");
    let python = crate::profile::prepared("python", "python/bin/python");
    let tasks = aimed(&written(&root, "ansible"), &root);
    fs::write(place.path().join("tasks.yml"), tasks).expect("written");
    let play = "- hosts: all\n  gather_facts: false\n  tasks:\n    - ansible.builtin.include_tasks: tasks.yml\n";
    fs::write(place.path().join("play.yml"), play).expect("written");
    for n_run in 0..2 {
        let output = Command::new(&ansible)
            .args(["-i", "localhost,", "-c", "local", "play.yml"])
            .current_dir(place.path())
            .env("ANSIBLE_HOME", place.path().join("home"))
            .env("ANSIBLE_PYTHON_INTERPRETER", &python)
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("Ansible runs");
        let said = stdout(&output);
        assert!(output.status.success(), "{said}{}", stderr(&output));
        assert!(n_run == 0 || said.contains("changed=0"), "{said}");
        check(&root);
    }
}

/// A preset says what `systemctl preset` is to do, and that is disabling.
#[test]
fn as_a_preset() {
    let (_place, root) = root();
    let form = written(&root, "preset");
    write(
        root.join("etc/systemd/system-preset/00-sexton.preset"),
        &form,
    );
    let apply = form
        .lines()
        .find_map(|line| line.strip_prefix("# It holds from: "));
    run(Command::new("sh").args(["-c", &aimed(apply.expect("a command"), &root)]));
    assert_eq!(systemctl_state(&root, "ecs.service"), "disabled");
    let verified = sexton(&["image", "verify", text(&root)]);
    assert_eq!(verified.status.code(), Some(0), "{}", stdout(&verified));
}

/// One that is only bounded, and nothing at all.
#[test]
fn a_bound_is_written_and_nothing_is_no_failure() {
    let (_place, root) = founding();
    let unit = "[Service]\nExecStart=/usr/bin/gone\nRestart=always\nRestartSec=5\n";
    write(root.join("usr/lib/systemd/system/gone.service"), unit);
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    std::os::unix::fs::symlink(
        "/usr/lib/systemd/system/gone.service",
        wants.join("gone.service"),
    )
    .expect("linked");
    run(Command::new("sh").args(["-c", &aimed(&written(&root, "shell"), &root)]));
    let bound = root.join("etc/systemd/system/gone.service.d/50-sexton-bound.conf");
    let bound = fs::read_to_string(bound).expect("written");
    assert!(bound.ends_with("StartLimitBurst=10\n"), "{bound}");
    fs::remove_file(wants.join("gone.service")).expect("removed");
    for format in [
        "shell",
        "dockerfile",
        "ansible",
        "cloud-init",
        "preset",
        "kickstart",
        "packer",
    ] {
        written(&root, format);
    }
}
