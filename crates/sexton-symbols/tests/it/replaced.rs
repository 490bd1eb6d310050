//! A file that was replaced names nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;

use sexton_symbols::recorded::{Recorded, Recording, Refusal};

use crate::made::{Made, by_inode};

#[track_caller]
fn check(made: &Made, file: Recording<'_>, expected: Result<&str, Refusal>) {
    let mut files = Recorded::new(None, None);
    let named = files.function(file, made.offset("_ZL6hiddeni"));
    match expected {
        Ok(name) => assert_eq!(&*named.expect("it has a name").name, name),
        Err(refusal) => {
            assert_eq!(named, None);
            let refused = files.take_refused();
            assert_eq!(refused, [(file.path.to_owned(), refusal)]);
        }
    }
    // It is said once.
    files.function(file, 1);
    assert_eq!(files.take_refused(), []);
}

#[test]
fn only_the_file_that_was_recorded_names_functions() {
    let made = Made::new(&[]);
    let program = made.path("program");
    fs::copy(&program, made.path("program.whole")).unwrap();
    let (path, id) = (program.to_str().unwrap(), made.build_id());
    let inode = program.metadata().unwrap().ino();
    let by_id = |id| Recording {
        path,
        build_id: Some(id),
        inode: None,
    };
    check(&made, by_id(&id), Ok("hidden"));
    check(&made, by_inode(path, inode), Ok("hidden"));
    // An upgrade puts a new file in its place, with the same name.
    fs::rename(&program, made.path("program.old")).unwrap();
    let other = Made::new(&["-O2"]);
    fs::copy(other.path("program"), &program).unwrap();
    check(&made, by_id(&id), Err(Refusal::OtherBuild));
    check(&made, by_inode(path, inode), Err(Refusal::OtherInode));
    let deleted = format!("{path} (deleted)");
    check(&made, by_inode(&deleted, inode), Err(Refusal::Deleted));
    let unknown = Recording {
        path,
        build_id: None,
        inode: None,
    };
    check(&made, unknown, Err(Refusal::NoIdentity));
}

#[test]
fn naming_a_folder_vouches_for_its_files() {
    let made = Made::new(&[]);
    fs::copy(made.path("program"), made.path("program.whole")).unwrap();
    let mut files = Recorded::new(Some(made.root().to_owned()), None);
    let named = files.function(by_inode("/program", 1), made.offset("_ZL6hiddeni"));
    assert_eq!(&*named.unwrap().name, "hidden");
    // But not against a build-id.
    let other = Recording {
        path: "/program",
        build_id: Some(&[1; 20]),
        inode: None,
    };
    assert_eq!(files.function(other, made.offset("_ZL6hiddeni")), None);
    assert_eq!(files.take_refused().len(), 1);
}

#[test]
fn a_file_without_a_build_id_is_not_one_with() {
    let made = Made::new(&[]);
    fs::copy(made.path("program"), made.path("program.whole")).unwrap();
    let id = made.build_id();
    made.tool(
        "objcopy",
        &["--remove-section=.note.gnu.build-id", "program"],
    );
    let path = made.path("program");
    let file = Recording {
        path: path.to_str().unwrap(),
        build_id: Some(&id),
        inode: None,
    };
    check(&made, file, Err(Refusal::OtherBuild));
}
