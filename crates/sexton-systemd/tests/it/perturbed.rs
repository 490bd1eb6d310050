//! Real roots with random changes, each asked of the root's own systemctl as well.
//!
//! `SEXTON_IMAGE_SEED` and `SEXTON_IMAGE_CASES` choose which and how many; a difference is shown
//! with what leads to it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::random::Random;
use crate::roots::{Rows, root, seen};

/// Cases of each release, where nothing else is asked for.
const N_CASES: u64 = 5;

/// Changes of one case.
const N_CHANGES_MAX: u64 = 16;

/// Folders that tell of units, and all that is copied of a root.
const COPIED: &[&str] = &[
    "etc/systemd",
    "usr/lib/systemd/system",
    "usr/lib/systemd/system-preset",
    "lib/systemd/system",
    "lib/systemd/system-preset",
];

/// Where units may lie, strongest first.
const FOLDERS: &[&str] = &[
    "etc/systemd/system.control",
    "run/systemd/system.control",
    "run/systemd/transient",
    "run/systemd/generator.early",
    "etc/systemd/system",
    "etc/systemd/system.attached",
    "run/systemd/system",
    "run/systemd/system.attached",
    "run/systemd/generator",
    "usr/local/lib/systemd/system",
    "usr/lib/systemd/system",
    "lib/systemd/system",
    "run/systemd/generator.late",
];

const PRESETS: &[&str] = &[
    "etc/systemd/system-preset",
    "run/systemd/system-preset",
    "usr/local/lib/systemd/system-preset",
    "usr/lib/systemd/system-preset",
];

/// What the root's own systemctl says. It is started by the root's own loader, so that nothing
/// needs to be mounted and root is not needed.
fn told(root: &Path, copy: &Path) -> Rows {
    let folders = |names: &[&str]| -> Vec<PathBuf> {
        let found = names.iter().map(|name| root.join(name));
        found.filter(|path| path.is_dir()).collect()
    };
    let multiarch = fs::read_dir(root.join("usr/lib")).expect("listed");
    let multiarch = multiarch
        .map(|entry| entry.expect("listed").file_name())
        .find(|name| name.to_string_lossy().ends_with("-linux-gnu"))
        .expect("a folder of libraries");
    let multiarch = multiarch.to_string_lossy();
    let libraries = folders(&[
        &format!("lib/{multiarch}"),
        &format!("usr/lib/{multiarch}"),
        &format!("usr/lib/{multiarch}/systemd"),
        "lib/systemd",
        "usr/lib/systemd",
    ]);
    let loader = fs::read_dir(&libraries[0]).expect("listed");
    let loader = loader
        .map(|entry| entry.expect("listed").path())
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ld-") && name.contains(".so")
        })
        .expect("a loader");
    let paths = libraries.iter().map(|path| path.as_os_str().to_owned());
    let paths: Vec<OsString> = paths.collect();
    let output = Command::new(loader)
        .arg("--library-path")
        .arg(paths.join(":".as_ref()))
        .arg(root.join("bin/systemctl"))
        .arg("--root")
        .arg(copy)
        .args([
            "list-unit-files",
            "--no-pager",
            "--plain",
            "--no-legend",
            "--full",
        ])
        .env("LC_ALL", "C")
        .output()
        .expect("systemctl runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(row).collect()
}

fn row(line: &str) -> (String, (String, Option<String>)) {
    let mut words = line.split_whitespace().map(str::to_owned);
    let name = words.next().expect("a name");
    let state = words.next().expect("a state");
    let preset = words.next().filter(|preset| preset != "-");
    (name, (state, preset))
}

/// A root that may be changed.
struct Copy {
    folder: tempfile::TempDir,
    units: Vec<String>,
    random: Random,
    /// What was done, for the one who reads of a difference.
    done: String,
}

