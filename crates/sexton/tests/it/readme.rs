//! Every command that the README shows is run here, as it stands there.

use std::process::Command;

use sexton_testkit::TempTree;

use crate::command::SEXTON;

/// The commands of the README, and the exit codes they may end with.
const COMMANDS: [(&str, &[i32]); 8] = [
    ("sudo sexton zombies", &[0, 1, 3]),
    ("sudo sexton zombies --top 1", &[0, 1, 3]),
    ("sudo sexton zombies --by file", &[0, 1, 3]),
    ("sudo sexton zombies --by unit --top 3", &[0, 1, 3]),
    ("sudo sexton zombies --json --all", &[0, 1, 3]),
    ("sudo sexton zombies --all-pages", &[0, 1, 3]),
    ("sudo sexton record -o node.bundle --for 30s", &[0, 3]),
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
            .collect();
        let output = Command::new(SEXTON)
            .args(&args)
            .current_dir(folder.path())
            .output();
        let output = output.expect("the binary runs");
        let code = output.status.code().expect("it was not killed");
        assert!(codes.contains(&code), "{line} ended with {code}");
        let said = output.stdout.len() + output.stderr.len();
        assert!(said > 0, "{line} printed nothing");
    }
}
