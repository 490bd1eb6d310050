//! Nothing compares kernel versions: distributions backport, so a version proves nothing.

use super::{Complaint, tree::Tree};

/// Put together from parts, so that this file does not hold what it looks for.
const COMPARISONS: &[&str] = &[
    concat!("KERNEL_", "VERSION("),
    concat!("LINUX_VERSION", "_CODE"),
    concat!("LINUX_KERNEL", "_VERSION"),
];

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in tree.code() {
        for (number, line) in file.lines() {
            if let Some(found) = COMPARISONS.iter().find(|word| line.contains(**word)) {
                let text = format!(
                    "`{found}` compares kernel versions: ask for the field, the symbol or the file instead \
                     (`bpf_core_field_exists`)"
                );
                complaints.push(Complaint::new(&file.path, number, text));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::check_complaints;

    #[test]
    fn every_comparison_is_found_in_c_and_rust() {
        for word in COMPARISONS {
            let line = format!("int a;\nif (v >= {word}5, 8, 0))\n");
            let tree = Tree::of(&[
                ("crates/b/src/prog/x.bpf.c", &line),
                ("crates/b/src/x.rs", &line),
                ("docs/a.md", &line),
            ]);
            check_complaints(
                check,
                &tree,
                &["crates/b/src/prog/x.bpf.c:2: `", "crates/b/src/x.rs:2: `"],
            );
        }
    }
}
