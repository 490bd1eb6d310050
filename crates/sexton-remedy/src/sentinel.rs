//! Asks for a reboot in the way that kured and unattended-upgrades watch for: by a file.

use std::fs;
use std::path::Path;

use crate::consent::Consent;
use crate::error::RemedyError;

/// Where the file is looked for by default.
pub const SENTINEL: &str = "/var/run/reboot-required";

/// Writes the file. Whoever watches for it drains the node and boots it again.
pub fn ask_for_reboot(path: &Path, _consent: &Consent) -> Result<(), RemedyError> {
    const WHY: &str =
        "*** System restart required ***\nsexton: dying memory cgroups that nothing else frees\n";
    fs::write(path, WHY).map_err(|source| RemedyError::file("write", path, source))
}
