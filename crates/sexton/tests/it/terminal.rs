//! Runs the binary on a terminal of its own.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::SEXTON;

/// A terminal of that size: our end, and that of the program.
pub fn open(columns: u16, rows: u16) -> (File, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("it is ours");
    unlockpt(&ours).expect("it can be opened");
    let name = ptsname(&ours, Vec::new()).expect("it has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let theirs = rustix::fs::open(name, flags, Mode::empty()).expect("it opens");
    let size = Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&theirs, size).expect("it has a size");
    (File::from(ours), theirs)
}

/// What the binary prints on a terminal of that size, without the carriage returns.
pub fn shown(
    folder: &Path,
    args: &[&str],
    (columns, rows): (u16, u16),
    env: &[(&str, &str)],
) -> String {
    let (ours, theirs) = open(columns, rows);
    let mut command = Command::new(SEXTON);
    command
        .args(args)
        .current_dir(folder)
        .env_remove("PAGER")
        .env_remove("LESS")
        .envs(env.iter().copied())
        .stdout(theirs);
    String::from_utf8_lossy(&all_of(ours, command)).replace("\r\n", "\n")
}

/// Every byte that the binary sends to a terminal of that size while it watches, without the
/// verdict.
pub fn watched(args: &[&str], (columns, rows): (u16, u16)) -> String {
    let (ours, theirs) = open(columns, rows);
    let mut command = Command::new(SEXTON);
    command.args(args).stdout(Stdio::null()).stderr(theirs);
    String::from_utf8_lossy(&all_of(ours, command)).into_owned()
}

/// What a program writes to its end of a terminal until it exits.
fn all_of(mut ours: File, mut command: Command) -> Vec<u8> {
    let mut child = command.spawn().expect("the binary runs");
    // It holds the other end of the terminal.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Reading fails once the other end is closed.
        let _ = ours.read_to_end(&mut bytes);
        bytes
    });
    child.wait().expect("it ends");
    reader.join().expect("it reads")
}
