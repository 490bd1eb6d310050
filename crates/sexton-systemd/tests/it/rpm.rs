//! Databases of rpm, written by rpm itself: that of Debian 11 writes Berkeley DB, that of
//! Debian 13 the slots of SUSE, and both SQLite.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sexton_host::FolderRoot;
use sexton_systemd::packages::Packages;
use sexton_systemd::unit_file::Tree;

use crate::roots::root;

const N_PACKAGES: usize = 24;

/// One package after the other, from one file: each with a unit, and with so many other files
/// that some headers take one page of a database and some a hundred.
fn spec() -> String {
    let mut spec = "Name: all\nVersion: 1\nRelease: 1\nSummary: x\nLicense: x\nBuildArch: noarch\n%description\nx\n".to_owned();
    let mut install = "%install\nmkdir -p %{buildroot}/usr/lib/systemd/system\n".to_owned();
    let mut files = String::new();
    for n in 1..=N_PACKAGES {
        let many = n * n % 400;
        spec += &format!("%package -n p{n}\nVersion: 1.{n}\nSummary: x\n%description -n p{n}\nx\n");
        install += &format!(
            "echo x > %{{buildroot}}/usr/lib/systemd/system/u{n}.service\nmkdir -p %{{buildroot}}/opt/p{n}\n\
             for k in $(seq {many}); do echo $k > %{{buildroot}}/opt/p{n}/some-longer-name-$k; done\n"
        );
        files += &format!("%files -n p{n}\n/usr/lib/systemd/system/u{n}.service\n/opt/p{n}\n");
    }
    spec + &install + &files
}

fn run(command: &mut Command) -> String {
    let output = command.env("LC_ALL", "C").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder inside a root, gone when the test ends.
struct Inside(PathBuf);

impl Drop for Inside {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Has the rpm of a release install the packages into a database of this sort and remove some,
/// and compares all owners with what it says then.
#[track_caller]
fn check(packages: &Path, suite: &str, backend: &str) {
    let root = root(suite);
    let name = format!("sexton-rpm-{}-{backend}", std::process::id());
    let inside = Inside(root.join("tmp").join(&name));
    fs::create_dir_all(inside.0.join("var/lib/rpm")).expect("made");
    fs::create_dir(inside.0.join("packages")).expect("made");
    for entry in fs::read_dir(packages).expect("listed") {
        let path = entry.expect("an entry").path();
        let to = inside
            .0
            .join("packages")
            .join(path.file_name().expect("a name"));
        fs::copy(path, to).expect("copied");
    }
    let rpm = |arguments: &str| {
        let line = format!(
            "rpm --dbpath /tmp/{name}/var/lib/rpm --define '_db_backend {backend}' {arguments}"
        );
        run(Command::new("chroot").arg(&root).args(["sh", "-c", &line]))
    };
    rpm("--initdb");
    let install = "--justdb --nodeps --nodigest --nosignature -i";
    rpm(&format!("{install} /tmp/{name}/packages/p*.rpm"));
    rpm("--justdb --nodeps -e p3 p20 p21");
    let told = rpm("-qa --qf '%{NAME} %{VERSION}-%{RELEASE}\\n'");
    let told: BTreeMap<String, String> = told
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect();
    assert_eq!(told.len(), N_PACKAGES - 3, "{backend}");
    let files = rpm("-qa --qf '[%{FILENAMES} %{=NAME}\\n]'");
    let files: Vec<(PathBuf, &str)> = files
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(file, package)| (PathBuf::from(file), package))
        .collect();
    assert!(files.len() > 1_000, "{backend}: only {} files", files.len());
    let folder = FolderRoot::open(&inside.0).expect("opens");
    let mut tree = Tree::new(&folder);
    let asked: Vec<PathBuf> = files.iter().map(|(file, _)| file.clone()).collect();
    let seen = Packages::read(&mut tree, &asked);
    assert_eq!(tree.into_gaps(), Vec::<String>::new(), "{backend}");
    assert_eq!(seen.versions, told, "{backend}");
    for (file, package) in files {
        assert_eq!(
            seen.owner(&file),
            Some(package),
            "{backend}: {}",
            file.display()
        );
    }
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn every_database_as_rpm_itself_writes_it() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    fs::write(at("all.spec"), spec()).expect("written");
    run(Command::new("rpmbuild")
        .args(["-bb", "--quiet"])
        .args(["--define", "_binary_payload w1.gzdio"])
        // What strips and compresses files has nothing to do here.
        .args(["--define", "__os_install_post %{nil}"])
        .args(["--define", &format!("_topdir {}", at("build").display())])
        .arg(at("all.spec")));
    let packages = at("build/RPMS/noarch");
    check(&packages, "bullseye", "bdb");
    check(&packages, "bullseye", "sqlite");
    check(&packages, "trixie", "ndb");
    check(&packages, "trixie", "sqlite");
}
