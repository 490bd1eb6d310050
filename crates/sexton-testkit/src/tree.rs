//! Folders that stand for a node: captured ones, and small ones that a test makes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{CWD, FileType, Mode, mknodat};

/// A captured node, by its place in `fixtures/`: `6.18-debian12/cgroup-hybrid`.
///
/// # Panics
///
/// If there is no such capture: a test that reads nothing must not pass.
pub fn fixture(story: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let folder = root.join(story);
    assert!(
        folder.join("capture.toml").is_file(),
        "no capture in {}",
        folder.display()
    );
    folder
}

/// A folder of files that is removed with this value.
#[derive(Debug)]
pub struct TempTree {
    top: PathBuf,
}

#[expect(
    clippy::new_without_default,
    reason = "it makes a folder, which no default should"
)]
impl TempTree {
    /// An empty folder.
    ///
    /// # Panics
    ///
    /// This and the functions below panic if the files cannot be made.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "sexton-tree-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let top = std::env::temp_dir().join(name);
        fs::create_dir(&top).expect("the temporary folder takes a new folder");
        Self { top }
    }

    /// A folder in which a node's mount table says that procfs is at `/proc`, and
    /// what `mounts` adds.
    pub fn node(mounts: &str) -> Self {
        let table = format!("22 1 0:21 / /proc rw - proc proc rw\n{mounts}");
        Self::new().file("/proc/self/mountinfo", table)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.top
    }

    /// Adds a file and the directories above it. The path is as the node sees it.
    #[must_use]
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.place(path), content).expect("a new file can be written");
        self
    }

    /// Adds a file of zeros that takes no room.
    #[must_use]
    pub fn hole(self, path: &str, bytes: u64) -> Self {
        let file = fs::File::create(self.place(path)).expect("a new file can be made");
        file.set_len(bytes).expect("a file may have a hole");
        self
    }

    /// Adds a directory.
    #[must_use]
    pub fn directory(self, path: &str) -> Self {
        fs::create_dir_all(self.place(path)).expect("a new directory can be made");
        self
    }

    /// Adds a symbolic link, which may point anywhere.
    #[must_use]
    pub fn link(self, path: &str, target: impl AsRef<Path>) -> Self {
        symlink(target, self.place(path)).expect("a new link can be made");
        self
    }

    /// Adds a named pipe, which nobody writes to.
    #[must_use]
    pub fn pipe(self, path: &str) -> Self {
        let mode = Mode::RUSR | Mode::WUSR;
        mknodat(CWD, self.place(path), FileType::Fifo, mode, 0).expect("a new pipe can be made");
        self
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.top.join(path.trim_start_matches('/'));
        let above = place.parent().expect("it is below the folder");
        fs::create_dir_all(above).expect("directories can be made");
        place
    }
}

impl Drop for TempTree {
    fn drop(&mut self) {
        // What cannot be removed is left to the system's cleaner.
        let _ = fs::remove_dir_all(&self.top);
    }
}
