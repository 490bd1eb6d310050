//! Users' own managers, found by their sockets.

use std::path::{Path, PathBuf};

use sexton_host::{Host, HostError};

/// The socket of a user's manager, or why it cannot be seen whether there is one.
#[derive(Debug)]
pub struct UserSocket {
    /// The user.
    pub user: u32,
    /// The socket.
    pub path: Result<PathBuf, HostError>,
}

/// The sockets of all managers of users who have a folder below this one.
pub fn sockets(host: &Host, folder: &Path) -> Vec<UserSocket> {
    let mut sockets = Vec::new();
    for entry in host.list(folder).unwrap_or_default() {
        let name = entry.name.to_string_lossy().into_owned();
        let Ok(user) = name.parse() else {
            continue;
        };
        let folder = folder.join(name).join("systemd");
        let path = match host.list(&folder) {
            Ok(entries) if entries.iter().any(|entry| entry.name == "private") => {
                Ok(folder.join("private"))
            }
            Err(error) if !error.is_absent() => Err(error),
            Ok(_) | Err(_) => continue,
        };
        sockets.push(UserSocket { user, path });
    }
    sockets
}
