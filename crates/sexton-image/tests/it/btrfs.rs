//! Btrfs: what `mkfs.btrfs` fills itself; what kernels wrote is with XFS.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::shelf::{Shelf, dump, run};
use crate::xfs::unpack;

fn make(shelf: &Shelf, options: &[&str]) {
    let rest = ["-q", "--rootdir", "root", "image"];
    fs::File::create(shelf.path("image"))
        .and_then(|image| image.set_len(128 << 20))
        .expect("made");
    run("mkfs.btrfs", &[options, &rest].concat(), &shelf.path(""));
}

#[test]
fn what_mkfs_fills() {
    let shelf = Shelf::new();
    let many = shelf.root().join("usr/many");
    fs::create_dir(&many).expect("made");
    for number in 0..400 {
        symlink(format!("to-{number}"), many.join(format!("n{number}"))).expect("linked");
    }
    let folder = sexton_image::open(&shelf.path("root")).expect("a folder");
    let expected = dump(folder.root.as_ref());
    for options in [
        &[][..],
        &["-n", "4096"],
        &["-n", "65536", "-m", "single"],
        &["-M"],
        &["--csum", "sha256"],
        &["-O", "^no-holes"],
        &["-d", "dup"],
    ] {
        make(&shelf, options);
        let image = sexton_image::open(&shelf.path("image")).expect("an image");
        assert_eq!(image.what, "Btrfs");
        assert_eq!(image.gaps, Vec::<String>::new(), "{options:?}");
        assert!(dump(image.root.as_ref()) == expected, "{options:?}");
    }
}

#[test]
fn other_checksums_are_named() {
    let shelf = Shelf::new();
    shelf.root();
    make(&shelf, &["--csum", "xxhash"]);
    let error = sexton_image::open(&shelf.path("image")).expect_err("not read");
    let said = error.to_string();
    assert!(said.contains("with checksums of xxhash64"), "{said}");
}

/// Two devices: neither is enough.
#[test]
fn several_devices_are_named() {
    let shelf = Shelf::new();
    for name in ["one", "two"] {
        let image = fs::File::create(shelf.path(name)).expect("made");
        image.set_len(256 << 20).expect("sized");
    }
    let options = ["-q", "-m", "raid1", "-d", "raid0", "one", "two"];
    run("mkfs.btrfs", &options, &shelf.path(""));
    let error = sexton_image::open(&shelf.path("one")).expect_err("not read");
    let said = error.to_string();
    assert!(said.contains("2 devices, of which this is one"), "{said}");
}

/// The root is in one subvolume and `/home` in another, by the root's own table.
#[test]
fn subvolumes_by_the_table_of_mounts() {
    let shelf = Shelf::new();
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images/btrfs-zstd.zst");
    unpack(&packed, &shelf.path("image"));
    let image = sexton_image::open(&shelf.path("image")).expect("an image");
    assert_eq!(image.what, "Btrfs, subvolume @");
    let read = |path: &str| image.root.read(Path::new(path), 99);
    assert_eq!(read("/home/file").expect("mounted"), b"at home\n");
    assert_eq!(read("/usr/inner/file").expect("inside"), b"inside\n");
    assert!(read("/snapshot/usr/inner/file").is_err());
}

/// A wrong byte in metadata is found by its checksum, and the other copy is taken.
#[test]
fn a_wrong_checksum_leads_to_the_other_copy() {
    let shelf = Shelf::new();
    shelf.root();
    make(&shelf, &["-m", "dup"]);
    let whole = fs::read(shelf.path("image")).expect("read");
    let uuid = &whole[0x10020..0x10030];
    let blocks: Vec<usize> = (0..whole.len())
        .step_by(4096)
        .filter(|at| *at != 0x10000 && whole[at + 32..at + 48] == *uuid && whole[at + 100] < 8)
        .collect();
    let place = |at: usize| whole[at + 48..at + 56].to_vec();
    let has_name = |at: &&usize| {
        whole[**at..**at + 16384]
            .windows(10)
            .any(|w| w == b"os-release")
    };
    let first = *blocks.iter().find(has_name).expect("a leaf with the name");
    let copies: Vec<usize> = blocks
        .iter()
        .copied()
        .filter(|at| place(*at) == place(first))
        .collect();
    assert_eq!(copies.len(), 2);
    let mut damaged = whole.clone();
    damaged[copies[0] + 200] ^= 1;
    fs::write(shelf.path("image"), &damaged).expect("written");
    let image = sexton_image::open(&shelf.path("image")).expect("by the other copy");
    assert!(image.root.read(Path::new("/etc/os-release"), 99).is_ok());
    damaged[copies[1] + 200] ^= 1;
    fs::write(shelf.path("image"), &damaged).expect("written");
    let error = sexton_image::open(&shelf.path("image")).expect_err("no copy is right");
    let said = error.to_string();
    assert!(said.contains("a checksum is wrong"), "{said}");
}
