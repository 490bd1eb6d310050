//! Arguments of `sexton bundle`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

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
    /// Copy a recording without what tells whose it is, to hand it on
    ///
    /// Left out are the name and boot of the node, its kernel's command line and what it was
    /// made from, all stacks, and the files that were kept as they were. Names of units,
    /// images, cgroups, programs and files stay unless they are replaced or dropped.
    Redact(RedactArgs),
}

/// Arguments of `sexton bundle redact`.
#[derive(Debug, Args)]
pub struct RedactArgs {
    /// The recording
    pub folder: PathBuf,
    /// The folder to make
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Leave out what these sensors said, separated by commas
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub without: Vec<String>,
    /// Leave out records that hold this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub drop: Vec<String>,
    /// Write another text in the place of this one; may be repeated
    #[arg(long, value_name = "OLD=NEW")]
    pub replace: Vec<String>,
}
