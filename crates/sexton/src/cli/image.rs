//! Arguments of `sexton image`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{FormatArgs, SignatureArgs};

/// Arguments of `sexton image`.
#[derive(Debug, Args)]
pub struct ImageArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// What can be done with an image.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Say which units are needed, unwanted, broken, harmless or unknown, and why
    ///
    /// Exits with 1 when a unit that is on is unwanted or broken, with 3 when parts of the
    /// image could not be read and nothing was found in the rest.
    Audit(AuditArgs),
    /// Show what would turn unwanted units off; write it as a bake step, or do it
    Fix(ImageFixArgs),
    /// Put a root folder back as it was before `fix --apply`, byte for byte
    Undo(ImageUndoArgs),
    /// A gate: exits with 1 when the image does not hold what the policy says
    Verify(VerifyArgs),
    /// What differs between two images, what matters first
    Diff(ImageDiffArgs),
}

/// What is judged, and by what.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Root folder, disk image, filesystem, OCI image or tar; / is the running system
    pub source: PathBuf,
    /// What the machine is for; detected if not given
    #[arg(long, value_name = "NAME")]
    pub shape: Option<String>,
    /// Signatures of your own.
    #[command(flatten)]
    pub signatures: SignatureArgs,
}

/// Arguments of `sexton image audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// What is judged.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Say all about one unit: what starts it, and why it is judged so
    #[arg(long, value_name = "UNIT")]
    pub why: Option<String>,
    /// Also list units that are needed, harmless or unknown
    #[arg(long)]
    pub all: bool,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// What a bake step is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BakeFormat {
    /// A shell script, as Packer runs it
    Shell,
    /// Lines for a Dockerfile
    Dockerfile,
    /// Tasks for Ansible
    Ansible,
    /// bootcmd of cloud-init
    CloudInit,
    /// A preset file of systemd
    Preset,
    /// A kickstart file
    Kickstart,
    /// A provisioner for a build block of Packer
    Packer,
}

/// Arguments of `sexton image fix`.
#[derive(Debug, Args)]
pub struct ImageFixArgs {
    /// What is fixed.
    #[command(flatten)]
    pub source: SourceArgs,
    /// Write the bake step to standard output
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with = "apply")]
    pub write: Option<BakeFormat>,
    /// Do it: SOURCE must be a root folder
    #[arg(long)]
    pub apply: bool,
    /// Do not ask
    #[arg(short, long, requires = "apply")]
    pub yes: bool,
}

/// Arguments of `sexton image undo`.
#[derive(Debug, Args)]
pub struct ImageUndoArgs {
    /// The root folder
    pub source: PathBuf,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// How the gate's result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum VerifyFormat {
    /// For people, in 80 columns
    #[default]
    Text,
    /// For programs
    Json,
    /// For build servers
    Junit,
    /// For code scanners
    Sarif,
}

/// Arguments of `sexton image verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// What is judged.
    #[command(flatten)]
    pub source: SourceArgs,
    /// What the image must hold; without it, nothing unwanted or broken may be on
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// How to write the result
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: VerifyFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Arguments of `sexton image diff`.
#[derive(Debug, Args)]
pub struct ImageDiffArgs {
    /// The first image
    pub a: PathBuf,
    /// The second
    pub b: PathBuf,
    /// What both are for; detected if not given
    #[arg(long, value_name = "NAME")]
    pub shape: Option<String>,
    /// Signatures of your own.
    #[command(flatten)]
    pub signatures: SignatureArgs,
    /// Also list packages
    #[arg(long)]
    pub all: bool,
    /// How to write the result.
    #[command(flatten)]
    pub format: FormatArgs,
}
