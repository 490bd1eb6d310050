//! What a drill will do, to be shown before it does.

use std::path::Path;
use std::time::Duration;

use sexton_host::Host;
use sexton_host::capabilities::Capabilities;

use crate::core_choice;
use crate::error::DrillError;

/// How much of a drill.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Dying memory cgroups to make.
    pub n_dying: u32,
    /// How long it lasts.
    pub time: Duration,
}

/// What a drill will do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How much.
    pub options: Options,
    /// The core that is held.
    pub core: u32,
}

/// Programs that set up the two network devices.
const PROGRAMS: [(&str, &str); 2] = [("ip", "iproute2"), ("ethtool", "ethtool")];

/// Capabilities, and what for.
const CAPABILITIES: [&str; 4] = [
    "CAP_SYS_ADMIN",
    "CAP_NET_ADMIN",
    "CAP_SYS_NICE",
    "CAP_SYSLOG",
];

impl Plan {
    /// Makes one, or says why there can be no drill here. Changes nothing.
    pub fn make(options: Options) -> Result<Self, DrillError> {
        let host = Host::live().map_err(DrillError::Host)?;
        let held = Capabilities::of_self(&host).map_err(DrillError::Host)?;
        let missing = held.missing(&CAPABILITIES);
        if !missing.is_empty() {
            let text = format!(
                "it lacks {}; run it as root: sudo sexton drill",
                missing.join(", ")
            );
            return Err(DrillError::NotPossible(text));
        }
        for (program, package) in PROGRAMS {
            if !is_on_path(program) {
                let text = format!("there is no program {program}; install {package}");
                return Err(DrillError::NotPossible(text));
            }
        }
        Ok(Self {
            options,
            core: core_choice::choose(&host)?,
        })
    }

    /// What will be done, a line each.
    pub fn lines(&self) -> Vec<String> {
        let seconds = self.options.time.as_secs_f64();
        vec![
            format!(
                "make {} memory cgroups that die but stay, by appending to a log in /var/tmp",
                self.options.n_dying
            ),
            format!(
                "hold core {} in the kernel by reading memory statistics at real-time \
                 priority, nine tenths of each second",
                self.core
            ),
            format!(
                "starve the polling of a network device of its own on core {}; no real \
                 device is touched",
                self.core
            ),
            "write one line about a stuck device, marked as a drill, to the kernel's log".into(),
            format!("undo all of it after {seconds:.0} s, on Ctrl-C, and after a kill"),
        ]
    }
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    // Programs for administrators are often left out of a plain path.
    let more = ["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).to_owned());
    folders
        .chain(more)
        .any(|folder| folder.join(program).is_file())
}
