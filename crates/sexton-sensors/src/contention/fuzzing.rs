//! For the fuzz targets.

use super::{processes, sign};

/// What files of a task and of the node might say of waiting.
pub fn waiting_files(file: &[u8]) -> String {
    let times = processes::parse(file);
    format!("{times:?} {:?}", sign::n_runnable(file))
}
