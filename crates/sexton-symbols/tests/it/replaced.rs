//! A file that was replaced names nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;

use sexton_model::census::Device;
use sexton_model::stack::Inode;
use sexton_symbols::recorded::{Kernel, Origin, Recorded, Recording, Refusal};

use crate::made::{Made, by_inode, inode_of};

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
        is_id_of_mapping: false,
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
        is_id_of_mapping: false,
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
        is_id_of_mapping: false,
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
        is_id_of_mapping: false,
        inode: None,
    };
    check(&made, file, Err(Refusal::OtherBuild));
}

/// perf reads build-ids when a recording ends, of the files that have the paths by then.
#[test]
fn a_build_id_of_a_path_needs_the_inode_of_the_mapping() {
    let made = Made::new(&[]);
    let program = made.path("program");
    fs::copy(&program, made.path("program.whole")).unwrap();
    let (path, id, own) = (
        program.to_str().unwrap(),
        made.build_id(),
        inode_of(&program),
    );
    let recording = |inode, is_id_of_mapping| Recording {
        path,
        build_id: Some(&id),
        is_id_of_mapping,
        inode: Some(inode),
    };
    let other = Inode {
        number: own.number + 1,
        ..own
    };
    check(&made, recording(own, false), Ok("hidden"));
    check(&made, recording(other, false), Err(Refusal::Replaced));
    check(&made, recording(other, true), Ok("hidden"));
    // The same number, but given out anew; not every file system can tell.
    if let Some(generation) = own.generation {
        let later = Inode {
            generation: Some(generation ^ 1),
            ..own
        };
        check(&made, recording(later, false), Err(Refusal::Replaced));
        let by_inode = Recording {
            build_id: None,
            ..recording(later, false)
        };
        check(&made, by_inode, Err(Refusal::OtherInode));
    }
    // Of another file system, such as a container's, an inode says nothing.
    let elsewhere = Inode {
        device: Device { major: 0, minor: 0 },
        ..other
    };
    check(&made, recording(elsewhere, false), Ok("hidden"));
}

#[test]
fn inodes_of_another_node_say_nothing_and_a_folder_that_is_named_vouches() {
    let made = Made::new(&[]);
    let program = made.path("program");
    fs::copy(&program, made.path("program.whole")).unwrap();
    let (id, own) = (made.build_id(), inode_of(&program));
    let file = Recording {
        path: program.to_str().unwrap(),
        build_id: Some(&id),
        is_id_of_mapping: false,
        inode: Some(Inode {
            number: own.number + 1,
            ..own
        }),
    };
    let offset = made.offset("_ZL6hiddeni");
    let mut of_other_node = Recorded::new(None, None);
    of_other_node.recorded_on(&Origin {
        host: Some("another node".into()),
        release: None,
    });
    let mut vouched = Recorded::new(Some("/".into()), None);
    for files in [&mut of_other_node, &mut vouched] {
        let named = files.function(file, offset).expect("it has a name");
        assert_eq!(&*named.name, "hidden");
    }
}

#[test]
fn a_kernel_of_another_release_has_no_names_but_those_that_are_given() {
    let other = Origin {
        host: None,
        release: Some("0.0.1".into()),
    };
    let mut kernel = Kernel::read(None);
    assert!(!kernel.is_other("", None));
    kernel.recorded_on(&other);
    assert!(kernel.is_other("", None));
    let made = Made::new(&[]);
    let mut named = Kernel::read(Some(made.path("program.cc")));
    named.recorded_on(&other);
    assert!(!named.is_other("", None));
}
