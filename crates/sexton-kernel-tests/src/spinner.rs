//! A program that spends known shares of its time in known functions, built with frame
//! pointers, and run on one core.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SOURCE: &str = include_str!("spinner/spinner.c");

/// The built program, in a folder of its own that goes with it.
pub struct Spinner {
    folder: PathBuf,
}

/// One that runs.
pub struct Spinning {
    child: Child,
}

impl Spinner {
    /// Builds it; `name` tells the tests of one run apart.
    pub fn build(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("sexton-spinner-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let source = folder.join("spinner.c");
        fs::write(&source, SOURCE).expect("its source");
        let built = Command::new("cc")
            .args([
                "-O1",
                "-fno-omit-frame-pointer",
                "-fno-optimize-sibling-calls",
            ])
            .args(["-static", "-o"])
            .arg(folder.join("spinner"))
            .arg(&source)
            .status();
        assert!(built.expect("cc is there").success(), "it does not build");
        Self { folder }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.join("spinner")
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts it on one core, before whatever else runs there.
    pub fn start(&self, core: u32, args: &[&str]) -> Spinning {
        let path = self.path();
        let args = args.iter().map(OsStr::new);
        let command: Vec<&OsStr> = [path.as_os_str()].into_iter().chain(args).collect();
        start_on(core, &command)
    }
}

/// Starts a command on one core, before whatever else runs there. What it starts is the
/// same process all along.
pub fn start_on(core: u32, command: &[&OsStr]) -> Spinning {
    let child = Command::new("taskset")
        .args(["-c", &core.to_string(), "nice", "-n", "-20"])
        .args(command)
        .stdout(Stdio::piped())
        .spawn();
    Spinning {
        child: child.expect("started"),
    }
}

/// When a program was busy, and how much of that it really ran.
#[derive(Debug, Clone, Copy)]
pub struct Busy {
    /// From when, in ns since boot.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// Processor time that it had meanwhile.
    pub used_ns: u64,
}

impl Spinning {
    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("our own child").is_some()
    }

    /// Waits for its end and asks when it was busy.
    pub fn join(self) -> Busy {
        let out = self.child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let numbers: Vec<u64> = text.split_whitespace().flat_map(str::parse).collect();
        let [from_ns, to_ns, used_ns] = numbers[..] else {
            panic!("it said {text:?}");
        };
        Busy {
            from_ns,
            to_ns,
            used_ns,
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