impl Copy {
    fn of(root: &Path, random: Random) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["lib", "bin"] {
            if let Ok(target) = fs::read_link(root.join(name)) {
                fs::create_dir_all(folder.path().join("usr").join(name)).expect("made");
                symlink(target, folder.path().join(name)).expect("linked");
            }
        }
        let mut units = BTreeSet::new();
        for name in COPIED {
            let is_same = name.starts_with("lib/") && folder.path().join("lib").is_symlink();
            let from = root.join(name);
            if is_same || !from.is_dir() {
                continue;
            }
            let to = folder.path().join(name);
            fs::create_dir_all(to.parent().expect("a folder")).expect("made");
            let done = Command::new("cp").arg("-a").args([&from, &to]).status();
            assert!(done.expect("cp runs").success());
            if name.ends_with("/system") {
                units.extend(names(&to));
            }
        }
        name_the_version(root, folder.path());
        Self {
            folder,
            units: units.into_iter().collect(),
            random,
            done: String::new(),
        }
    }

    fn any<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.below(of.len() as u64) as usize]
    }

    fn unit(&mut self) -> String {
        let made = self.random.below(6) == 0;
        if made {
            let stem = self.any(&["new", "a-b-c", "new@", "new@one", "x\\x2dy", "UPPER", "1"]);
            let sort = self.any(&["service", "socket", "timer", "target", "path", "mount"]);
            return format!("{stem}.{sort}");
        }
        let n = self.random.below(self.units.len() as u64);
        self.units[n as usize].clone()
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        path
    }

    fn write(&mut self, name: &str, text: &str) {
        let path = self.path(name);
        if path.is_dir() {
            return;
        }
        writeln!(self.done, "  write {name}: {text:?}").expect("text");
        fs::remove_file(&path).ok();
        fs::write(path, text).expect("written");
    }

    fn link(&mut self, name: &str, target: &str) {
        let path = self.path(name);
        if path.is_dir() && !path.is_symlink() {
            return;
        }
        writeln!(self.done, "  link {name} -> {target}").expect("text");
        fs::remove_file(&path).ok();
        symlink(target, path).expect("linked");
    }

    /// The path of a unit in one folder, as some link may write it.
    fn target(&mut self, unit: &str) -> String {
        let place = self.random.below(6);
        match place {
            0 => format!("../{unit}"),
            1 => format!("/lib/systemd/system/{unit}"),
            2 => format!("../../../../usr/lib/systemd/system/{unit}"),
            3 => format!("/opt/units/{unit}"),
            4 => format!("/etc/systemd/system/{unit}"),
            _ => format!("/usr/lib/systemd/system/{unit}"),
        }
    }

    fn change(&mut self) {
        let folder = self.any(FOLDERS);
        let unit = self.unit();
        match self.random.below(14) {
            0 | 1 => self.enable(folder, &unit),
            2 => {
                let null = self.any(&["/dev/null", "../../../dev/null", "/dev/zero"]);
                self.link(&format!("{folder}/{unit}"), null);
            }
            3 => self.write(&format!("{folder}/{unit}"), ""),
            4 => {
                let other = self.unit();
                let target = self.target(&other);
                self.link(&format!("{folder}/{unit}"), &target);
            }
            5 => {
                let target = self.target(&unit);
                self.link(&format!("{folder}/{unit}"), &target);
            }
            6 | 7 => {
                let text = self.text();
                self.write(&format!("{folder}/{unit}"), &text);
            }
            8 => {
                let text = self.text();
                let by = self.random.below(3);
                let sort = unit.rsplit('.').next().unwrap_or_default();
                let name = match by {
                    0 => sort.to_owned(),
                    1 => match unit.split_once('-') {
                        Some((prefix, _)) => format!("{prefix}-.{sort}"),
                        None => unit.clone(),
                    },
                    _ => unit.clone(),
                };
                let file = self.any(&["10-a.conf", "50-b.conf", "z.conf", "no.txt"]);
                self.write(&format!("{folder}/{name}.d/{file}"), &text);
            }
            9 => self.remove(folder, &unit),
            10 | 11 => self.preset(),
            12 => {
                // A file from elsewhere.
                let text = self.text();
                self.write(&format!("opt/units/{unit}"), &text);
                self.link(&format!("{folder}/{unit}"), &format!("/opt/units/{unit}"));
            }
            _ => {
                let path = self.path(&format!("{folder}/{unit}"));
                if !path.exists() && !path.is_symlink() {
                    writeln!(self.done, "  folder {folder}/{unit}").expect("text");
                    fs::create_dir(path).expect("made");
                }
            }
        }
    }

    fn enable(&mut self, folder: &str, unit: &str) {
        let by = self.any(&[
            "multi-user.target",
            "timers.target",
            "none.target",
            "ssh.service",
        ]);
        let how = self.any(&["wants", "wants", "requires", "upholds"]);
        let name = match unit.split_once("@.") {
            Some((stem, sort)) => {
                let instance = self.any(&["", "one", "tty1", "x\\x20y"]);
                format!("{stem}@{instance}.{sort}")
            }
            None => unit.to_owned(),
        };
        let target = self.target(unit);
        let path = format!("{folder}/{by}.{how}/{name}");
        match self.random.below(12) {
            0 => self.write(&path, "[Unit]\n"),
            _ => self.link(&path, &target),
        }
    }

    fn remove(&mut self, folder: &str, unit: &str) {
        let folder = match self.random.below(2) {
            0 => "usr/lib/systemd/system",
            _ => folder,
        };
        let path = self.path(&format!("{folder}/{unit}"));
        if fs::remove_file(path).is_ok() {
            writeln!(self.done, "  remove {folder}/{unit}").expect("text");
        }
    }

    /// The text of a unit or drop-in, of which `[Install]` matters.
    fn text(&mut self) -> String {
        let mut text = String::new();
        let start = self.any(&[
            "",
            "\u{feff}",
            "# first\n",
            "\n\n",
            "[Unit]\nWants=a.service\n",
        ]);
        text.push_str(start);
        for _ in 0..self.random.below(4) {
            let section = self.any(&[
                "[Install]",
                "[Install]",
                "[Install]",
                " [Install] ",
                "[install]",
                "[Service]",
                "[Install",
            ]);
            let line = match self.random.below(10) {
                0 => "WantedBy=multi-user.target".to_owned(),
                1 => format!("Alias={}", self.unit()),
                2 => format!("Also={} {}", self.unit(), self.unit()),
                3 => "DefaultInstance=one".to_owned(),
                4 => "WantedBy=".to_owned(),
                5 => "Alias=".to_owned(),
                6 => format!("  RequiredBy = {} \\\n  b.target", self.unit()),
                7 => "UpheldBy=multi-user.target".to_owned(),
                8 => format!("# c\nAlias={}\\\n# in between\n\n", self.unit()),
                _ => format!("Alias=\"{}\"", self.unit()),
            };
            let end = self.any(&["\n", "\n", "\n", "\r\n", ""]);
            write!(text, "{section}\n{line}{end}").expect("text");
        }
        text
    }

    fn preset(&mut self) {
        let folder = self.any(PRESETS);
        let file = self.any(&[
            "00-a.preset",
            "50-b.preset",
            "90-systemd.preset",
            "99-z.preset",
            "x.conf",
        ]);
        let path = format!("{folder}/{file}");
        if self.random.below(8) == 0 {
            self.link(&path, "/dev/null");
            return;
        }
        let mut text = String::new();
        for _ in 0..=self.random.below(4) {
            let word = self.any(&[
                "enable",
                "disable",
                "ignore",
                "Enable",
                "disable\t",
                "nonsense",
            ]);
            let unit = self.unit();
            let pattern = match self.random.below(8) {
                0 => "*".to_owned(),
                1 => format!("{}*", unit.get(..2).unwrap_or("s")),
                2 => "[[:alpha:]]*.service".to_owned(),
                3 => "[!a-m]*.socket".to_owned(),
                4 => format!("{unit} extra"),
                5 => "s?h.*".to_owned(),
                6 => "[[:digit:][:upper:]]*".to_owned(),
                _ => unit,
            };
            let comment = self.any(&["", "", "# ", "; ", "  "]);
            let end = self.any(&["\n", "\n", " \n", "\r\n"]);
            write!(text, "{comment}{word} {pattern}{end}").expect("text");
        }
        self.write(&path, &text);
    }
}

