//! `cargo xtask docs`: man pages, completions, the pages of rules and that of facts, alert rules
//! and dashboards, printed by sexton from its own definitions.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};

use crate::{command, setup, workspace};

/// What `sexton generate` can write, each into a directory of that name.
const KINDS: &[&str] = &["man", "completions"];

pub(crate) fn docs() -> Result<ExitCode> {
    setup::install_missing(setup::For::Build)?;
    command::run(&mut workspace::build_sexton())?;
    for kind in KINDS {
        let dir = workspace::target_dir().join("docs").join(kind);
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        command::run(
            Command::new(workspace::sexton())
                .args(["generate", kind])
                .arg(&dir),
        )?;
        println!("{kind}: {}", dir.display());
    }
    // Kept in the tree: people read them before they have a binary. Tests compare them.
    for (kind, folder) in [
        ("codes", "docs/codes"),
        ("facts", "docs"),
        ("prometheus", "deploy/prometheus"),
        ("grafana", "deploy/grafana"),
        ("kubernetes", "docs"),
    ] {
        let folder = workspace::root().join(folder);
        command::run(
            Command::new(workspace::sexton())
                .args(["generate", kind])
                .arg(&folder),
        )?;
        println!("{kind}: {}", folder.display());
    }
    Ok(ExitCode::SUCCESS)
}
