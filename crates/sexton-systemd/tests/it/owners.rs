//! Who owns a file, asked of the package tools as well.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sexton_host::FolderRoot;
use sexton_systemd::packages::Packages;
use sexton_systemd::unit_file::{Tree, UnitSet};

use crate::roots::root;

fn owners(root: &Path, files: &[PathBuf]) -> (Packages, Vec<String>) {
    let root = FolderRoot::open(root).expect("opens");
    let mut tree = Tree::new(&root);
    let packages = Packages::read(&mut tree, files);
    (packages, tree.into_gaps())
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .output();
    let output = output.unwrap_or_else(|error| panic!("{program} is needed: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn as_dpkg_says() {
    let root = root("bookworm");
    let folder = FolderRoot::open(&root).expect("opens");
    let set = UnitSet::read(&mut Tree::new(&folder));
    let files: Vec<PathBuf> = set.iter().map(|unit| unit.file.clone()).collect();
    let (packages, gaps) = owners(&root, &files);
    assert_eq!((packages.database, gaps), (Some("dpkg"), Vec::new()));
    let admin = format!("--admindir={}", root.join("var/lib/dpkg").display());
    let told = run("dpkg-query", &[&admin, "-S", "*/systemd/system/*"]);
    let mut n_compared = 0;
    for line in told.lines() {
        let (package, file) = line.split_once(": ").expect("a package and a file");
        let package = package.split([':', ',']).next().expect("a name");
        // dpkg knows the name before the merge of /usr, the unit the one after it.
        let moved = file.replacen("/lib/", "/usr/lib/", 1);
        for file in [file, &moved] {
            if let Some(owner) = packages.owner(Path::new(file)) {
                assert_eq!(owner, package, "{file}");
                n_compared += 1;
            }
        }
    }
    assert!(n_compared > 200, "only {n_compared}");
    let n_installed = run("dpkg-query", &[&admin, "-f", "${db:Status-Status}\n", "-W"]);
    let n_installed = n_installed
        .lines()
        .filter(|line| *line == "installed")
        .count();
    assert_eq!(packages.versions.len(), n_installed);
}

/// A package made and entered by rpm itself.
#[test]
fn as_rpm_says() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).display().to_string();
    // Many files, so that the header takes more than one page.
    let spec = "Name: ecs\nVersion: 1.2\nRelease: 3\nSummary: x\nLicense: x\nBuildArch: noarch\n%description\nx\n\
        %install\nmkdir -p %{buildroot}/usr/lib/systemd/system %{buildroot}/opt/ecs\n\
        echo x > %{buildroot}/usr/lib/systemd/system/ecs.service\n\
        for n in $(seq 500); do echo $n > %{buildroot}/opt/ecs/some-longer-name-$n; done\n\
        %files\n/usr/lib/systemd/system/ecs.service\n/opt/ecs\n";
    fs::write(path("ecs.spec"), spec).expect("written");
    let top = format!("_topdir {}", path("build"));
    run(
        "rpmbuild",
        &["-bb", "--quiet", "--define", &top, &path("ecs.spec")],
    );
    let package = path("build/RPMS/noarch/ecs-1.2-3.noarch.rpm");
    let root = path("root");
    fs::create_dir(&root).expect("made");
    let arguments = [
        "--root",
        &root,
        "--dbpath",
        "/var/lib/rpm",
        "--justdb",
        "--nodeps",
        "-i",
        &package,
    ];
    run("rpm", &arguments);
    let unit = PathBuf::from("/usr/lib/systemd/system/ecs.service");
    let last = PathBuf::from("/opt/ecs/some-longer-name-500");
    let (packages, gaps) = owners(Path::new(&root), &[unit.clone(), last.clone()]);
    assert_eq!(gaps, Vec::<String>::new());
    assert_eq!(packages.database, Some("rpm"));
    assert_eq!(
        packages.versions.get("ecs").map(String::as_str),
        Some("1.2-3")
    );
    assert_eq!(packages.owner(&unit), Some("ecs"));
    assert_eq!(packages.owner(&last), Some("ecs"));
}