/// systemd's own library, whose name tells the version; its content is of no use here.
fn name_the_version(root: &Path, copy: &Path) {
    let mut folders = vec![root.join("lib/systemd"), root.join("usr/lib/systemd")];
    for entry in fs::read_dir(root.join("usr/lib")).expect("listed") {
        folders.push(entry.expect("listed").path().join("systemd"));
    }
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    let library = entries
        .flatten()
        .map(|entry| entry.expect("listed").path())
        .find(|path| path.to_string_lossy().contains("libsystemd-shared-"))
        .expect("a library of systemd");
    let copied = copy.join(library.strip_prefix(root).expect("below the root"));
    fs::create_dir_all(copied.parent().expect("a folder")).expect("made");
    fs::write(copied, "").expect("written");
}

/// Files of a folder that are called as units are.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("listed");
    let entries = entries.map(|entry| entry.expect("listed"));
    entries
        .filter(|entry| !entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

fn asked(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}={text}: no number")),
        Err(_) => default,
    }
}

#[track_caller]
fn check(suite: &str) {
    let root = root(suite);
    let seed = asked("SEXTON_IMAGE_SEED", 1);
    let mut differences = String::new();
    for case in 0..asked("SEXTON_IMAGE_CASES", N_CASES) {
        let mut copy = Copy::of(&root, Random::new(seed, case));
        for _ in 0..=copy.random.below(N_CHANGES_MAX) {
            copy.change();
        }
        let (told, seen) = (told(&root, copy.folder.path()), seen(copy.folder.path()));
        assert!(told.len() > 200, "only {} units", told.len());
        let names: BTreeSet<&String> = told.keys().chain(seen.keys()).collect();
        let differ = names
            .into_iter()
            .filter(|name| told.get(*name) != seen.get(*name));
        let mut listed = String::new();
        for name in differ {
            let (told, seen) = (told.get(name), seen.get(name));
            writeln!(listed, "  {name}: systemctl {told:?}, sexton {seen:?}").expect("text");
        }
        if !listed.is_empty() {
            let done = &copy.done;
            write!(
                differences,
                "seed {seed}, case {case}:\n{done} =>\n{listed}"
            )
            .expect("text");
        }
    }
    assert!(differences.is_empty(), "{differences}");
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
