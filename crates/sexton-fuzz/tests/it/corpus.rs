use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use sexton_fuzz::TARGETS;

/// All corpora together; every clone of the tree pays for them.
const MAX_CORPUS_BYTES: u64 = 768 << 10;

fn here(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = listed
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

fn stems(folder: &str) -> BTreeSet<String> {
    let stem = |path: &PathBuf| path.file_stem()?.to_str().map(str::to_owned);
    entries(&here(folder)).iter().filter_map(stem).collect()
}

#[test]
fn every_input_that_was_kept_is_taken() {
    for target in TARGETS {
        let inputs = entries(&here("../../fuzz/corpus").join(target.name));
        assert!(!inputs.is_empty(), "{} has no corpus", target.name);
        for input in inputs {
            // Should it fail, this is the last line: the input to look at.
            eprintln!("{}", input.display());
            (target.run)(&fs::read(&input).expect("it can be read"));
        }
    }
}

#[test]
fn the_list_the_files_and_the_corpora_agree() {
    let listed: BTreeSet<String> = TARGETS.iter().map(|one| one.name.to_owned()).collect();
    assert_eq!(
        listed,
        stems("src/targets"),
        "crates/sexton-fuzz/src/targets"
    );
    assert_eq!(listed, stems("../../fuzz/corpus"), "fuzz/corpus");
}

#[test]
fn corpora_are_small() {
    let folders = entries(&here("../../fuzz/corpus"));
    let files = folders.iter().flat_map(|folder| entries(folder));
    let sizes = files.map(|file| file.metadata().expect("a file").len());
    let bytes: u64 = sizes.sum();
    assert!(
        bytes <= MAX_CORPUS_BYTES,
        "{bytes}: keep fewer or smaller inputs"
    );
}
