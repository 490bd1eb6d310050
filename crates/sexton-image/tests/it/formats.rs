//! One root through every tool that makes images, and back.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::shelf::{Shelf, dump, run};

/// What is read from the image equals what is read from the folder.
#[track_caller]
fn check(shelf: &Shelf, image: &str, what: &str) {
    let folder = sexton_image::open(&shelf.path("root")).expect("a folder");
    let image = sexton_image::open(&shelf.path(image)).expect("an image");
    assert_eq!(image.what, what);
    assert_eq!(image.gaps, Vec::<String>::new());
    assert_eq!(dump(image.root.as_ref()), dump(folder.root.as_ref()));
    let through = image
        .root
        .read(Path::new("/lib/systemd/system/ecs.service"), 99);
    assert!(through.is_ok_and(|content| content.starts_with(b"[Service]")));
}

#[test]
fn tars() {
    let shelf = Shelf::new();
    shelf.root();
    for (flags, what) in [
        ("-cf", "gnu"),
        ("-czf", "pax"),
        ("-cJf", "ustar"),
        ("-cf", "v7"),
    ] {
        let format = format!("--format={what}");
        run(
            "tar",
            &["-C", "root", &format, flags, "image", "."],
            &shelf.path(""),
        );
        check(&shelf, "image", "tar");
    }
    run(
        "tar",
        &["-C", "root", "--zstd", "-cf", "image", "."],
        &shelf.path(""),
    );
    check(&shelf, "image", "tar");
}

#[test]
fn ext4() {
    let shelf = Shelf::new();
    shelf.root();
    for sort in ["ext2", "ext4"] {
        run(
            "mke2fs",
            &["-q", "-F", "-t", sort, "-d", "root", "image", "16M"],
            &shelf.path(""),
        );
        check(&shelf, "image", "ext4");
    }
}

#[test]
fn squashfs() {
    let shelf = Shelf::new();
    shelf.root();
    for compressor in ["gzip", "xz", "zstd"] {
        run(
            "mksquashfs",
            &[
                "root",
                "image",
                "-quiet",
                "-no-progress",
                "-noappend",
                "-comp",
                compressor,
            ],
            &shelf.path(""),
        );
        check(&shelf, "image", "squashfs");
    }
    run(
        "mksquashfs",
        &[
            "root",
            "image",
            "-quiet",
            "-no-progress",
            "-noappend",
            "-no-fragments",
            "-noI",
            "-noD",
        ],
        &shelf.path(""),
    );
    check(&shelf, "image", "squashfs");
}

/// Puts a filesystem behind a first partition that holds nothing.
fn disk(shelf: &Shelf, label: &str) {
    run(
        "mke2fs",
        &["-q", "-F", "-t", "ext4", "-d", "root", "part", "16M"],
        &shelf.path(""),
    );
    let mut disk = fs::File::create(shelf.path("disk")).expect("made");
    disk.set_len(24 << 20).expect("made");
    let table = format!("label: {label}\nstart=2048,size=2048\nstart=4096,size=32768\n");
    fs::write(shelf.path("table"), table).expect("written");
    run("sh", &["-c", "sfdisk -q disk < table"], &shelf.path(""));
    use std::io::Seek;
    disk.seek(std::io::SeekFrom::Start(4096 * 512))
        .expect("there");
    disk.write_all(&fs::read(shelf.path("part")).expect("read"))
        .expect("written");
}

