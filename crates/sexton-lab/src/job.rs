//! The folder that a machine of the lab gets as `/job`: what it runs, the units that run
//! it, and room for what comes of it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The unit that runs the job. What it needs comes with the default target; when it
/// ends, however it ends, so does the machine.
const UNITS: [(&str, &str); 2] = [
    (
        "default.target",
        "[Unit]\nRequires=multi-user.target\nAfter=multi-user.target\nWants=job.service\n",
    ),
    (
        "job.service",
        "[Unit]\nAfter=multi-user.target\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\n\
         ExecStart=/bin/sh -e /job/run\nExecStopPost=/bin/systemctl poweroff --force --force\n",
    ),
];

/// Written last: a job without it has failed.
pub const DONE: &str = "done";

/// Puts units, programs and the shell script `job`, which becomes `/job/run`, into the folder.
pub fn furnish(
    folder: &Path,
    units: &[(&str, &str)],
    programs: &[impl AsRef<Path>],
    job: &str,
) -> Result<()> {
    let place = folder.join("units");
    fs::create_dir_all(&place).with_context(|| format!("cannot create {}", place.display()))?;
    for (name, text) in UNITS.iter().chain(units) {
        write(&place.join(name), text)?;
    }
    for program in programs.iter().map(AsRef::as_ref) {
        let name = program.file_name().context("a program's path")?;
        fs::copy(program, folder.join(name))
            .with_context(|| format!("cannot copy {}", program.display()))?;
    }
    write(
        &folder.join("run"),
        &format!("cd /job\n{job}\ntouch {DONE}\n"),
    )
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
