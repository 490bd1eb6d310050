//! XFS: what `mkfs.xfs` fills itself, and what kernels wrote.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use sexton_host::Root;

use crate::shelf::{Shelf, dump, run};

/// Fills an image with the folder `root`.
pub fn make(shelf: &Shelf, image: &str, options: &[&str]) {
    sexton_testkit::xfs::make(&shelf.path("root"), &shelf.path(image), options).expect("made");
}

/// Directories of every form, and names of every length.
fn fill(root: &Path, n_most: usize) {
    for (folder, n) in [("short", 3), ("block", 40), ("leaf", 300), ("node", n_most)] {
        let folder = root.join("usr").join(folder);
        fs::create_dir(&folder).expect("made");
        for number in 0..n {
            symlink(format!("to-{number}"), folder.join(format!("n{number}"))).expect("linked");
        }
    }
    for len in [1, 2, 100, 254, 255] {
        fs::write(root.join("etc").join("x".repeat(len)), "long").expect("written");
    }
}

#[test]
fn what_mkfs_fills() {
    let shelf = Shelf::new();
    fill(&shelf.root(), 2_000);
    let folder = sexton_image::open(&shelf.path("root")).expect("a folder");
    let expected = dump(folder.root.as_ref());
    for options in [
        &[][..],
        &["-b", "size=1024"],
        &["-s", "size=4096"],
        &["-n", "size=16384"],
        &["-i", "size=2048"],
        &["-i", "nrext64=1"],
        &["-d", "agcount=2"],
        &["-m", "crc=0"],
        &["-m", "crc=0", "-n", "ftype=0"],
        &["-m", "crc=0", "-b", "size=512"],
        &["-m", "crc=0", "-i", "size=256", "-s", "size=1024"],
    ] {
        make(&shelf, "image", options);
        let image = sexton_image::open(&shelf.path("image")).expect("an image");
        assert_eq!(image.what, "XFS");
        assert_eq!(image.gaps, Vec::<String>::new(), "{options:?}");
        assert!(dump(image.root.as_ref()) == expected, "{options:?}");
    }
}

#[test]
fn a_directory_of_20000_entries() {
    let shelf = Shelf::new();
    fill(&shelf.root(), 20_000);
    make(&shelf, "image", &[]);
    let image = sexton_image::open(&shelf.path("image")).expect("an image");
    let folder = image.root.list(Path::new("/usr/node")).expect("listed");
    assert_eq!(folder.len(), 20_000);
    for number in (0..20_000).step_by(371) {
        let target = image
            .root
            .read_link(Path::new(&format!("/usr/node/n{number}")));
        assert_eq!(target.expect("there"), Path::new(&format!("to-{number}")));
    }
}

/// A dump as lines of text, whatever the names.
fn lines(root: &dyn Root) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for (path, shown) in dump(root) {
        let mut line = String::new();
        for &byte in path.as_os_str().as_bytes() {
            match byte {
                b'\\' => line.push_str("\\x5c"),
                b' '..=b'~' => line.push(char::from(byte)),
                byte => write!(line, "\\x{byte:02x}").expect("text"),
            }
        }
        lines.insert(format!("{line}\t{shown}"));
    }
    lines
}

/// Images that kernels wrote, each with a list of what the kernel read from it
/// (`tests/images/README.md`).
#[test]
fn what_kernels_wrote() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    let shelf = Shelf::new();
    let mut n = 0;
    for entry in fs::read_dir(folder).expect("listed") {
        let packed = entry.expect("listed").path();
        if !packed.with_extension("txt.gz").exists() {
            continue;
        }
        unpack(&packed, &shelf.path("image"));
        let image = sexton_image::open(&shelf.path("image")).expect("an image");
        assert_eq!(image.gaps, Vec::<String>::new(), "{}", packed.display());
        let expected = fs::read(packed.with_extension("txt.gz")).expect("its list");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*expected), &mut text)
            .expect("its list");
        let expected: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        let found = lines(image.root.as_ref());
        let differs: Vec<_> = found.symmetric_difference(&expected).take(3).collect();
        assert!(differs.is_empty(), "{}: {differs:?}", packed.display());
        n += 1;
    }
    assert!(n >= 3, "{n} images");
}

fn kernel_image(shelf: &Shelf, name: &str) -> sexton_image::Image {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    unpack(&folder.join(name), &shelf.path("image"));
    sexton_image::open(&shelf.path("image")).expect("an image")
}

/// A filesystem that was shut down with changes in its log, and a file of 1 PiB in it.
#[test]
fn what_was_not_unmounted_is_a_gap() {
    let shelf = Shelf::new();
    let image = kernel_image(&shelf, "dirty-xfs.zst");
    assert_eq!(
        image.gaps,
        [
            "the XFS filesystem was not unmounted: changes in its log are not read; mount and \
             unmount a copy, and give that"
        ]
    );
    let bomb = Path::new("/usr/lib/systemd/system/bomb.service");
    let error = image.root.read(bomb, 1 << 20).expect_err("too large");
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
    let part = image.root.read_at(bomb, 1 << 49, 3).expect("zeros");
    assert_eq!(part, [0; 3]);
}

/// A wrong byte in metadata is found by its checksum.
#[test]
fn a_wrong_checksum_is_an_error() {
    let shelf = Shelf::new();
    drop(kernel_image(&shelf, "dirty-xfs.zst"));
    let whole = fs::read(shelf.path("image")).expect("read");
    let check = |at: usize, expected: &str| {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(shelf.path("damaged"), damaged).expect("written");
        let error = sexton_image::open(&shelf.path("damaged")).expect_err("damaged");
        let said = error.to_string();
        assert!(said.contains(expected), "{said}");
    };
    // The UUID in the superblock, and the time of the root directory, its first inode.
    check(33, "the superblock's checksum is wrong");
    let root = whole.chunks(512).position(|at| at.starts_with(b"INA\xed"));
    let root = root.expect("it has a root") * 512;
    check(root + 45, "an inode whose checksum is wrong");
}

pub fn unpack(packed: &Path, image: &Path) {
    let packed = packed.to_str().expect("a path");
    let image = image.to_str().expect("a path");
    run(
        "zstd",
        &["-q", "-d", "-f", packed, "-o", image],
        Path::new("/"),
    );
}
