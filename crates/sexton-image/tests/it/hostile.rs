//! Images made to do harm: to reach out of themselves, to fill memory, to hang.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::shelf::{Shelf, run};
use crate::xfs;

const SECRET: &str = "not of this image";

/// Ways out of a folder, as links in it.
fn traps(shelf: &Shelf) {
    let root = shelf.root();
    fs::write(shelf.path("secret"), SECRET).expect("written");
    symlink("../secret", root.join("etc/up")).expect("linked");
    symlink(
        "../../../../../../../../../../secret",
        root.join("etc/far-up"),
    )
    .expect("linked");
    symlink(shelf.path("secret"), root.join("etc/absolute")).expect("linked");
    symlink("loop", root.join("etc/loop")).expect("linked");
    symlink("/proc/self/environ", root.join("etc/proc")).expect("linked");
    run("mkfifo", &["root/etc/pipe"], &shelf.path(""));
    fs::write(root.join("etc/new\nline\u{1b}"), "x").expect("written");
    let not_utf8 = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"etc/\xff\xfe");
    fs::write(root.join(not_utf8), "x").expect("written");
}

#[track_caller]
fn check_traps(shelf: &Shelf, image: &str, n_odd: usize) {
    let image = sexton_image::open(&shelf.path(image)).expect("opens");
    for trap in ["up", "far-up", "absolute", "loop", "proc", "pipe"] {
        let path = Path::new("/etc").join(trap);
        let read = image.root.read(&path, 1 << 20);
        assert!(read.is_err(), "{trap}: {read:?}");
        assert!(image.root.meta(&path).is_err() || trap == "pipe", "{trap}");
    }
    let secret = image
        .root
        .read(&Path::new("/../../..").join(shelf.path("secret")), 99);
    assert!(secret.is_err());
    let names = image.root.list(Path::new("/etc")).expect("listed");
    let odd = names.iter().filter(|entry| {
        entry
            .name
            .as_encoded_bytes()
            .iter()
            .any(|&b| !(b' '..=b'~').contains(&b))
    });
    assert_eq!(odd.count(), n_odd);
}

#[test]
fn nothing_outside_is_reached() {
    let shelf = Shelf::new();
    traps(&shelf);
    let folder = shelf.path("");
    check_traps(&shelf, "root", 2);
    run("tar", &["-C", "root", "-cf", "tar", "."], &folder);
    check_traps(&shelf, "tar", 2);
    run(
        "mke2fs",
        &["-q", "-F", "-t", "ext4", "-d", "root", "ext4", "16M"],
        &folder,
    );
    check_traps(&shelf, "ext4", 2);
    run(
        "mksquashfs",
        &["root", "squashfs", "-quiet", "-no-progress"],
        &folder,
    );
    check_traps(&shelf, "squashfs", 2);
    // Names with white space cannot be given to mkfs.xfs.
    fs::remove_file(shelf.path("root/etc/new\nline\u{1b}")).expect("removed");
    xfs::make(&shelf, "xfs", &[]);
    check_traps(&shelf, "xfs", 1);
}

#[test]
fn names_that_lead_out_of_a_tar_are_gaps() {
    let shelf = Shelf::new();
    shelf.root();
    fs::write(shelf.path("secret"), SECRET).expect("written");
    let script = "tar -cf tar -P -C root . && tar -rf tar -P --transform 's,secret,../../secret,' secret \
                  && tar -rf tar -P --transform 's,secret,/etc/placed,' secret";
    run("sh", &["-c", script], &shelf.path(""));
    let image = sexton_image::open(&shelf.path("tar")).expect("opens");
    assert_eq!(image.gaps, ["/../../secret: a name with `..` in it"]);
    assert!(image.root.read(Path::new("/secret"), 99).is_err());
    assert!(image.root.read(Path::new("/etc/placed"), 99).is_ok());
}