/// A header with a name, a version, a release and one file.
fn header() -> Vec<u8> {
    let store = b"ecs\x001.2\x003\0/opt/\0ecs\0\0\0\0\0".to_vec();
    let entries: [(u32, u32); 6] = [
        (1000, 0),
        (1001, 4),
        (1002, 8),
        (1118, 10),
        (1117, 16),
        (1116, 20),
    ];
    let mut raw = [6_u32.to_be_bytes(), (store.len() as u32).to_be_bytes()].concat();
    for (tag, offset) in entries {
        raw.extend(
            [tag, 0, offset, 1]
                .iter()
                .flat_map(|word| word.to_be_bytes()),
        );
    }
    raw.extend(store);
    raw
}

#[track_caller]
fn check_database(name: &str, content: &[u8]) {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("var/lib/rpm");
    fs::create_dir_all(&folder).expect("made");
    let file = PathBuf::from("/opt/ecs");
    fs::write(folder.join(name), content).expect("written");
    let (packages, gaps) = owners(root.path(), std::slice::from_ref(&file));
    assert_eq!(gaps, Vec::<String>::new());
    assert_eq!(packages.owner(&file), Some("ecs"));
    // Cut anywhere it is a gap, or less; never a crash.
    for cut in (0..content.len()).step_by(content.len() / 60) {
        fs::write(folder.join(name), &content[..cut]).expect("written");
        owners(root.path(), std::slice::from_ref(&file));
    }
}

/// The database of SUSE, by its layout; `rpm.rs` has one that rpm wrote.
#[test]
fn a_database_of_slots() {
    let word = |n: u32| n.to_le_bytes();
    let mut content = [&b"RpmP"[..], &word(0), &word(1), &word(1), &word(2)].concat();
    content.resize(32, 0);
    content.extend([&b"Slot"[..], &word(1), &word(256), &word(9)].concat());
    content.resize(4096, 0);
    content.extend(
        [
            &b"BlbS"[..],
            &word(1),
            &word(1),
            &word(header().len() as u32),
        ]
        .concat(),
    );
    content.extend(header());
    check_database("Packages.db", &content);
}

/// The database of RHEL 8 and before, by its layout; `rpm.rs` has one that rpm wrote.
#[test]
fn a_database_of_hashes() {
    let mut content = vec![0; 4096 * 3];
    content[12..16].copy_from_slice(&0x0006_1561_u32.to_le_bytes());
    content[20..24].copy_from_slice(&4096_u32.to_le_bytes());
    // A page with a key and a value that lies on page 2.
    content[4096 + 20] = 2;
    content[4096 + 25] = 13;
    content[4096 + 26..4096 + 30].copy_from_slice(&[0xf0, 0x0f, 0xe0, 0x0f]);
    let item = [
        &[3, 0, 0, 0][..],
        &2_u32.to_le_bytes(),
        &(header().len() as u32).to_le_bytes(),
    ]
    .concat();
    content[4096 + 0xfe0..4096 + 0xfec].copy_from_slice(&item);
    content[8192 + 22..8192 + 24].copy_from_slice(&(header().len() as u16).to_le_bytes());
    content[8192 + 25] = 7;
    content[8192 + 26..8192 + 26 + header().len()].copy_from_slice(&header());
    check_database("Packages", &content);
}

#[test]
fn as_apk_writes_it() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(root.path().join("lib/apk/db")).expect("made");
    let text = "C:Q1=\nP:musl\nV:1.2-r0\nF:lib\nR:ld-musl.so\n\nP:crond\nV:3\nF:\nF:etc\nF:etc/init.d\nR:crond\na:0:0:755\n\n";
    fs::write(root.path().join("lib/apk/db/installed"), text).expect("written");
    let script = PathBuf::from("/etc/init.d/crond");
    let (packages, _) = owners(root.path(), std::slice::from_ref(&script));
    assert_eq!(packages.database, Some("apk"));
    assert_eq!(packages.owner(&script), Some("crond"));
    assert_eq!(packages.versions.len(), 2);
}
