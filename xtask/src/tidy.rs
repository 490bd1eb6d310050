//! `cargo xtask tidy`: the rules of this tree that the compiler cannot check.
//!
//! Each check is one file here and one line in [`CHECKS`]. It is given the whole tree as
//! text and gives back complaints, so it is tested on trees that are only values.

mod dependencies;
mod documents;
mod english;
mod layout;
mod sizes;
mod tree;
mod versions;
mod words;

use std::fmt;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace;
use tree::Tree;

/// One broken rule, where it is broken, and what to do about it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Complaint {
    path: String,
    /// Counted from 1.
    line: usize,
    text: String,
}

impl Complaint {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Complaint {
        Complaint {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

type Check = fn(&Tree) -> Vec<Complaint>;

const CHECKS: &[(&str, Check)] = &[
    ("dependencies", dependencies::check),
    ("sizes", sizes::check),
    ("layout", layout::check),
    ("words", words::check),
    ("english", english::check),
    ("versions", versions::check),
    ("documents", documents::check),
];

pub(crate) fn tidy() -> Result<ExitCode> {
    check()?;
    Ok(ExitCode::SUCCESS)
}

/// Runs every check, prints every complaint, and fails if there was one.
pub(crate) fn check() -> Result<()> {
    let tree = Tree::read(workspace::root())?;
    let mut n_complaints = 0;
    for (name, check) in CHECKS {
        let mut complaints = check(&tree);
        complaints.sort();
        n_complaints += complaints.len();
        for complaint in complaints {
            println!("{complaint} [{name}]");
        }
    }
    if n_complaints > 0 {
        bail!("tidy has {n_complaints} complaints");
    }
    println!(
        "tidy: {} files, {} checks, no complaint",
        tree.files.len(),
        CHECKS.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the complaints of one check as `path:line: text`, each named by how it starts.
    #[track_caller]
    pub(super) fn check_complaints(check: Check, tree: &Tree, expected: &[&str]) {
        let mut complaints = check(tree);
        complaints.sort();
        let shown: Vec<String> = complaints.iter().map(ToString::to_string).collect();
        let matches = shown
            .iter()
            .zip(expected)
            .all(|(shown, start)| shown.starts_with(start));
        assert!(
            shown.len() == expected.len() && matches,
            "expected {expected:#?}, got {shown:#?}"
        );
    }
}
