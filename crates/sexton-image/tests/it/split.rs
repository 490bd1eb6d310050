//! Roots in several filesystems: on partitions and on logical volumes.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;

use sexton_image::Image;

use crate::shelf::{Shelf, dump, run};
use crate::xfs::unpack;

const USR: &str = "0aa7b8a2-5f0e-4a5f-9a0c-4d1fcb3a4e11";
const MIB: u64 = 1 << 20;

/// A root with units below /usr, and something in /var.
fn root(shelf: &Shelf, table: &str) {
    let root = shelf.root();
    fs::write(root.join("etc/fstab"), table).expect("written");
    fs::create_dir_all(root.join("var/lib/app")).expect("made");
    fs::write(root.join("var/lib/app/state"), "kept").expect("written");
    // A link from one filesystem into another, and back.
    symlink("/etc/os-release", root.join("usr/lib/os-release")).expect("linked");
    symlink("../usr/lib/os-release", root.join("var/release")).expect("linked");
}

/// The root in three filesystems: `part-root`, `part-usr`, `part-var`.
fn split(shelf: &Shelf, root_mib: u64) {
    let script = "rm -rf cut && cp -a root cut && mkdir cut-usr cut-var \
                  && mv cut/usr/* cut-usr/ && mv cut/var/* cut-var/";
    run("sh", &["-c", script], &shelf.path(""));
    let make = |from: &str, to: &str, size: &str, more: &[&str]| {
        let options = ["-q", "-F", "-t", "ext4", "-d", from];
        let arguments = [&options[..], more, &[to, size]].concat();
        run("mke2fs", &arguments, &shelf.path(""));
    };
    make("cut", "part-root", &format!("{root_mib}M"), &[]);
    make("cut-usr", "part-usr", "16M", &["-U", USR]);
    make("cut-var", "part-var", "16M", &["-L", "data"]);
}

/// Puts parts of files onto a disk: file, its first MiB, how many, and where to.
fn place(shelf: &Shelf, disk: &str, parts: &[(&str, u64, u64, u64)]) {
    let disk = fs::OpenOptions::new().write(true).open(shelf.path(disk));
    let disk = disk.expect("opened");
    for &(name, from, n, to) in parts {
        let whole = fs::read(shelf.path(name)).expect("read");
        let range = (from * MIB) as usize..((from + n) * MIB) as usize;
        disk.write_all_at(&whole[range], to * MIB).expect("written");
    }
}

/// A GPT disk: an ESP, swap, root, /usr and /var, each of 16 MiB after the first MiB.
fn disk(shelf: &Shelf, usr_type: &str) {
    let mut esp = vec![0; MIB as usize];
    esp[82..87].copy_from_slice(b"FAT32");
    esp[510..512].copy_from_slice(b"\x55\xaa");
    fs::write(shelf.path("esp"), esp).expect("written");
    let table = format!(
        "label: gpt\nsize=32768,type=U\nsize=32768,type=S\nsize=32768\nsize=32768,type={usr_type}\n\
         size=32768,name=state\n"
    );
    fs::write(shelf.path("table"), table).expect("written");
    let script = "rm -f disk && truncate -s 90M disk && sfdisk -q disk < table";
    run("sh", &["-c", script], &shelf.path(""));
    let parts = [
        ("esp", 0, 1, 1),
        ("part-root", 0, 16, 33),
        ("part-usr", 0, 16, 49),
        ("part-var", 0, 16, 65),
    ];
    place(shelf, "disk", &parts);
}

#[track_caller]
fn check(shelf: &Shelf, what: &str) -> Image {
    let folder = sexton_image::open(&shelf.path("root")).expect("a folder");
    let image = sexton_image::open(&shelf.path("disk")).expect("an image");
    assert_eq!(image.what, what);
    assert_eq!(image.gaps, Vec::<String>::new());
    assert_eq!(dump(image.root.as_ref()), dump(folder.root.as_ref()));
    image
}

