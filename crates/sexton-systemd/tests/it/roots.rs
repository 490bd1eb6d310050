//! Every row of `systemctl --root=DIR list-unit-files`, on real Debian roots.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use sexton_host::FolderRoot;
use sexton_systemd::unit_file::{Tree, UnitSet};

pub type Rows = BTreeMap<String, (String, Option<String>)>;

/// A root, or a failure that the runner shows as NOT RUN.
pub fn root(suite: &str) -> PathBuf {
    let Some(folder) = std::env::var_os("SEXTON_IMAGE_ROOTS") else {
        panic!("sexton-missing: roots: cargo xtask test image makes them");
    };
    let root = Path::new(&folder).join(suite);
    if !root.is_dir() {
        panic!("sexton-missing: roots: {suite} could not be made from this machine's archive");
    }
    root
}

/// What systemctl says: this machine's own, which reads the root from outside.
pub fn told(root: &Path) -> Rows {
    let output = Command::new("systemctl")
        .arg("--root")
        .arg(root)
        .args(["list-unit-files", "--no-pager", "--output=json"])
        .output()
        .expect("systemctl runs");
    assert!(output.status.success(), "{output:?}");
    let rows: Vec<BTreeMap<String, Option<String>>> =
        serde_json::from_slice(&output.stdout).expect("JSON");
    rows.into_iter()
        .map(|mut row| {
            let mut take = |key: &str| row.remove(key).flatten();
            let name = take("unit_file").expect("a name");
            (name, (take("state").expect("a state"), take("preset")))
        })
        .collect()
}

pub fn seen(root: &Path) -> Rows {
    let root = FolderRoot::open(root).expect("opens");
    let mut tree = Tree::new(&root);
    let set = UnitSet::read(&mut tree);
    assert_eq!(tree.into_gaps(), Vec::<String>::new());
    set.iter()
        .filter(|unit| unit.is_listed)
        .map(|unit| {
            let preset = unit.preset.map(|preset| preset.name().to_owned());
            (unit.name.clone(), (unit.state.name().to_owned(), preset))
        })
        .collect()
}

/// Both say the same of every unit.
#[track_caller]
pub fn compare(root: &Path) -> usize {
    let (told, seen) = (told(root), seen(root));
    let names: std::collections::BTreeSet<&String> = told.keys().chain(seen.keys()).collect();
    let differ = |name: &&&String| told.get(**name) != seen.get(**name);
    let differences: Vec<String> = names
        .iter()
        .filter(differ)
        .map(|name| {
            let (told, seen) = (told.get(*name), seen.get(*name));
            format!("{name}: systemctl {told:?}, sexton {seen:?}")
        })
        .collect();
    assert_eq!(differences, Vec::<String>::new());
    told.len()
}

#[track_caller]
fn check(suite: &str) {
    let n_units = compare(&root(suite));
    assert!(n_units > 300, "only {n_units} units");
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn bullseye() {
    check("bullseye");
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn bookworm() {
    check("bookworm");
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn trixie() {
    check("trixie");
}

#[test]
#[ignore = "needs roots: run cargo xtask test image"]
fn sid() {
    check("sid");
}
