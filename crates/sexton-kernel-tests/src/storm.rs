//! A program that starts processes which live for less than a millisecond.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SOURCE: &str = include_str!("storm/storm.c");

/// The built program, in a folder of its own that goes with it.
pub struct Storm {
    folder: PathBuf,
}

/// How processes come to be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// They go on in the program that forked them.
    Fork,
    /// They execute a program.
    Exec,
}

impl Storm {
    /// Builds it; `name` tells the tests of one run apart.
    pub fn build(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("sexton-storm-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let source = folder.join("storm.c");
        fs::write(&source, SOURCE).expect("its source");
        let built = Command::new("cc")
            .args(["-O1", "-fno-omit-frame-pointer"])
            .args(["-fno-optimize-sibling-calls", "-o"])
            .arg(folder.join("storm"))
            .arg(&source)
            .status();
        assert!(built.expect("cc is there").success(), "it does not build");
        Self { folder }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.join("storm")
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts it: how long it lasts in milliseconds, and how long each child works in microseconds.
    pub fn start(&self, kind: Kind, ms: u32, work_us: u32) -> Child {
        let kind = match kind {
            Kind::Fork => "fork",
            Kind::Exec => "exec",
        };
        Command::new(self.path())
            .args([kind, &ms.to_string(), &work_us.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("started")
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
