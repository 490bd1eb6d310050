//! A small root, the tools that make images of it, and a way to compare what is read.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sexton_host::{Kind, Root};
use tempfile::TempDir;

/// A folder of its own for each test.
pub struct Shelf(TempDir);

impl Shelf {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for tests"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A root with each sort of file that matters.
    pub fn root(&self) -> PathBuf {
        let root = self.path("root");
        let units = root.join("usr/lib/systemd/system");
        fs::create_dir_all(&units).expect("made");
        fs::create_dir_all(root.join("etc/systemd/system/multi-user.target.wants")).expect("made");
        fs::create_dir_all(root.join("usr/bin")).expect("made");
        fs::write(root.join("etc/os-release"), "ID=debian\nVERSION_ID=12\n").expect("written");
        fs::write(
            units.join("ecs.service"),
            "[Service]\nExecStart=/usr/bin/ecs\n",
        )
        .expect("written");
        fs::write(units.join("empty.service"), "").expect("written");
        // Larger than a block of any of the formats, and not all alike.
        let long: Vec<u8> = (0..700_001_u32).map(|n| (n / 7 % 251) as u8).collect();
        fs::write(root.join("usr/bin/ecs"), long).expect("written");
        fs::set_permissions(root.join("usr/bin/ecs"), fs::Permissions::from_mode(0o755))
            .expect("set");
        symlink("usr/lib", root.join("lib")).expect("linked");
        symlink("/dev/null", root.join("etc/systemd/system/x.service")).expect("linked");
        symlink(
            "/lib/systemd/system/ecs.service",
            root.join("etc/systemd/system/multi-user.target.wants/ecs.service"),
        )
        .expect("linked");
        root
    }
}

/// Runs a tool and wants it to succeed.
pub fn run(program: &str, arguments: &[&str], folder: &Path) {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .unwrap_or_else(|error| panic!("{program} is needed for this test: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} failed: {said}");
}

/// Everything that can be read of a root, by path.
pub fn dump(root: &dyn Root) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut folders = vec![PathBuf::from("/")];
    while let Some(folder) = folders.pop() {
        for entry in root.list(&folder).expect("a folder can be listed") {
            let path = folder.join(&entry.name);
            if path.ends_with("lost+found") {
                continue;
            }
            let meta = root.link_meta(&path).expect("known");
            let shown = match meta.kind {
                Kind::Dir => {
                    folders.push(path.clone());
                    "dir".into()
                }
                Kind::Link => format!("-> {}", root.read_link(&path).expect("a link").display()),
                Kind::File => {
                    let content = root.read(&path, 1 << 20).expect("a file");
                    assert_eq!(content.len() as u64, meta.size_bytes);
                    let middle = root.read_at(&path, 300_000, 1000).expect("a part");
                    assert_eq!(middle, content.get(300_000..301_000).unwrap_or_default());
                    let sum: u64 = (1..).zip(&content).map(|(n, &b)| n * u64::from(b)).sum();
                    format!("{:o} {} {sum}", meta.permissions, content.len())
                }
                Kind::Other => "other".into(),
            };
            assert_eq!(entry.is_dir, meta.kind == Kind::Dir);
            all.insert(path, shown);
        }
    }
    all
}