/// A layer of VMDK over a disk beside it.
#[test]
fn a_parent_is_not_followed() {
    let shelf = Shelf::new();
    fs::write(shelf.path("secret"), vec![7; 1 << 20]).expect("written");
    let script = "qemu-img convert -q -O vmdk secret parent \
                  && qemu-img create -q -f vmdk -b parent -F vmdk image";
    run("sh", &["-c", script], &shelf.path(""));
    let error = sexton_image::open(&shelf.path("image")).expect_err("refused");
    assert!(error.to_string().contains("a layer over"), "{error}");
}

#[test]
fn a_backing_file_is_not_followed() {
    let shelf = Shelf::new();
    fs::write(shelf.path("secret"), vec![7; 1 << 20]).expect("written");
    run(
        "qemu-img",
        &[
            "create", "-q", "-f", "qcow2", "-b", "secret", "-F", "raw", "image",
        ],
        &shelf.path(""),
    );
    let error = sexton_image::open(&shelf.path("image")).expect_err("refused");
    assert!(error.to_string().contains("backing file"), "{error}");
}

/// The peak of this process's memory, from the kernel.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("readable");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("there");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number")
}

#[test]
fn bombs_cost_no_memory() {
    let shelf = Shelf::new();
    let root = shelf.root();
    // More than is kept of one file; it compresses to almost nothing.
    let bomb = fs::File::create(root.join("usr/lib/systemd/system/bomb.service")).expect("made");
    bomb.set_len(300 << 20).expect("made");
    run(
        "sh",
        &[
            "-c",
            "tar -C root -c . | gzip -1 > tar; mke2fs -q -F -t ext4 -d root ext4 64M",
        ],
        &shelf.path(""),
    );
    let before = peak_kib();
    for image in ["root", "tar", "ext4"] {
        let image = sexton_image::open(&shelf.path(image)).expect("opens");
        let path = Path::new("/usr/lib/systemd/system/bomb.service");
        let error = image.root.read(path, 1 << 20).expect_err("too large");
        assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
        assert_eq!(image.root.read_at(path, 0, 2).expect("its head"), [0, 0]);
    }
    assert!(
        peak_kib() - before < 64 << 10,
        "{} KiB more",
        peak_kib() - before
    );
}

#[test]
fn a_tar_that_breaks_off_is_read_as_far_as_it_goes() {
    let shelf = Shelf::new();
    shelf.root();
    run(
        "tar",
        &["-C", "root", "-cf", "tar", "etc", "usr"],
        &shelf.path(""),
    );
    let whole = fs::read(shelf.path("tar")).expect("read");
    fs::write(shelf.path("cut"), &whole[..whole.len() - 600_000]).expect("written");
    let image = sexton_image::open(&shelf.path("cut")).expect("opens");
    assert!(
        image.gaps[0].starts_with("the tar is damaged after "),
        "{:?}",
        image.gaps
    );
    assert!(image.root.read(Path::new("/etc/os-release"), 99).is_ok());
}

/// The window would take 2 GiB of memory.
#[test]
fn a_window_of_2_gib_is_refused() {
    let shelf = Shelf::new();
    shelf.root();
    let script = "tar -C root -c . | zstd -q --long=31 > image";
    run("sh", &["-c", script], &shelf.path(""));
    let error = sexton_image::open(&shelf.path("image")).expect_err("refused");
    assert!(error.to_string().contains("without --long"), "{error}");
}

/// What cannot be read is named, with what to do instead.
#[test]
fn what_is_not_read_is_named() {
    let shelf = Shelf::new();
    fs::create_dir_all(shelf.root().join("etc")).expect("made");
    let check = |program: &str, arguments: &[&str], expected: &str| {
        run(program, arguments, &shelf.path(""));
        let error = sexton_image::open(&shelf.path("image")).expect_err("it is not read");
        let said = error.to_string();
        assert!(said.contains(expected), "{arguments:?}: {said}");
        fs::remove_file(shelf.path("image")).expect("removed");
    };
    for feature in [
        "inline_data",
        "meta_bg,^resize_inode",
        "ea_inode",
        "casefold",
    ] {
        let name = feature.split(',').next().expect("a name");
        let ext4 = [
            "-q", "-F", "-t", "ext4", "-O", feature, "-d", "root", "image", "8M",
        ];
        check(
            "mke2fs",
            &ext4,
            &format!("an ext4 filesystem with {name}, which"),
        );
    }
    fs::write(shelf.path("raw"), "not much").expect("written");
    for format in ["vdi", "qed", "parallels"] {
        let convert = ["convert", "-O", format, "raw", "image"];
        check("qemu-img", &convert, "qemu-img convert -O qcow2");
    }
}

