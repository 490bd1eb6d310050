//! `docs/codes/` is what the rules say, and `docs/facts.md` what the facts do.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sexton_testkit::TempTree;

use crate::command::{sexton, stdout};

fn pages(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).expect("a page"))
        })
        .collect()
}

/// Codes in a text: three or four capitals and three digits, as a whole word in quotes.
fn codes(text: &str) -> Vec<&str> {
    let is_code = |word: &&str| {
        let (letters, digits) = word.split_at(word.len().saturating_sub(3).min(word.len()));
        (3..=4).contains(&letters.len())
            && letters.bytes().all(|b| b.is_ascii_uppercase())
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    text.split('"')
        .filter(|word| word.is_ascii())
        .filter(is_code)
        .collect()
}

/// Every code that some command may print is explained.
#[test]
fn every_code_has_a_page() {
    let listed = stdout(&sexton(&["explain"]));
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    let mut n_codes = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let is_test = path.components().any(|part| part.as_os_str() == "tests");
            if path.is_dir() {
                folders.push(path);
            } else if is_source && !is_test {
                let text = fs::read_to_string(&path).expect("a source");
                let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
                for code in codes(shipped) {
                    let is_listed = listed.lines().any(|line| line.starts_with(code));
                    assert!(is_listed, "{}: {code} has no page", path.display());
                    n_codes += 1;
                }
            }
        }
    }
    assert!(n_codes > 20, "only {n_codes} codes were found");
    let page = stdout(&sexton(&["explain", "IMG001"]));
    assert!(page.starts_with("IMG001: "), "{page}");
}

#[test]
fn the_pages_of_rules_are_current() {
    let printed = TempTree::new();
    let output = sexton(&["generate", "codes", &printed.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/codes");
    assert!(
        pages(printed.path()) == pages(&kept),
        "docs/codes differs from the rules: run cargo xtask docs"
    );
}

#[test]
fn the_page_of_facts_is_current() {
    let printed = TempTree::new();
    let output = sexton(&["generate", "facts", &printed.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/facts.md");
    let read = |path: &Path| fs::read_to_string(path).expect("a page");
    let printed = read(&printed.path().join("facts.md"));
    // The last area is that of test builds, which no user has.
    let (printed, _) = printed
        .split_once("\n## Added in test builds")
        .expect("this is a test build");
    assert!(
        printed == read(&kept),
        "docs/facts.md differs from the definitions: run cargo xtask docs"
    );
}
