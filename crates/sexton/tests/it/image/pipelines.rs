//! The gate, bake steps, differences, and the examples of pipelines.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{example, founding, run, text};
use crate::command::{sexton, stderr, stdout};

#[test]
fn the_gate_speaks_to_pipelines() {
    let (place, root) = founding();
    let policy = place.path().join("policy.toml");
    fs::write(
        &policy,
        "shape = 'kubernetes-node'\nrequire = ['kubelet.service', 'chrony*']\n",
    )
    .expect("written");
    let verify = |format: &str| {
        let output = sexton(&[
            "image",
            "verify",
            text(&root),
            "--policy",
            text(&policy),
            "--format",
            format,
        ]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        stdout(&output)
    };
    let junit = verify("junit");
    assert!(junit.contains("failures=\"2\""), "{junit}");
    assert!(junit.contains("<failure type=\"UNIT004\""), "{junit}");
    let sarif: Value = serde_json::from_str(&verify("sarif")).expect("JSON");
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
        ["uri"];
    assert_eq!(place, "usr/lib/systemd/system/ecs.service");
    let json: Value = serde_json::from_str(&verify("json")).expect("JSON");
    assert_eq!(json["pass"], false);
    fs::write(&policy, "shape = 'kubernetes-node'\nallow = ['ecs.*']\n").expect("written");
    let allowed = sexton(&["image", "verify", text(&root), "--policy", text(&policy)]);
    assert_eq!(allowed.status.code(), Some(0), "{}", stdout(&allowed));
    fs::write(&policy, "shapes = 'x'\n").expect("written");
    let wrong = sexton(&["image", "verify", text(&root), "--policy", text(&policy)]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("shapes"), "{}", stderr(&wrong));
}

#[test]
fn a_difference_that_matters_comes_first() {
    let (_place, a) = founding();
    let (_other, b) = founding();
    let done = sexton(&["image", "fix", text(&b), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0));
    let output = sexton(&["image", "diff", text(&a), text(&b), "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let first = &found["differences"][0];
    assert_eq!(
        (&first["name"], &first["what"]),
        (&Value::from("ecs.service"), &Value::from("verdict"))
    );
    assert_eq!(
        (&first["before"], &first["after"]),
        (&Value::from("unwanted"), &Value::from("off"))
    );
    assert_eq!(
        sexton(&["image", "diff", text(&a), text(&a)]).status.code(),
        Some(0)
    );
}

/// Runs a step of an example in a folder, with this sexton as `sexton`.
fn step(folder: &Path, script: &str) -> Option<i32> {
    let program = Path::new(crate::command::SEXTON)
        .parent()
        .expect("a folder");
    let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", program.display());
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", path)
        .output();
    output.expect("a shell").status.code()
}

/// The step of the GitHub Actions example that audits, on an image that must not pass and on
/// one that must. What builds and uploads is not run here.
#[test]
fn the_example_for_github_actions_refuses_the_image() {
    let (place, root) = founding();
    let text_of = example("github-actions/image.yml");
    let step_text = text_of
        .split("- name: Audit\n        run: |\n")
        .nth(1)
        .expect("the step");
    let script: Vec<&str> = step_text
        .lines()
        .take_while(|line| line.starts_with("          "))
        .map(str::trim)
        .collect();
    fs::create_dir(place.path().join("examples")).expect("made");
    fs::write(
        place.path().join("examples/policy.toml"),
        example("policy.toml"),
    )
    .expect("written");
    let pack = || {
        run(Command::new("tar")
            .arg("-C")
            .arg(&root)
            .arg("-cf")
            .arg(place.path().join("node.tar"))
            .arg("."))
    };
    pack();
    assert_eq!(step(place.path(), &script.join("\n")), Some(1));
    let sarif = fs::read(place.path().join("sexton.sarif")).expect("written");
    let sarif: Value = serde_json::from_slice(&sarif).expect("JSON");
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(
        sexton(&["image", "fix", text(&root), "--apply", "--yes"])
            .status
            .code(),
        Some(0)
    );
    pack();
    assert_eq!(step(place.path(), &script.join("\n")), Some(0));
}

/// The last step of the Packer example, on the file that it would ship. What it runs inside
/// the machine is run on a real root, in `examples.rs`.
#[test]
fn the_example_for_packer_refuses_the_image() {
    let (place, root) = founding();
    let text_of = example("packer/node.pkr.hcl");
    let line = text_of
        .lines()
        .find(|line| line.contains("output-node/packer-node"))
        .expect("the step");
    let script = line
        .split('"')
        .nth(1)
        .expect("a command")
        .replace("${var.sexton}", "sexton");
    fs::create_dir(place.path().join("output-node")).expect("made");
    fs::write(
        place.path().join("policy.toml"),
        example("packer/policy.toml"),
    )
    .expect("written");
    run(Command::new("mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-d"])
        .arg(&root)
        .arg(place.path().join("output-node/packer-node"))
        .arg("8M"));
    assert_eq!(step(place.path(), &script), Some(1));
}
