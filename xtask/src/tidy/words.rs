//! Words that must not be in the tree: paths of one machine, unfinished work, tests that
//! are skipped without a reason, and clocks or files in crates that are pure.
//!
//! Raw captures in `fixtures/` are other people's words, and are not read.

use super::{Complaint, tree::File, tree::Tree};

/// Where a word is forbidden.
#[derive(Clone, Copy)]
enum Place {
    /// Every text file.
    Anywhere,
    /// Rust and C.
    Code,
    /// Crates that neither read the node nor the clock, apart from their tests.
    PureCrates,
}

struct Word {
    /// Whether a line holds it.
    is_in: fn(&str) -> bool,
    place: Place,
    remedy: &'static str,
}

// The words are put together from parts, so that this file does not hold what it looks for.
const WORDS: &[Word] = &[
    Word {
        is_in: |line| {
            has_path(line, concat!("/root", "/.cargo")) || has_path(line, concat!("/wo", "rk/"))
        },
        place: Place::Anywhere,
        remedy: "a path of one machine: make it relative, or find it at run time",
    },
    Word {
        is_in: has_home,
        place: Place::Anywhere,
        remedy: "somebody's home directory: make it relative, or find it at run time",
    },
    Word {
        is_in: |line| {
            line.contains(concat!("to", "do!(")) || line.contains(concat!("unimple", "mented!("))
        },
        place: Place::Code,
        remedy: "unfinished work: finish it, or return an error that says what is missing",
    },
    Word {
        is_in: has_bare_todo,
        place: Place::Code,
        remedy: "a note without an issue: write its number behind it, as in (#12)",
    },
    Word {
        is_in: |line| line.contains(concat!("#[ign", "ore]")),
        place: Place::Code,
        remedy: "a test skipped without a reason: say what it needs, as in \"needs bpf: run cargo xtask test kernel\"",
    },
    Word {
        is_in: |line| line.contains(concat!("#[should", "_panic")),
        place: Place::Code,
        remedy: "any panic passes such a test: assert on the error instead",
    },
    Word {
        is_in: |line| {
            line.contains(concat!("SystemTime", "::now"))
                || line.contains(concat!("Instant", "::now"))
        },
        place: Place::PureCrates,
        remedy: "this crate has no clock: let the caller give the time",
    },
    Word {
        is_in: |line| line.contains(concat!("std", "::fs")),
        place: Place::PureCrates,
        remedy: "this crate reads no files: let the caller give the bytes",
    },
];

const PURE: &[&str] = &[
    "crates/sexton-model/src/",
    "crates/sexton-profile/src/",
    "crates/sexton-analysis/src/",
    "crates/sexton-report/src/",
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let files = tree
        .files
        .iter()
        .filter(|file| !file.path.starts_with("fixtures/"));
    files.flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for word in WORDS {
        let lines: Box<dyn Iterator<Item = (usize, &str)>> = match word.place {
            Place::Anywhere => Box::new(file.lines()),
            Place::Code if file.is_rust() || file.is_c() => Box::new(file.lines()),
            Place::PureCrates if PURE.iter().any(|dir| file.path.starts_with(dir)) => {
                Box::new(file.lines_without_tests())
            }
            Place::Code | Place::PureCrates => continue,
        };
        let found = lines.filter(|(_, line)| (word.is_in)(line));
        complaints.extend(found.map(|(number, _)| Complaint::new(&file.path, number, word.remedy)));
    }
    complaints
}

/// Whether a phrase is in a text, and not as part of longer words.
pub(super) fn has_word(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let rest = &text[at + phrase.len()..];
        let is_inside = |c: char| c.is_alphanumeric() || c == '_';
        !text[..at].ends_with(is_inside) && !rest.starts_with(is_inside)
    })
}

/// Whether the absolute path is in the line, and not as the end of a longer path.
fn has_path(line: &str, path: &str) -> bool {
    line.match_indices(path)
        .any(|(at, _)| is_path_start(&line[..at]))
}

fn is_path_start(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || ".-_}])>*$".contains(c))
}

/// Finds the home directory of a named user, with something in it.
fn has_home(line: &str) -> bool {
    const HOME: &str = concat!("/ho", "me/");
    line.match_indices(HOME).any(|(at, home)| {
        let rest = &line[at + home.len()..];
        let name = rest
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
            .next()
            .unwrap_or_default();
        is_path_start(&line[..at]) && !name.is_empty() && rest[name.len()..].starts_with('/')
    })
}

fn has_bare_todo(line: &str) -> bool {
    const NOTE: &str = concat!("TO", "DO");
    line.match_indices(NOTE).any(|(at, note)| {
        let rest = &line[at + note.len()..];
        let is_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let number = rest
            .strip_prefix("(#")
            .and_then(|rest| rest.split_once(')'));
        is_word && number.is_none_or(|(number, _)| number.parse::<u32>().is_err())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check_complaints;

    /// Lines are given with `~` inside the word, so that this file passes its own check.
    #[track_caller]
    fn check_line(path: &str, line: &str, forbidden: bool) {
        let text = format!("first\n{}\n", line.replace('~', ""));
        let start = format!("{path}:2: ");
        let expected: &[&str] = if forbidden { &[&start] } else { &[] };
        check_complaints(check, &Tree::of(&[(path, &text)]), expected);
    }

    #[test]
    fn paths_of_one_machine() {
        for line in [
            "see /roo~t/.cargo/bin",
            "cd /wor~k/x",
            "\"/ho~me/ann/src\"",
            "(/wor~k/)",
        ] {
            check_line("docs/a.md", line, true);
        }
        for line in [
            "/var/lib/docker/overlay2/ab/work/",
            "$dir/work/",
            "/home/",
            "ProtectHome=/home",
            "x/home/ann/",
        ] {
            check_line("docs/a.md", line, false);
        }
        check_line("fixtures/6.1-debian/quiet/mounts", "/ho~me/ann/src", false);
    }

    #[test]
    fn unfinished_work() {
        for line in [
            "to~do!()",
            "unimple~mented!(\"x\")",
            "// TO~DO: later",
            "// TO~DO(ann)",
            "// TO~DO(#x)",
        ] {
            check_line("crates/a/src/lib.rs", line, true);
        }
        for line in ["// TODO(#12): later", "// MASTODON", "const TODOS: u8 = 1;"] {
            check_line("crates/a/src/lib.rs", line, false);
        }
    }

    #[test]
    fn tests_that_are_not_tests() {
        check_line("crates/a/src/lib.rs", "#[ign~ore]", true);
        check_line(
            "crates/a/src/lib.rs",
            "#[should~_panic(expected = \"x\")]",
            true,
        );
        check_line(
            "crates/a/src/lib.rs",
            "#[ignore = \"needs root: x\"]",
            false,
        );
        check_line("docs/a.md", "Never write `#[ign~ore]`.", false);
    }

    #[test]
    fn pure_crates_have_no_clock_and_no_files() {
        for line in [
            "use std~::fs;",
            "let now = Instant~::now();",
            "SystemTime~::now()",
        ] {
            check_line("crates/sexton-model/src/lib.rs", line, true);
            check_line("crates/sexton-report/src/lib.rs", line, true);
            check_line("crates/sexton-report/tests/it/main.rs", line, false);
            check_line("crates/sexton-host/src/lib.rs", line, false);
        }
    }
}
