//! Captured nodes, and hostile ones, through the real door.

mod hierarchy;
mod root;
mod runtimes;
mod survey;

use std::path::Path;

use sexton_host::{FolderRoot, Host};

/// The node whose files are in a folder.
fn open(folder: &Path) -> Host {
    let root = FolderRoot::open(folder).expect("the folder is there");
    Host::new(Box::new(root)).expect("the folder has a mount table")
}
