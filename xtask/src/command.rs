//! Runs other programs, and says which one failed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Shows the command line, runs it with our own streams, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", line(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start {}", line(command)))?;
    ensure!(status.success(), "{} ended with {status}", line(command));
    Ok(())
}

/// Runs the command quietly and gives its standard output; its errors become ours.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", line(command)))?;
    let said = String::from_utf8_lossy(&stderr);
    ensure!(
        status.success(),
        "{} ended with {status}: {}",
        line(command),
        said.trim()
    );
    String::from_utf8(stdout).with_context(|| format!("{} printed no text", line(command)))
}

/// Where `name` is on the PATH.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    // Debian keeps root's tools out of a user's PATH, yet they can be looked at.
    let sbin = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(sbin)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Whether this process may do what root may.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // The owner of /proc/self is our effective user; the standard library has no geteuid.
    Path::new("/proc/self")
        .metadata()
        .is_ok_and(|entry| entry.uid() == 0)
}

/// The command as one could type it, environment first.
fn line(command: &Command) -> String {
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let _ = write!(text, "{}={:?} ", name.display(), value);
        }
    }
    text.push_str(&command.get_program().to_string_lossy());
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_with_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo broken >&2; exit 3"]));
        let text = format!("{:#}", error.expect_err("exit 3 is a failure"));
        assert!(text.contains("sh -c"), "{text}");
        assert!(text.contains("broken"), "{text}");
    }

    #[test]
    fn a_command_line_shows_its_environment() {
        assert_eq!(
            line(Command::new("cargo").arg("build").env("A", "b")),
            "A=\"b\" cargo build"
        );
    }
}
