//! `docs/codes/` is what the rules say.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use sexton_testkit::TempTree;

use crate::command::sexton;

fn pages(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).expect("a page"))
        })
        .collect()
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
