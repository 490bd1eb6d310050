//! A fix that is killed, runs out of room or may not write: it can always be taken back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{ECS, founding, systemctl_state, text, tree, write};
use crate::command::{SEXTON, sexton, stderr};
use crate::unprivileged::Copy;

/// Runs sexton and has the kernel do `what` at the n-th of these calls.
fn injected(arguments: &[&str], call: &str, what: &str, n: usize) -> Output {
    Command::new("strace")
        .args(["-f", "-o", "/dev/null"])
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:{what}:when={n}")])
        .arg(SEXTON)
        .args(arguments)
        .output()
        .expect("strace runs: cargo xtask test installs it")
}

/// Calls `check` for every moment at which something is changed, until there is none left, and
/// says how many there were.
fn at_every_change(calls: &[&str], mut check: impl FnMut(&str, usize) -> bool) -> usize {
    let n_of = |call: &&str| (1..).take_while(|n| check(call, *n)).count();
    calls.iter().map(n_of).sum()
}

const CHANGES: &[&str] = &["mkdirat", "unlinkat", "symlinkat", "renameat", "fsync"];

/// The root with a unit of an administrator in the way, so that content is replaced too.
fn prepared() -> (tempfile::TempDir, PathBuf) {
    let (place, root) = founding();
    write(root.join("etc/systemd/system/ecs.service"), ECS);
    (place, root)
}

/// Without the times of folders above the undo file: a kill between the two last steps of all
/// leaves those.
fn all_but_times(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = tree(root);
    all.remove(root);
    all.remove(&root.join("etc"));
    all
}

#[test]
fn a_fix_that_is_killed_at_any_step_is_taken_back() {
    let n_kills = at_every_change(CHANGES, |call, n| {
        let (_place, root) = prepared();
        let (before, all_but) = (tree(&root), all_but_times(&root));
        let apply = ["image", "fix", text(&root), "--apply", "--yes"];
        if injected(&apply, call, "signal=KILL", n).status.success() {
            return false;
        }
        // Before the first change there is nothing to take back, and that is said.
        let undone = sexton(&["image", "undo", text(&root), "--yes"]);
        let said = stderr(&undone);
        match undone.status.success() {
            true => assert_eq!(tree(&root), before, "{call} {n}"),
            false => {
                assert!(said.contains("did not change it"), "{call} {n}: {said}");
                assert_eq!(all_but_times(&root), all_but, "{call} {n}");
            }
        }
        let again = sexton(&apply);
        assert!(again.status.success(), "{call} {n}: {}", stderr(&again));
        assert_eq!(systemctl_state(&root, "ecs.service"), "masked");
        true
    });
    assert!(n_kills > 12, "only {n_kills} steps");
}

#[test]
fn an_undo_that_is_killed_is_done_again() {
    let calls = [CHANGES, &["utimensat"]].concat();
    let n_kills = at_every_change(&calls, |call, n| {
        let (_place, root) = prepared();
        let before = all_but_times(&root);
        let fixed = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
        assert!(fixed.status.success(), "{}", stderr(&fixed));
        let undo = ["image", "undo", text(&root), "--yes"];
        if injected(&undo, call, "signal=KILL", n).status.success() {
            return false;
        }
        let again = sexton(&undo);
        let said = stderr(&again);
        let is_done = again.status.success() || said.contains("did not change it");
        assert!(is_done, "{call} {n}: {said}");
        assert_eq!(all_but_times(&root), before, "{call} {n}");
        true
    });
    assert!(n_kills > 12, "only {n_kills} steps");
}

/// A disk that is full at some step, as the kernel would say it.
#[test]
fn a_full_disk_leaves_the_image_as_it_was() {
    let calls = ["mkdirat", "symlinkat", "renameat", "fsync"];
    let n_full = at_every_change(&calls, |call, n| {
        let (_place, root) = prepared();
        let before = all_but_times(&root);
        let apply = ["image", "fix", text(&root), "--apply", "--yes"];
        let done = injected(&apply, call, "error=ENOSPC", n);
        if done.status.success() {
            return false;
        }
        let said = stderr(&done);
        assert!(
            said.contains("No space left on device"),
            "{call} {n}: {said}"
        );
        assert_eq!(all_but_times(&root), before, "{call} {n}");
        true
    });
    assert!(n_full > 6, "only {n_full} steps");
}

#[test]
fn who_may_not_write_is_told() {
    let (place, root) = prepared();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("set");
    let before = tree(&root);
    let copy = Copy::new("image-fix");
    let refused = copy.run(&["image", "fix", text(&root), "--apply", "--yes"]);
    // When the tests do not run as root, the root is theirs to write.
    if fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        let said = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot change /etc/sexton"), "{said}");
        assert!(said.contains("ermission denied"), "{said}");
        assert_eq!(tree(&root), before);
    }
}
