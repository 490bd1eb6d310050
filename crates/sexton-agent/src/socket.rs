//! The agent's unix socket: a client that connects gets the status as one JSON object.
//!
//! Nothing is read from a client, so that none can hurt; one that does not read is dropped
//! after a second.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::status::{Shared, Status};

/// How long a client may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A longer status is none.
const MAX_BYTES: u64 = 16 << 20;

/// Answers on a thread of its own for as long as the process lives. A socket that an agent
/// left behind is replaced; one that answers is not.
pub fn serve_status(path: &Path, shared: &Shared) -> io::Result<()> {
    if UnixStream::connect(path).is_ok() {
        let text = "another process listens there; give this agent a socket of its own";
        return Err(io::Error::new(io::ErrorKind::AddrInUse, text));
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    // Titles of findings name units and images: for root and the group of the agent.
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    let shared = shared.clone();
    let named = thread::Builder::new().name("status".into());
    named.spawn(move || {
        for client in listener.incoming().flatten() {
            // A client that is gone already misses nothing.
            let _ = answer(client, &shared.get());
        }
    })?;
    Ok(())
}

fn answer(mut client: UnixStream, status: &Status) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let mut json = serde_json::to_vec(status)?;
    json.push(b'\n');
    client.write_all(&json)
}

/// Asks an agent how it is.
pub fn ask(path: &Path) -> io::Result<Status> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE * 5))?;
    let mut json = Vec::new();
    stream.take(MAX_BYTES).read_to_end(&mut json)?;
    Ok(serde_json::from_slice(&json)?)
}
