//! Waits for the end of the drill, however that comes, and clears up.

use std::io::{self, Read};

use super::{Orders, Part, say_ready};
use crate::clean::clear;
use crate::error::DrillError;
use crate::sandbox::Sandbox;

pub(crate) static PART: Part = Part {
    name: "janitor",
    work,
};

fn work(sandbox: &Sandbox, _: &Orders) -> Result<(), DrillError> {
    // Away from the terminal: Ctrl-C is for the drill, and its end is what we wait for.
    let _ = rustix::process::setsid();
    say_ready()?;
    // The drill holds the other end. It closes when the drill ends, even by a kill.
    let ended = io::stdin().read_to_end(&mut Vec::new());
    ended.map_err(DrillError::file("read from", "the drill".as_ref()))?;
    clear(sandbox)
}
