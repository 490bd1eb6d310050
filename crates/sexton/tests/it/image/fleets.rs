//! Images as fleets boot them, from end to end: a disk of Amazon Linux 2023 with XFS, and one of
//! Ubuntu 20.04 with ext4, each with an agent of ECS that has no cluster beside kubelet.
//!
//! The trees are ours; units and layouts of disks follow the public ones.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sexton_testkit::xfs;

use super::{audit, founding, run, text, unit, write};
use crate::command::{sexton, stderr, stdout};

/// Written after the public unit of amazon-ecs-init.
const ECS_AMAZON: &str = "[Unit]\nDescription=Amazon Elastic Container Service - container agent\n\
    Documentation=https://aws.amazon.com/documentation/ecs/\nRequires=docker.service\n\
    After=docker.service\nAfter=cloud-final.service\n\
    [Service]\nType=simple\nRestart=on-failure\nRestartPreventExitStatus=5\nRestartSec=10s\n\
    EnvironmentFile=-/var/lib/ecs/ecs.config\nEnvironmentFile=-/etc/ecs/ecs.config\n\
    ExecStartPre=/usr/libexec/amazon-ecs-init pre-start\n\
    ExecStart=/usr/libexec/amazon-ecs-init start\nExecStop=/usr/libexec/amazon-ecs-init stop\n\
    ExecStopPost=/usr/libexec/amazon-ecs-init post-stop\n\
    [Install]\nWantedBy=multi-user.target\n";

const MIB: u64 = 1 << 20;

fn amazon() -> (tempfile::TempDir, PathBuf) {
    let (place, root) = founding();
    let release = "NAME=\"Amazon Linux\"\nVERSION=\"2023\"\nID=\"amzn\"\nID_LIKE=\"fedora\"\n\
                   VERSION_ID=\"2023\"\nPRETTY_NAME=\"Amazon Linux 2023\"\n";
    write(root.join("usr/lib/os-release"), release);
    fs::remove_file(root.join("etc/os-release")).expect("removed");
    symlink("../usr/lib/os-release", root.join("etc/os-release")).expect("linked");
    write(root.join("usr/lib/systemd/system/ecs.service"), ECS_AMAZON);
    // sh is below /usr, and /bin is a link.
    fs::rename(root.join("bin/sh"), root.join("usr/bin/sh")).expect("moved");
    fs::remove_dir(root.join("bin")).expect("removed");
    symlink("usr/bin", root.join("bin")).expect("linked");
    let table = "UUID=6f1b3f1e-1111-4c4e-9b7e-2f1b3f1e0001 / xfs defaults,noatime 1 1\n\
                 UUID=1234-ABCD /boot/efi vfat defaults,noatime,uid=0,gid=0,umask=0077 0 2\n";
    write(root.join("etc/fstab"), table);
    fs::create_dir_all(root.join("boot/efi")).expect("made");
    (place, root)
}

/// Partition 1 is the root, 127 for the BIOS, 128 the ESP, as in the AMIs.
fn amazon_disk(place: &Path, root: &Path, disk: &Path) {
    let part = place.join("part");
    let uuid = "uuid=6f1b3f1e-1111-4c4e-9b7e-2f1b3f1e0001";
    xfs::make(root, &part, &["-L", "/", "-m", uuid]).expect("made");
    let table = "label: gpt\n1: start=26624,size=622592,type=L,name=Linux\n\
                 127: start=2048,size=2048,type=21686148-6449-6E6F-744E-656564454649\n\
                 128: start=4096,size=20480,type=U,name=\"EFI System Partition\"\n";
    assemble(place, disk, table, &part, 13, 320);
}

