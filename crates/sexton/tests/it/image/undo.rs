//! An undo is exact, and goes on where a part of it is impossible.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use super::{ECS, founding, run, text, tree, write};
use crate::command::{sexton, stderr, stdout};

#[test]
fn labels_and_other_names_of_a_file_come_back() {
    let (_place, root) = founding();
    let unit = root.join("etc/systemd/system/ecs.service");
    write(unit.clone(), ECS);
    fs::hard_link(&unit, root.join("etc/ecs.copy")).expect("linked");
    let python = "import os, sys; os.setxattr(sys.argv[1], 'user.label', b'x')";
    run(Command::new("python3").args(["-c", python]).arg(&unit));
    let (before, inode) = (tree(&root), fs::metadata(&unit).expect("there").ino());
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let undone = sexton(&["image", "undo", text(&root), "--yes"]);
    assert_eq!(undone.status.code(), Some(0), "{}", stderr(&undone));
    assert_eq!(tree(&root), before);
    let meta = fs::metadata(&unit).expect("there");
    assert_eq!((meta.ino(), meta.nlink()), (inode, 2));
    let python = "import os, sys; assert os.getxattr(sys.argv[1], 'user.label') == b'x'";
    run(Command::new("python3").args(["-c", python]).arg(&unit));
}

#[test]
fn a_folder_that_is_gone_does_not_stop_the_rest() {
    let (_place, root) = founding();
    write(root.join("etc/systemd/system/ecs.service"), ECS);
    let done = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let wants = root.join("etc/systemd/system/multi-user.target.wants");
    fs::remove_dir_all(&wants).expect("removed");
    let undone = sexton(&["image", "undo", text(&root), "--yes"]);
    assert_eq!(undone.status.code(), Some(1), "{}", stderr(&undone));
    let said = stdout(&undone);
    assert!(said.contains("not put back, its folder is gone: /etc/systemd/system/multi-user.target.wants/ecs.service"), "{said}");
    let unit = fs::read_to_string(root.join("etc/systemd/system/ecs.service"));
    assert_eq!(unit.expect("put back"), ECS);
    // And it can be fixed again.
    fs::create_dir(&wants).expect("made");
    for name in ["ecs.service", "kubelet.service"] {
        let target = std::path::Path::new("/usr/lib/systemd/system").join(name);
        std::os::unix::fs::symlink(target, wants.join(name)).expect("linked");
    }
    let again = sexton(&["image", "fix", text(&root), "--apply", "--yes"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
}
