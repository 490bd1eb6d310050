//! Man pages and completions come from the definitions.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{sexton, stderr};

/// A folder of our own, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("sexton-generate-{}-{name}", std::process::id()));
        Self(folder)
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it was made");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("listed")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn man_pages_are_written() {
    let folder = Folder::new("man");
    let output = sexton(&["generate", "man", &folder.0.display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    let files = folder.files();
    for page in ["sexton.1", "sexton-zombies.1", "sexton-doctor.1"] {
        assert!(
            files.iter().any(|file| file == page),
            "{page} is not among {files:?}"
        );
    }
    let zombies = fs::read_to_string(folder.0.join("sexton-zombies.1")).expect("it was written");
    assert!(zombies.contains("all\\-pages"));
}

#[test]
fn completions_are_written_for_every_shell() {
    let folder = Folder::new("completions");
    let output = sexton(&["generate", "completions", &folder.0.display().to_string()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        folder.files(),
        [
            "_sexton",
            "_sexton.ps1",
            "sexton.bash",
            "sexton.elv",
            "sexton.fish"
        ]
    );
    let bash = fs::read_to_string(folder.0.join("sexton.bash")).expect("it was written");
    assert!(bash.contains("--all-pages"));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let output = sexton(&["generate", "man", "/proc/sexton"]);
    assert_eq!(output.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        complaint.starts_with("sexton: cannot make the folder /proc/sexton: "),
        "{complaint}"
    );
}

#[test]
fn the_page_of_conditions_is_current() {
    let printed = sexton_testkit::TempTree::new();
    let folder = printed.path().display().to_string();
    let output = sexton(&["generate", "kubernetes", &folder]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let read = |path: &Path| fs::read_to_string(path).expect("it is there");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conditions.md");
    assert!(
        read(&printed.path().join("conditions.md")) == read(&kept),
        "docs/conditions.md differs from the definitions: run cargo xtask docs"
    );
}
