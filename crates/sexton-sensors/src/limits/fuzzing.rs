//! For the fuzz targets.

use super::{cgroups, node, ports};

/// What the files of limits might say.
pub fn limit_files(bytes: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(bytes);
    node::table(&text, "entries", &["table_fulls"]);
    node::file_nr(&text);
    ports::sockets(&text);
    ports::connection(&text);
    cgroups::refused(&text)
}