#[test]
fn disks() {
    let shelf = Shelf::new();
    shelf.root();
    disk(&shelf, "gpt");
    check(&shelf, "disk", "disk image (GPT), partition 2, ext4");
    for options in [
        &["-O", "qcow2"][..],
        &["-O", "qcow2", "-c"],
        &["-O", "qcow2", "-c", "-o", "compression_type=zstd"],
    ] {
        let arguments = [&["convert", "-f", "raw"], options, &["disk", "image"]].concat();
        run("qemu-img", &arguments, &shelf.path(""));
        check(
            &shelf,
            "image",
            "qcow2, disk image (GPT), partition 2, ext4",
        );
    }
    for (options, name) in [
        (&["-O", "vmdk"][..], "VMDK, "),
        (&["-O", "vmdk", "-o", "subformat=streamOptimized"], "VMDK, "),
        (&["-O", "vpc", "-o", "subformat=dynamic"], "VHD, "),
        // A raw disk with a footer.
        (&["-O", "vpc", "-o", "subformat=fixed"], ""),
        (&["-O", "vhdx"], "VHDX, "),
        (&["-O", "vhdx", "-o", "subformat=fixed"], "VHDX, "),
        (&["-O", "vhdx", "-o", "block_size=1M"], "VHDX, "),
    ] {
        let arguments = [&["convert", "-f", "raw"], options, &["disk", "image"]].concat();
        run("qemu-img", &arguments, &shelf.path(""));
        let what = format!("{name}disk image (GPT), partition 2, ext4");
        check(&shelf, "image", &what);
    }
    disk(&shelf, "dos");
    check(&shelf, "disk", "disk image (MBR), partition 2, ext4");
}

/// Two layers: the second takes a file away, empties a folder and adds to another.
fn layers(shelf: &Shelf) {
    let folder = shelf.path("");
    shelf.root();
    run(
        "sh",
        &[
            "-c",
            "mkdir -p below/etc/old below/opt/all && cp -a root/. below/ && touch below/etc/old/x below/opt/all/y below/gone",
        ],
        &folder,
    );
    run(
        "sh",
        &[
            "-c",
            "mkdir -p above/etc above/opt/all && touch above/.wh.gone above/etc/.wh.old above/opt/.wh.all",
        ],
        &folder,
    );
    run(
        "sh",
        &[
            "-c",
            "mkdir root/srv && echo new > root/srv/new && mkdir above/srv && cp -a root/srv/new above/srv/new && mkdir below/srv && touch below/srv/low && touch above/srv/.wh..wh..opq",
        ],
        &folder,
    );
    run(
        "sh",
        &["-c", "mkdir root/opt && rm -r above/opt/all"],
        &folder,
    );
}

