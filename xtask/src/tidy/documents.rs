//! Documents stay true: links lead somewhere, ARCHITECTURE.md knows every crate and no
//! other, and a test runs every command the README shows.

use super::{Complaint, tree::File, tree::Tree};

/// The tests that run the commands of the README.
const README_TESTS: &str = "crates/sexton/tests/it/readme.rs";

/// Commands that no test can run, because they run the tests or build what is tested.
const UNTESTED: &[&str] = &["cargo xtask run", "cargo xtask test"];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    [links(tree), crates(tree), commands(tree)].concat()
}

fn links(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| file.path.ends_with(".md") && !file.path.starts_with("fixtures/"))
    {
        for (number, line) in prose(file) {
            for target in targets(line).filter(|target| !leads_somewhere(tree, file, target)) {
                let text = format!("the link to {target} leads nowhere: mend or drop it");
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
    complaints
}

/// The lines outside fenced blocks.
fn prose(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    file.lines().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// Targets of `[text](target)` and `[name]: target` that point into the tree.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let inline = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next());
    let definition = line
        .starts_with('[')
        .then(|| line.split_once("]: "))
        .flatten();
    let defined = definition.and_then(|(_, target)| target.split(' ').next());
    let without_fragment = |target: &'_ str| target.find('#').unwrap_or(target.len());
    inline
        .chain(defined)
        .map(move |target| &target[..without_fragment(target)])
        .filter(|target| {
            !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:")
        })
}

fn leads_somewhere(tree: &Tree, file: &File, target: &str) -> bool {
    let mut parts: Vec<&str> = file.path.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return false;
                }
            }
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    path.is_empty() || tree.paths.contains(&path)
}

fn crates(tree: &Tree) -> Vec<Complaint> {
    let Some(file) = tree.file("ARCHITECTURE.md") else {
        return Vec::new();
    };
    let mut complaints = Vec::new();
    let existing = tree.crates();
    for (number, line) in prose(file) {
        for name in quoted(line).filter(|name| is_crate_name(name) && !existing.contains(name)) {
            let text = format!("no crate is called {name}: add crates/{name} or do not name it");
            complaints.push(Complaint::new(&file.path, number, text));
        }
    }
    let is_name_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words: Vec<&str> = file.text.split(|c| !is_name_part(c)).collect();
    for name in existing.iter().filter(|name| !words.contains(name)) {
        let text = format!("crates/{name} is not in the map: say what it is for");
        complaints.push(Complaint::new(&file.path, 1, text));
    }
    complaints
}

/// What stands in backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_crate_name(name: &str) -> bool {
    name.strip_prefix("sexton-").is_some_and(|rest| {
        !rest.is_empty() && rest.chars().all(|c| c.is_ascii_lowercase() || c == '-')
    })
}

fn commands(tree: &Tree) -> Vec<Complaint> {
    let Some(readme) = tree.file("README.md") else {
        return Vec::new();
    };
    let tests = tree
        .file(README_TESTS)
        .map_or("", |file| file.text.as_str());
    let untested = |command: &str| !UNTESTED.contains(&command) && !tests.contains(command);
    let shown = shown_commands(readme)
        .into_iter()
        .filter(|(_, command)| untested(command));
    shown
        .map(|(number, command)| {
            let text =
                format!("no test runs `{command}`: run it in {README_TESTS}, or do not show it");
            Complaint::new(&readme.path, number, text)
        })
        .collect()
}

/// Command lines in the `console` and `sh` blocks, without their prompt.
fn shown_commands(readme: &File) -> Vec<(usize, &str)> {
    let mut commands = Vec::new();
    let mut language = None;
    for (number, line) in readme.lines() {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            language = if language.is_some() {
                None
            } else {
                Some(fence.trim())
            };
        } else if matches!(language, Some("console" | "sh")) {
            commands.extend(command(line).map(|command| (number, command)));
        }
    }
    commands
}

fn command(line: &str) -> Option<&str> {
    let line = line.trim();
    let bare = ["cargo ", "sexton ", "sudo sexton "];
    line.strip_prefix("$ ").or_else(|| {
        bare.iter()
            .any(|start| line.starts_with(start))
            .then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check_complaints;

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        check_complaints(check, &Tree::of(files), expected);
    }

    #[test]
    fn links_lead_somewhere() {
        let text = "[a](b.md) [c](../README.md#top) [d](gone.md) [e](https://example.org/x) [f](#here)\n\
                    ```text\n[g](gone.md)\n```\n[h]: ../gone/\n[i](../../out.md)\n";
        check_files(
            &[
                ("docs/a.md", text),
                ("docs/b.md", ""),
                ("README.md", "[docs](./docs/a.md)\n"),
            ],
            &[
                "docs/a.md:1: the link to gone.md",
                "docs/a.md:5: the link to ../gone/",
                "docs/a.md:6: the link to ../../out.md",
            ],
        );
    }

    #[test]
    fn the_map_names_every_crate_and_no_other() {
        check_files(
            &[
                (
                    "ARCHITECTURE.md",
                    "`sexton-model` and `sexton-gone`.\n```text\n`sexton-later`\n```\n| sexton-bpf | x |\n",
                ),
                ("crates/sexton-model/Cargo.toml", ""),
                ("crates/sexton-bpf/Cargo.toml", ""),
                ("crates/sexton-host/Cargo.toml", ""),
            ],
            &[
                "ARCHITECTURE.md:1: crates/sexton-host",
                "ARCHITECTURE.md:1: no crate is called sexton-gone",
            ],
        );
    }

    #[test]
    fn a_name_inside_another_name_is_not_that_name() {
        check_files(
            &[
                ("ARCHITECTURE.md", "| sexton-model |\n"),
                ("crates/sexton/Cargo.toml", ""),
            ],
            &["ARCHITECTURE.md:1: crates/sexton is not"],
        );
    }

    #[test]
    fn every_command_of_the_readme_is_run() {
        let readme = "```console\n$ sexton zombies\ndying 23\n$ sexton doctor\n```\n```sh\ncargo xtask run\n\
                      cargo xtask bench\nsudo sexton check\n```\n```rust\nsexton (x)\n```\nsexton in prose\n";
        check_files(
            &[
                ("README.md", readme),
                (README_TESTS, "run(\"sexton zombies\")"),
            ],
            &[
                "README.md:4: no test runs `sexton doctor`",
                "README.md:8: no test runs `cargo xtask bench`",
                "README.md:9: no test runs `sudo sexton check`",
            ],
        );
    }
}
