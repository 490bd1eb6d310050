//! Folded stacks are those of inferno, line for line.

use std::io::{Cursor, Read as _};

use flate2::read::GzDecoder;
use inferno::collapse::Collapse;
use inferno::collapse::perf::{Folder, Options};
use sexton_profile::export::folded;
use sexton_profile::filter::Filter;
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::names::Suffixes;

use crate::support::{RECORDINGS, ask, bytes, fixtures, perf, read};

fn ours(text: &[u8], suffixes: Suffixes) -> String {
    let read = read(&[text]);
    let mut counts = StackCounts::new(Filter {
        idle: true,
        ..Filter::default()
    });
    ask(&read, &mut counts);
    let mut out = Vec::new();
    folded::write(&mut out, &Tree::of(&counts, &read.tables, suffixes), false).unwrap();
    String::from_utf8(out).unwrap()
}

fn theirs(text: &[u8], suffixes: Suffixes) -> String {
    let mut options = Options::default();
    options.annotate_kernel = suffixes.kernel;
    let mut out = Vec::new();
    let mut folder = Folder::from(options);
    folder.collapse(Cursor::new(text), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn synthetic() -> Vec<u8> {
    let packed = bytes(&fixtures().join("synthetic/perf-script/stacks.txt.gz"));
    let mut text = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
    text
}

#[test]
fn lines_are_those_of_inferno() {
    let scripts = RECORDINGS.map(|name| bytes(&perf(&format!("{name}.script"))));
    for text in scripts.into_iter().chain([synthetic()]) {
        for kernel in [false, true] {
            let suffixes = Suffixes { kernel };
            let (ours, theirs) = (ours(&text, suffixes), theirs(&text, suffixes));
            assert!(!theirs.is_empty());
            for (our, their) in ours.lines().zip(theirs.lines()) {
                assert_eq!(our, their);
            }
            assert_eq!(ours.lines().count(), theirs.lines().count());
        }
    }
}

#[test]
fn packed_text_is_the_same_text() {
    let packed = bytes(&fixtures().join("synthetic/perf-script/stacks.txt.gz"));
    let suffixes = Suffixes::default();
    assert_eq!(ours(&packed, suffixes), ours(&synthetic(), suffixes));
}

#[test]
fn folded_stacks_come_back_as_they_were() {
    for kernel in [false, true] {
        let suffixes = Suffixes { kernel };
        let folded = ours(&synthetic(), suffixes);
        assert_eq!(ours(folded.as_bytes(), suffixes), folded);
    }
}