#[test]
fn partitions_by_the_table_of_mounts() {
    const LINUX: &str = "L";
    for (usr, var) in [
        (format!("UUID={}", USR.to_uppercase()), "LABEL=data"),
        ("/dev/sda4".into(), "PARTLABEL=state"),
        (format!("/dev/disk/by-uuid/{USR}"), "/dev/nvme0n1p5"),
    ] {
        let shelf = Shelf::new();
        let table = format!("/dev/sda3 / ext4\n{usr}\t/usr ext4\n{var} /var ext4 defaults 0 0\n");
        root(&shelf, &table);
        split(&shelf, 16);
        disk(&shelf, LINUX);
        let image = check(&shelf, "disk image (GPT), partition 3, ext4");
        let release = image.root.read(Path::new("/var/release"), 99);
        assert!(release.expect("through three").starts_with(b"ID=debian"));
        // A link that leads out of all of them ends at the root.
        let out = image.root.read(Path::new("/var/../../../etc/fstab"), 999);
        assert!(out.is_ok());
    }
}

#[test]
fn partitions_by_their_type() {
    let shelf = Shelf::new();
    root(&shelf, "LABEL=data /var ext4\n");
    split(&shelf, 16);
    disk(&shelf, "8484680C-9521-48C6-9C11-B0720656F69E");
    check(&shelf, "disk image (GPT), partition 3, ext4");
}

/// What is mounted by another name is neither guessed nor taken for the root.
#[test]
fn what_is_not_there_is_a_gap() {
    let shelf = Shelf::new();
    root(&shelf, "UUID=none /usr ext4\nLABEL=data /var ext4\n");
    split(&shelf, 16);
    disk(&shelf, "L");
    let image = sexton_image::open(&shelf.path("disk")).expect("an image");
    assert_eq!(
        image.gaps,
        ["partition 4 (ext4) is mounted nowhere by /etc/fstab or its type"]
    );
    assert!(image.root.list(Path::new("/usr")).expect("there").len() <= 1);
    let zeros = vec![0; 16 * MIB as usize];
    fs::write(shelf.path("part-root"), zeros).expect("written");
    disk(&shelf, "L");
    let error = sexton_image::open(&shelf.path("disk")).expect_err("no root");
    let said = error.to_string();
    assert!(
        said.contains("partition 4 holds only what belongs below /usr"),
        "{said}"
    );
}

/// What LVM 2.03 wrote: the root in two pieces, /usr and /var, in extents of 4 MiB after the
/// first MiB.
fn physical_volume(shelf: &Shelf, table: &str) {
    root(shelf, table);
    split(shelf, 32);
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images/lvm-pv.zst");
    unpack(&packed, &shelf.path("disk"));
    let parts = [
        ("part-root", 0, 20, 1),
        ("part-root", 20, 12, 1 + 14 * 4),
        ("part-usr", 0, 16, 1 + 5 * 4),
        ("part-var", 0, 16, 1 + 9 * 4),
    ];
    place(shelf, "disk", &parts);
}

const LVM_TABLE: &str = "/dev/mapper/rocky--vg-root / ext4\n/dev/mapper/rocky--vg-usr /usr ext4\n\
                         /dev/rocky-vg/var /var ext4\n";

#[test]
fn logical_volumes() {
    let shelf = Shelf::new();
    physical_volume(&shelf, LVM_TABLE);
    check(&shelf, "LVM, logical volume rocky-vg/root, ext4");
    // The same in a partition, beside one of FAT.
    let script = "mv disk pv && truncate -s 120M disk && \
                  printf 'label: gpt\\nsize=32768,type=U\\nsize=196608\\n' | sfdisk -q disk";
    run("sh", &["-c", script], &shelf.path(""));
    place(&shelf, "disk", &[("pv", 0, 96, 17)]);
    let what = "disk image (GPT), logical volume rocky-vg/root, ext4";
    check(&shelf, what);
}

#[test]
fn damaged_metadata_of_lvm_is_an_error() {
    let shelf = Shelf::new();
    physical_volume(&shelf, LVM_TABLE);
    let whole = fs::read(shelf.path("disk")).expect("read");
    let place = |text: &[u8]| whole.windows(text.len()).position(|at| at == text);
    let check = |at: usize, expected: &str| {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(shelf.path("damaged"), damaged).expect("written");
        let error = sexton_image::open(&shelf.path("damaged")).expect_err("damaged");
        let said = error.to_string();
        assert!(said.contains(expected), "{said}");
    };
    let head = place(b" LVM2 x[5A%r0N*>").expect("there");
    check(head + 40, "its metadata is damaged");
    let newest = whole.windows(9).rposition(|at| at == b"seqno = 6");
    check(
        newest.expect("there"),
        "the checksum of its metadata is wrong",
    );
}
