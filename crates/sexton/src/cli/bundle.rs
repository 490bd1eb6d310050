//! Arguments of `sexton bundle`.

use std::path::PathBuf;

use clap::Subcommand;

/// What to do with a recording.
#[derive(Debug, Subcommand)]
pub enum BundleCommand {
    /// Pack a folder into one file, .tar.zst; it may be recorded into meanwhile
    Pack {
        /// The recording
        folder: PathBuf,
        /// The file to write; FOLDER.tar.zst if not given
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Unpack such a file into a folder
    Unpack {
        /// The file
        file: PathBuf,
        /// The folder to make; FILE without .tar.zst if not given
        #[arg(short, long, value_name = "FOLDER")]
        output: Option<PathBuf>,
    },
}
