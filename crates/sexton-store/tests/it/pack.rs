//! A bundle as one file; and files that only look like one.

use std::fs;
use std::path::Path;

use sexton_store::{Bundle, pack, unpack};

use crate::stacks::{busy_stacks, plains, read};
use crate::support::*;

/// A tar archive of one file, as a packed bundle.
fn packed(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
    header[156] = kind;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut tar = header.to_vec();
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(512) + 1024, 0);
    sexton_store::fuzzing::pack_tar(&tar).unwrap()
}

fn check_refused(archive: &[u8], why: &str) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.tar.zst");
    fs::write(&file, archive).unwrap();
    let error = unpack(&file, &dir.path().join("x")).unwrap_err().chain();
    assert!(error.contains(why), "{error}");
    let opened = Bundle::open(&file).unwrap_err().chain();
    assert!(opened.contains(why), "{opened}");
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left but the archive");
}

#[test]
fn a_hostile_archive_is_refused() {
    check_refused(
        &packed("raw/../../../etc/x", b'0', b"x"),
        "no part of a bundle",
    );
    check_refused(&packed("/etc/x", b'0', b"x"), "no part of a bundle");
    check_refused(&packed("stacks/a/b", b'0', b"x"), "no part of a bundle");
    check_refused(&packed("stacks/../x", b'0', b"x"), "no part of a bundle");
    check_refused(&packed("stacks/samples", b'2', b""), "no plain file");
    check_refused(&packed("raw/passwd", b'2', b""), "no plain file");
    check_refused(&packed("raw/null", b'3', b""), "no plain file");
    check_refused(
        &packed("raw/zeros", b'0', &vec![0; 65 << 20]),
        "unpacks to over",
    );
    let whole = packed("bundle.json", b'0', b"{}");
    check_refused(&whole, "is not a bundle: bundle.json");
    check_refused(&whole[..whole.len() - 4], "");
    check_refused(b"\x28\xb5\x2f\xfdnothing", "");
}

#[test]
fn what_is_being_recorded_can_be_packed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("bundle");
    let mut writer = create(&folder, limits(1 << 30), 0).unwrap();
    writer
        .add_raw("etc/os-release".as_ref(), b"ID=x\n")
        .unwrap();
    // More than one segment, so that some are sealed and one is open.
    writer.append(&busy(1, 30_000)).unwrap();
    writer.sync(at(30_000_000)).unwrap();
    let file = dir.path().join("bundle.tar.zst");
    let bytes = pack(&folder, &file).unwrap();
    assert_eq!(bytes, fs::metadata(&file).unwrap().len());
    drop(writer);
    let bundle = Bundle::open(&file).unwrap();
    assert!(bundle.stream(None, None).eq(busy(1, 30_000)));
    assert_eq!(bundle.node(), &node());
    let raw = bundle.raw();
    assert_eq!(fs::read(raw.join("etc/os-release")).unwrap(), b"ID=x\n");
    drop(bundle);
    assert!(!Path::new(&raw).exists(), "the temporary folder is gone");
}

#[test]
fn stacks_are_packed_from_the_log_and_from_segments() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("bundle");
    let (samples, tables) = busy_stacks(1, 50_000);
    let mut expected = plains(&samples, &tables);
    expected.sort();
    let mut writer = create(&folder, limits(64 << 20), 0).unwrap();
    for part in samples.chunks(997) {
        writer.append_stacks(part, &tables).unwrap();
        writer.sync(part[0].at).unwrap();
    }
    let stacks = |ends: &str| {
        let files = fs::read_dir(folder.join("stacks")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(ends)).count()
    };
    assert!(stacks(".parquet") >= 3 && stacks(".wal") == 1);
    let open = dir.path().join("open.tar.zst");
    pack(&folder, &open).unwrap();
    assert_eq!(read(&open, None), (expected.clone(), vec![]));
    writer.finish(at(u64::MAX)).unwrap();
    let sealed = dir.path().join("sealed.tar.zst");
    pack(&folder, &sealed).unwrap();
    assert_eq!(read(&sealed, None), (expected, vec![]));
}

/// A bundle of a version that had no stacks yet.
#[test]
fn a_bundle_without_stacks_can_be_packed() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("bundle");
    let mut writer = create(&folder, limits(1 << 30), 0).unwrap();
    writer.append(&busy(1, 100)).unwrap();
    writer.finish(at(30_000_000)).unwrap();
    fs::remove_dir(folder.join("stacks")).unwrap();
    let file = dir.path().join("bundle.tar.zst");
    pack(&folder, &file).unwrap();
    assert_eq!(read(&file, None), (vec![], vec![]));
    let bundle = Bundle::open(&file).unwrap();
    assert!(bundle.stream(None, None).eq(busy(1, 100)));
}
