//! What a folder may not do to us.

use std::path::Path;

use sexton_host::{Host, HostError, READ_LIMIT_BYTES};
use sexton_testkit::TempTree;

use crate::open;

#[test]
fn a_file_may_be_as_large_as_the_limit_and_no_larger() {
    let tree = TempTree::node("")
        .hole("/full", READ_LIMIT_BYTES)
        .hole("/over", READ_LIMIT_BYTES + 1);
    let host = open(tree.path());
    let content = host.read("/full").expect("it is within the limit");
    assert_eq!(content.len() as u64, READ_LIMIT_BYTES);
    let error = host.read("/over").expect_err("it is over the limit");
    assert!(matches!(error, HostError::TooLarge { .. }), "{error}");
    assert_eq!(
        error.chain(),
        "/over is over 16777216 bytes, too large to be what it should be"
    );
}

#[test]
fn links_lead_nowhere_outside() {
    let outside = TempTree::new().file("/secret", "secret");
    let tree = TempTree::node("")
        .file("/inside", "inside")
        .link("/absolute", "/inside")
        .link("/out", outside.path().join("secret"))
        .link("/up", "../../../../../../../../inside")
        .link("/loop", "loop");
    let host = open(tree.path());
    // Inside, a link is resolved as the node would.
    assert_eq!(host.read("/absolute").expect("it is inside"), b"inside");
    assert_eq!(host.read("/up").expect("the top has no parent"), b"inside");
    assert!(host.read("/out").expect_err("it is outside").is_absent());
    host.read("/loop").expect_err("it leads to itself");
    assert_eq!(
        host.read_link("/out").expect("a link can be read"),
        outside.path().join("secret")
    );
}

#[test]
fn what_is_no_file_is_not_read() {
    let tree = TempTree::node("")
        .directory("/directory/below")
        .pipe("/pipe");
    let host = open(tree.path());
    host.read("/pipe").expect_err("it is a pipe");
    host.read("/directory").expect_err("it is a directory");
    host.list(Path::new("/proc/self/mountinfo"))
        .expect_err("it is a file");
}

#[test]
fn lines_are_handed_over_as_they_are() {
    let lines = |host: &Host, path: &str| {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        host.each_line(path, |line| lines.push(line.to_vec()))
            .expect("it can be read");
        lines
    };
    let tree = TempTree::node("")
        .file("/text", "one\n\ntwo \nlast")
        .file("/empty", "");
    let host = open(tree.path());
    let text: [&[u8]; 4] = [b"one", b"", b"two ", b"last"];
    assert_eq!(lines(&host, "/text"), text);
    assert!(lines(&host, "/empty").is_empty());
    host.each_line("/none", |_| ())
        .expect_err("it is not there");
    // The running system is read piece by piece.
    let live = Host::live().expect("a mount table");
    let version = live.read("/proc/version").expect("every kernel has it");
    assert_eq!(
        lines(&live, "/proc/version").join(&b'\n'),
        version.trim_ascii_end()
    );
}
