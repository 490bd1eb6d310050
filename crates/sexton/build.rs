//! Notes the commit that the binary is built from, for `sexton --version`.

use std::process::Command;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    let version = match git(&["rev-parse", "--short=12", "HEAD"]) {
        Some(commit) => format!("{version} ({commit})"),
        // Built from an archive: there is no commit to name.
        None => version.to_owned(),
    };
    println!("cargo:rustc-env=SEXTON_VERSION={version}");
    // The log of HEAD grows with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
