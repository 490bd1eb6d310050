//! Reading a recording of a million samples, next to those who also read it: `perf script`,
//! inferno, FlameScope and samply; and a heat map of twelve hours. Needs root and perf.
//!
//! `cargo xtask bench profile`; `-- --write` rewrites the section of `docs/benchmarks.md`.
//! `-- --data FILE` reads a recording that is there. `FLAMESCOPE=FOLDER` is a checkout of
//! FlameScope, and `FLAMESCOPE_PYTHON` a Python; xtask builds samply and says where it is.
//! Who is not there is named in the table.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

mod long;
mod peers;
mod record;
mod table;

use std::path::PathBuf;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    // The bench runs itself as the peer that is a library.
    if let [flag, file] = &args[..]
        && flag == peers::INFERNO
    {
        return peers::run_inferno(file.as_ref());
    }
    let folder = tempfile::tempdir()?;
    let given = args.iter().position(|arg| arg == "--data");
    let given = given.and_then(|at| args.get(at + 1)).map(PathBuf::from);
    let data = match given {
        Some(data) => data,
        None => record::record(folder.path())?,
    };
    let sexton: PathBuf = std::env::var_os("SEXTON")
        .context("SEXTON is not set: run cargo xtask bench profile")?
        .into();
    let figures = peers::measure(&sexton, &data, folder.path())?;
    let long = long::measure(&sexton, &data)?;
    let text = table::text(&figures, &long);
    println!("{text}");
    if args.iter().any(|arg| arg == "--write") {
        sexton_kernel_tests::page::write("profile", &text)?;
    }
    Ok(())
}
