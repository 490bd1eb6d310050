//! Images made by real tools, and images made to do harm.

mod btrfs;
mod formats;
mod hostile;
mod shelf;
mod split;
mod xfs;
