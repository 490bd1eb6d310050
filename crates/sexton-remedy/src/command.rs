//! Runs a program of the node with a deadline, and takes down what it says.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sexton_model::text::escape;

use crate::error::RemedyError;

/// systemd gives a service 90 s to stop; then it kills it.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a program may say before the rest is cut off.
const MOST_BYTES: u64 = 64 << 10;

/// Runs it to its end. What it wrote is returned, also when that is an error's text.
pub(crate) fn run(program: &str, args: &[&str]) -> Result<String, RemedyError> {
    let shown = line(program, args);
    let unrun = |source| RemedyError::Run {
        command: shown.clone(),
        source,
    };
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(unrun)?;
    let out = reader(child.stdout.take());
    let err = reader(child.stderr.take());
    let status = wait(&mut child, &shown)?;
    let (out, err) = (
        out.join().unwrap_or_default(),
        err.join().unwrap_or_default(),
    );
    if status {
        Ok(out)
    } else {
        Err(RemedyError::Failed {
            command: shown,
            said: escape(err.trim().as_bytes()).to_string(),
        })
    }
}

/// As it would be typed.
pub(crate) fn line(program: &str, args: &[&str]) -> String {
    let mut line = program.to_owned();
    for arg in args {
        line.push(' ');
        line.push_str(&quoted(arg));
    }
    line
}

/// An argument as a shell takes it.
pub(crate) fn quoted(arg: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@=,%+".contains(c);
    match !arg.is_empty() && arg.chars().all(is_plain) {
        true => arg.to_owned(),
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    }
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(pipe) = pipe {
            // A pipe that breaks has said all it will.
            pipe.take(MOST_BYTES).read_to_end(&mut said).ok();
        }
        String::from_utf8_lossy(&said).into_owned()
    })
}

fn wait(child: &mut Child, shown: &str) -> Result<bool, RemedyError> {
    let until = Instant::now() + DEADLINE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                child.kill().ok();
                child.wait().ok();
                return Err(RemedyError::TimedOut {
                    command: shown.to_owned(),
                    seconds: DEADLINE.as_secs(),
                });
            }
            Err(source) => {
                return Err(RemedyError::Run {
                    command: shown.to_owned(),
                    source,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_when_a_shell_would_take_them_apart() {
        assert_eq!(
            line("systemctl", &["stop", "a.service"]),
            "systemctl stop a.service"
        );
        assert_eq!(line("x", &["a b", "it's", ""]), r"x 'a b' 'it'\''s' ''");
    }

    #[test]
    fn what_a_program_says_is_kept() {
        assert_eq!(run("sh", &["-c", "echo yes"]).expect("it runs"), "yes\n");
        let error = run("sh", &["-c", "echo no >&2; exit 3"]).expect_err("it fails");
        assert!(error.to_string().contains("no"), "{error}");
        assert!(run("no-such-program", &[]).is_err());
    }
}
