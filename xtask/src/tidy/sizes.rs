//! Files stay short enough to be read in one go. clippy holds the line for functions.

use super::{Complaint, tree::Tree};

const MAX_LINES: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    tree.code()
        .filter_map(|file| {
            let n_lines = file.lines_without_tests().count();
            let text = format!(
                "{n_lines} lines without tests, over {MAX_LINES}: split it by what it is about"
            );
            (n_lines > MAX_LINES).then(|| Complaint::new(&file.path, MAX_LINES + 1, text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check_complaints;

    #[test]
    fn a_long_file_is_too_long() {
        let (long, fits) = ("x\n".repeat(MAX_LINES + 1), "x\n".repeat(MAX_LINES));
        let tree = Tree::of(&[
            ("crates/a/src/long.rs", &long),
            ("crates/a/src/fits.rs", &fits),
            ("crates/a/src/long.bpf.c", &long),
            ("xtask/src/long.rs", &long),
            ("docs/long.md", &long),
        ]);
        let expected = [
            "crates/a/src/long.bpf.c:501: 501 lines",
            "crates/a/src/long.rs:501",
            "xtask/src/long.rs:501",
        ];
        check_complaints(check, &tree, &expected);
    }

    #[test]
    fn tests_do_not_count() {
        let text = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            "x\n".repeat(400),
            "    y\n".repeat(400)
        );
        check_complaints(check, &Tree::of(&[("crates/a/src/lib.rs", &text)]), &[]);
    }
}