fn ubuntu_disk(place: &Path, root: &Path, disk: &Path) {
    let part = place.join("part");
    let mut mke2fs = Command::new("/usr/sbin/mke2fs");
    mke2fs.args(["-q", "-F", "-t", "ext4", "-L", "cloudimg-rootfs", "-d"]);
    run(mke2fs.arg(root).arg(&part).arg("32M"));
    // As the cloud image: partition 1 is the root, 14 for the BIOS, 15 the ESP.
    let table = "label: gpt\n1: start=26624,size=65536,type=L\n\
                 14: start=2048,size=2048,type=21686148-6449-6E6F-744E-656564454649\n\
                 15: start=4096,size=20480,type=U\n";
    assemble(place, disk, table, &part, 13, 50);
    fs::remove_file(part).expect("removed");
}

fn assemble(place: &Path, disk: &Path, table: &str, part: &Path, at_mib: u64, len_mib: u64) {
    let file = fs::File::create(disk).expect("made");
    file.set_len(len_mib * MIB).expect("made");
    let path = place.join("table");
    fs::write(&path, table).expect("written");
    let script = format!("sfdisk -q {} < {}", disk.display(), path.display());
    let path = "/usr/sbin:/usr/bin:/sbin:/bin";
    run(Command::new("sh").env("PATH", path).args(["-c", &script]));
    // The ESP, so far as it is looked at.
    file.write_all_at(b"FAT32   ", 2 * MIB + 82)
        .expect("written");
    let part = fs::File::open(part).expect("opened");
    let mut piece = vec![0; MIB as usize];
    for number in 0.. {
        let n = part.read_at(&mut piece, number * MIB).expect("read");
        if n == 0 {
            break;
        }
        // Holes stay holes.
        if piece[..n].iter().any(|&byte| byte != 0) {
            let at = (at_mib + number) * MIB;
            file.write_all_at(&piece[..n], at).expect("written");
        }
    }
}

/// Audit, fix, verify and diff of one disk; what it is called; how it is made of a root.
fn check((place, root): (tempfile::TempDir, PathBuf), what: &str, make: fn(&Path, &Path, &Path)) {
    let place = place.path();
    let (before, after) = (place.join("before.img"), place.join("after.img"));
    make(place, &root, &before);
    let found = audit(&[text(&before)], 1);
    assert_eq!(found["what"], what);
    assert_eq!(found["shape"], "kubernetes-node");
    assert_eq!(found["gaps"], serde_json::json!([]));
    assert_eq!(unit(&found, "ecs.service")["verdict"], "unwanted");
    assert_eq!(unit(&found, "kubelet.service")["verdict"], "needed");
    // The folder that the disk was made of is judged alike.
    let folder = audit(&[text(&root)], 1);
    assert_eq!(found["units"], folder["units"]);
    // A disk is not changed in place: the error says what to do, and that is done.
    let refused = sexton(&["image", "fix", text(&before), "--apply", "--yes"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
    assert!(stderr(&refused).contains("--write"), "{}", stderr(&refused));
    assert_eq!(verify(&before), 1);
    let written = sexton(&["image", "fix", text(&before), "--write", "shell"]);
    assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
    let script = super::bake::aimed(&stdout(&written), &root);
    run(Command::new("sh").args(["-c", &script]));
    make(place, &root, &after);
    assert_eq!(verify(&after), 0);
    let diff = sexton(&["image", "diff", text(&before), text(&after), "--json"]);
    assert!(stdout(&diff).contains("ecs.service"), "{}", stdout(&diff));
    assert!(
        !stdout(&diff).contains("kubelet.service"),
        "{}",
        stdout(&diff)
    );
}

fn verify(disk: &Path) -> i32 {
    let verified = sexton(&["image", "verify", text(disk)]);
    verified.status.code().expect("it ends by itself")
}

#[test]
fn amazon_linux_2023_on_xfs() {
    check(amazon(), "disk image (GPT), partition 1, XFS", amazon_disk);
}

#[test]
fn ubuntu_20_04_on_ext4() {
    check(
        founding(),
        "disk image (GPT), partition 1, ext4",
        ubuntu_disk,
    );
}
