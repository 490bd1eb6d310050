//! Help, wrong use, and closed pipes.

use std::process::{Command, Stdio};

use sexton_testkit::check_snapshot;

use crate::command::{SEXTON, sexton, stderr, stdout};

#[test]
fn help_fits_80_columns() {
    for command in [
        "",
        "diagnose",
        "check",
        "image",
        "explain",
        "zombies",
        "profile",
        "record",
        "watch",
        "bundle",
        "drill",
        "fix",
        "doctor",
        "agent",
        "status",
        "incidents",
    ] {
        let args: Vec<&str> = [command, "--help"]
            .into_iter()
            .filter(|arg| !arg.is_empty())
            .collect();
        let output = sexton(&args);
        assert_eq!(output.status.code(), Some(0));
        let text = stdout(&output);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        let name = if command.is_empty() {
            "sexton"
        } else {
            command
        };
        check_snapshot!(format!("help-{name}.txt"), text);
    }
}

#[test]
fn a_fleet_without_its_program_says_what_to_install() {
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("sexton");
    std::fs::copy(SEXTON, &alone).unwrap();
    let run = || {
        let mut command = Command::new(&alone);
        command.args(["fleet", "compare", "--lake", "x"]);
        command.env("PATH", folder.path()).output().unwrap()
    };
    let output = run();
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("put it beside sexton"), "{text}");
    // The one beside sexton gets the arguments as they are, and its exit code counts.
    let program = folder.path().join("sexton-fleet");
    std::fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 3\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, executable).unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stdout(&output), "compare --lake x\n");
}

#[test]
fn wrong_use_names_the_thing_and_exits_with_2() {
    for (args, named) in [
        (&["zombies", "--by", "color"][..], "color"),
        (&["zombies", "--top", "many"][..], "many"),
        (&["zombies", "--json", "--format", "text"][..], "--format"),
        (&["exhume"][..], "exhume"),
        (&[][..], "Usage"),
    ] {
        let output = sexton(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(named),
            "{args:?}: {}",
            stderr(&output)
        );
        assert_eq!(
            stdout(&output),
            "",
            "results go to stdout, complaints do not"
        );
    }
}

#[test]
fn watch_wants_a_terminal() {
    let output = sexton(&["watch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("watch needs a terminal"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let mut child = Command::new(SEXTON)
        .args(["zombies", "--json", "--all"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(stderr(&output), "");
    assert_ne!(output.status.code(), Some(2));
}
