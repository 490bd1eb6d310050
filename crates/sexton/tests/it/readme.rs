//! Every command that the README shows is run here, as it stands there.

use std::fs;
use std::path::Path;
use std::process::Command;

use sexton_testkit::TempTree;

use crate::command::SEXTON;

/// The commands of the README, and the exit codes they may end with.
const COMMANDS: [(&str, &[i32]); 15] = [
    ("sudo sexton zombies --top 1", &[0, 1, 3]),
    ("sudo sexton diagnose --for 10s -o node.bundle", &[0, 1, 3]),
    ("sexton diagnose --from node.bundle --json", &[0, 1, 3]),
    ("sudo sexton fix --origin '/batch/job-<n>'", &[0, 3]),
    ("sudo sexton check", &[0, 1, 3]),
    ("sexton explain UNIT002", &[0]),
    ("sexton image audit /", &[0, 1, 3]),
    ("sudo sexton zombies --by file", &[0, 1, 3]),
    ("sudo sexton zombies --json --all", &[0, 1, 3]),
    ("sudo sexton record -o day.bundle --for 30s", &[0, 3]),
    ("sexton profile top --from day.bundle", &[0, 3]),
    (
        "sexton profile heatmap --from day.bundle -o day.html",
        &[0, 3],
    ),
    ("sexton bundle redact day.bundle -o plain.bundle", &[0]),
    ("sexton bundle pack day.bundle", &[0]),
    ("sexton doctor", &[0, 3]),
];

#[test]
fn the_commands_of_the_readme_work() {
    let folder = TempTree::new();
    for (line, codes) in COMMANDS {
        let args: Vec<&str> = line
            .trim_start_matches("sudo ")
            .split(' ')
            .skip(1)
            .map(|arg| arg.trim_matches('\''))
            .collect();
        let output = Command::new(SEXTON)
            .args(&args)
            .current_dir(folder.path())
            .output();
        let output = output.expect("the binary runs");
        let code = output.status.code().expect("it was not killed");
        assert!(codes.contains(&code), "{line} ended with {code}");
        let said = output.stdout.len() + output.stderr.len();
        let writes_a_file = args.contains(&"-o");
        assert!(said > 0 || writes_a_file, "{line} printed nothing");
    }
}

/// A recording that is in the tree, and what comes of it as the README shows it.
const SHOWN: &str = "sexton diagnose --from fixtures/6.18-debian12/founding-inner-loop";

#[test]
fn the_verdict_of_the_readme_is_what_comes_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).expect("a README");
    let shown = readme
        .split_once(&format!("$ {SHOWN}\n"))
        .expect("it is shown")
        .1;
    let shown = shown.split_once("\n...\n").expect("it is cut short").0;
    let output = Command::new(SEXTON)
        .args(SHOWN.split(' ').skip(1))
        .current_dir(&root)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(shown.contains("UNIT002  ecs.service"), "{shown}");
    assert!(
        said.starts_with(shown),
        "the README shows\n{shown}\nand it says\n{said}"
    );
}