/// Puts a file among the blobs of a layout: its digest, and its descriptor.
fn blob(shelf: &Shelf, name: &str) -> (String, String) {
    let hash = digest(shelf, name);
    let size = fs::metadata(shelf.path(name)).expect("there").len();
    let place = shelf.path(&format!("oci/blobs/sha256/{hash}"));
    fs::copy(shelf.path(name), place).expect("copied");
    let descriptor = format!(r#""digest":"sha256:{hash}","size":{size}"#);
    (hash, descriptor)
}

fn digest(shelf: &Shelf, name: &str) -> String {
    let sum = Command::new("sha256sum").arg(shelf.path(name)).output();
    let sum = String::from_utf8(sum.expect("it runs").stdout).expect("text");
    sum.split(' ').next().expect("a digest").to_owned()
}

/// Two layers as `docker save` lays them out; the configuration that names them.
fn docker_layers(shelf: &Shelf) -> String {
    layers(shelf);
    let folder = shelf.path("");
    let script = "mkdir -p docker/1 docker/2 && tar -C below -cf docker/1/layer.tar . \
                  && tar -C above -cf docker/2/layer.tar .";
    run("sh", &["-c", script], &folder);
    let ids = ["docker/1/layer.tar", "docker/2/layer.tar"];
    let ids = ids.map(|name| format!(r#""sha256:{}""#, digest(shelf, name)));
    let config = format!(
        r#"{{"rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
        ids.join(",")
    );
    fs::write(shelf.path("docker/c.json"), &config).expect("written");
    config
}

fn error(shelf: &Shelf, image: &str) -> String {
    let opened = sexton_image::open(&shelf.path(image));
    opened.expect_err("not as it should be").to_string()
}

#[test]
fn oci_layout() {
    let shelf = Shelf::new();
    let config = docker_layers(&shelf);
    let folder = shelf.path("");
    let shell = |script: &str| run("sh", &["-c", script], &folder);
    shell("mkdir -p oci/blobs/sha256 && gzip -c docker/1/layer.tar > one");
    shell("zstd -q -c docker/2/layer.tar > two");
    let write = |path: &str, text: &str| fs::write(shelf.path(path), text).expect("written");
    // A blob is named by its digest: what is written comes back as its descriptor.
    let json = |text: String| {
        write("json", &text);
        blob(&shelf, "json").1
    };
    let (hash, two) = blob(&shelf, "two");
    let one = blob(&shelf, "one").1;
    let config = json(config);
    let manifest = |layers: &str| json(format!(r#"{{"config":{{{config}}},"layers":[{layers}]}}"#));
    let whole = manifest(&format!("{{{one}}},{{{two}}}"));
    let index = json(format!(
        r#"{{"manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json",{whole},"platform":{{"architecture":"amd64","os":"linux"}}}},{{"digest":"sha256:cc","platform":{{"architecture":"unknown","os":"unknown"}}}}]}}"#
    ));
    write("oci/oci-layout", r#"{"imageLayoutVersion":"1.0.0"}"#);
    write(
        "oci/index.json",
        &format!(
            r#"{{"manifests":[{{"mediaType":"application/vnd.oci.image.index.v1+json",{index}}}]}}"#
        ),
    );
    check(&shelf, "oci", "OCI image, 2 layers");
    run("tar", &["-C", "oci", "-cf", "image", "."], &folder);
    check(&shelf, "image", "OCI image, 2 layers");
    // A layer that was changed, and then one that was dropped.
    shell(&format!("printf x >> oci/blobs/sha256/{hash}"));
    let changed = error(&shelf, "oci");
    assert!(changed.contains(&hash), "{changed}");
    let dropped = manifest(&format!("{{{one}}}"));
    write(
        "oci/index.json",
        &format!(r#"{{"manifests":[{{{dropped}}}]}}"#),
    );
    let dropped = error(&shelf, "oci");
    assert!(dropped.contains("it has 1 layers"), "{dropped}");
}

#[test]
fn docker_save() {
    let shelf = Shelf::new();
    docker_layers(&shelf);
    let folder = shelf.path("");
    fs::write(
        shelf.path("docker/manifest.json"),
        r#"[{"Config":"c.json","RepoTags":["a:b"],"Layers":["1/layer.tar","2/layer.tar"]}]"#,
    )
    .expect("written");
    run("tar", &["-C", "docker", "-czf", "image", "."], &folder);
    check(&shelf, "image", "docker save, 2 layers");
    fs::copy(
        shelf.path("docker/1/layer.tar"),
        shelf.path("docker/2/layer.tar"),
    )
    .expect("copied");
    let changed = error(&shelf, "docker");
    assert!(changed.contains("was changed"), "{changed}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let shelf = Shelf::new();
    let check = |content: Vec<u8>, expected: &str| {
        fs::write(shelf.path("image"), content).expect("written");
        let error = sexton_image::open(&shelf.path("image")).expect_err("no image");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let with = |at: usize, magic: &[u8]| {
        let mut content = vec![0; 70 << 10];
        content[at..at + magic.len()].copy_from_slice(magic);
        content
    };
    check(with(65600, b"_BHRfS_M"), "as Btrfs");
    check(with(1024, b"\x10\x20\xf5\xf2"), "an F2FS filesystem");
    check(with(0, b"hello"), "no image that sexton knows");
    check(Vec::new(), "no image that sexton knows");
    fs::create_dir(shelf.path("empty")).expect("made");
    let error = sexton_image::open(&shelf.path("empty")).expect_err("no root");
    assert!(error.to_string().contains("no root filesystem"), "{error}");
}
