//! A shell loop that runs something in a fresh cgroup again and again, as a supervisor does.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// Each run appends a page to a file and so leaves a dying cgroup behind:
/// `sh -c LOOP loop PARENT FILE SECONDS`.
pub const LOOP: &str = r#"
i=0
while :; do
    i=$((i + 1))
    mkdir "$1/run-$i"
    sh -c 'echo 0 > "$1/cgroup.procs"; head -c 4096 /dev/zero >> "$2"' run "$1/run-$i" "$2"
    rmdir "$1/run-$i"
    sleep "$3"
done
"#;

/// The loop at work. It ends when this is dropped.
#[derive(Debug)]
pub struct Churner {
    child: Child,
}

impl Churner {
    /// Begins.
    pub fn start(parent: &Path, file: &Path, seconds: &str) -> Result<Self> {
        let child = Command::new("sh")
            .args(["-c", LOOP, "loop"])
            .args([parent, file])
            .arg(seconds)
            .stdin(Stdio::null())
            .spawn()
            .context("cannot start a shell")?;
        Ok(Self { child })
    }

    /// As the judge names it.
    pub fn name(&self) -> String {
        format!("sh[{}]", self.child.id())
    }
}

impl Drop for Churner {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
