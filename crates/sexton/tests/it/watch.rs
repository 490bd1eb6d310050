//! `sexton watch` on a terminal of its own, 80 columns wide and 24 lines high.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use rustix::termios::{LocalModes, tcgetattr};
use sexton_testkit::TempTree;

use crate::command::{SEXTON, sexton, stderr};
use crate::terminal;

const ENTERED: &[u8] = b"\x1b[?1049h";
const LEFT: &[u8] = b"\x1b[?1049l";

/// A view on a terminal that a test reads and types on.
pub struct Watch {
    child: Child,
    ours: File,
    theirs: OwnedFd,
    shown: Vec<u8>,
}

impl Watch {
    fn of(bundle: &Path) -> Self {
        Self::sized(bundle, 80, 24)
    }

    /// On so many columns and lines.
    pub fn sized(bundle: &Path, columns: u16, lines: u16) -> Self {
        let (ours, theirs) = terminal::open(columns, lines);
        let end = || theirs.try_clone().expect("another handle");
        let child = Command::new(SEXTON)
            .args(["watch", "--from"])
            .arg(bundle)
            .env("TERM", "xterm-256color")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the binary runs");
        Self {
            child,
            ours,
            theirs,
            shown: Vec::new(),
        }
    }

    /// The first screen, whose last line says how to quit it.
    pub fn first_screen(mut self) -> Vec<u8> {
        self.wait_for(b"quit");
        let shown = self.shown.clone();
        self.ours.write_all(b"q").expect("it can be typed on");
        assert_eq!(self.end().code(), Some(0));
        shown
    }

    /// Reads until this has been shown.
    fn wait_for(&mut self, text: &[u8]) {
        let mut bytes = [0; 4096];
        while !self.shown.windows(text.len()).any(|part| part == text) {
            let n = self.ours.read(&mut bytes).expect("it shows something");
            self.shown.extend_from_slice(&bytes[..n]);
        }
    }

    /// Whether lines are edited and echoed, as a shell leaves it.
    fn is_plain(&self) -> bool {
        let modes = tcgetattr(&self.theirs)
            .expect("it is a terminal")
            .local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    fn end(mut self) -> ExitStatus {
        self.wait_for(LEFT);
        let status = self.child.wait().expect("it ends");
        assert!(self.is_plain(), "the terminal is given back");
        status
    }
}

fn recording(folder: &Path) -> std::path::PathBuf {
    let bundle = folder.join("node.bundle");
    let path = bundle.to_str().expect("text");
    let args = [
        "record",
        "--sensors",
        "cores,pressure",
        "--for",
        "1s",
        "-o",
        path,
    ];
    let output = sexton(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    bundle
}

#[test]
fn a_recording_is_shown_until_the_key_to_quit() {
    let folder = TempTree::new();
    let mut watch = Watch::of(&recording(folder.path()));
    watch.wait_for(ENTERED);
    watch.wait_for(b"quit");
    assert!(!watch.is_plain(), "keys are read one by one");
    watch.ours.write_all(b"q").expect("it can be typed on");
    assert_eq!(watch.end().code(), Some(0));
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let folder = TempTree::new();
    let bundle = recording(folder.path());
    for signal in ["-TERM", "-HUP"] {
        let mut watch = Watch::of(&bundle);
        watch.wait_for(b"quit");
        let id = watch.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.expect("kill is there").success());
        assert_eq!(watch.end().code(), Some(0), "{signal}");
    }
}