/// Formats that `qemu-img` writes, small.
const CONVERTED: &[(&str, &str)] = &[
    ("vmdk", "subformat=streamOptimized"),
    ("vpc", "subformat=dynamic"),
    ("vhdx", "block_size=1M,log_size=1M"),
];

/// Bytes are made wrong in turn in the parts that say where things are; what comes out is an
/// answer or an error.
#[test]
fn damage_is_an_error_and_not_a_crash() {
    let shelf = Shelf::new();
    shelf.root();
    let folder = shelf.path("");
    run(
        "mke2fs",
        &["-q", "-F", "-t", "ext4", "-d", "root", "ext4", "2M"],
        &folder,
    );
    run(
        "mksquashfs",
        &["root", "squashfs", "-quiet", "-no-progress"],
        &folder,
    );
    run("tar", &["-C", "root", "-cf", "tar", "."], &folder);
    run(
        "qemu-img",
        &["convert", "-O", "qcow2", "ext4", "qcow2"],
        &folder,
    );
    for (format, options) in CONVERTED {
        let convert = ["convert", "-O", format, "-o", options, "ext4", format];
        run("qemu-img", &convert, &folder);
    }
    for image in ["ext4", "squashfs", "tar", "qcow2", "vmdk", "vpc", "vhdx"] {
        let whole = fs::read(shelf.path(image)).expect("read");
        let n = whole.len();
        let places = (0..2048).step_by(13).chain((0..n).step_by(n / 150));
        for at in places.filter(|&at| at < n) {
            let mut damaged = whole.clone();
            for byte in &mut damaged[at..n.min(at + 4)] {
                *byte ^= 0xa5;
            }
            sexton_image::fuzz::image(&damaged);
        }
        for cut in (0..n).step_by(n / 40) {
            sexton_image::fuzz::image(&whole[..cut]);
        }
    }
}

type Target = (&'static str, fn(&[u8]));

const BEHIND_CHECKSUMS: &[Target] = &[
    ("lvm", sexton_image::fuzz::lvm),
    ("virtual_disk", sexton_image::fuzz::virtual_disk),
    ("xfs", sexton_image::fuzz::xfs),
];

/// The same behind the checksums of formats that have them, on what fuzzing starts from.
#[test]
fn damage_behind_checksums_is_an_error_and_not_a_crash() {
    for (name, target) in BEHIND_CHECKSUMS {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
        for entry in fs::read_dir(corpus.join(name)).expect("a corpus") {
            let whole = fs::read(entry.expect("listed").path()).expect("read");
            let n = whole.len();
            target(&whole);
            for at in (0..n).step_by((n / 60).max(1)) {
                for flip in [0xff, 0x80, 0x01] {
                    let mut damaged = whole.clone();
                    damaged[at] ^= flip;
                    target(&damaged);
                }
            }
        }
    }
}

/// A table of which every partition is the whole disk, and so on within each.
#[test]
fn a_disk_within_itself_ends() {
    let mut disk = vec![0; 64 << 10];
    disk[510..512].copy_from_slice(b"\x55\xaa");
    disk[446 + 4] = 0xee;
    disk[446 + 12] = 1;
    disk[512..520].copy_from_slice(b"EFI PART");
    let mut put = |at: usize, value: u64| disk[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(512 + 72, 2);
    put(512 + 80, 256 | 128 << 32);
    for entry in 0..256 {
        put(1024 + entry * 128, 1);
        put(1024 + entry * 128 + 40, 127);
    }
    let begun = std::time::Instant::now();
    sexton_image::fuzz::image(&disk);
    // A disk in each of 256 partitions, three deep, would be opened 16 million times.
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}
