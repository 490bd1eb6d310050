//! Where things are: the source tree, the target directory, the built binary.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the source tree.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask/ lies in the workspace root")
}

/// Where cargo puts what it builds. Cargo itself resolves a relative `CARGO_TARGET_DIR`
/// against the current directory; so do we, and only the default is in the tree.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) if !dir.is_empty() => std::path::absolute(&dir).unwrap_or_else(|_| dir.into()),
        _ => root().join("target"),
    }
}

/// The release build of sexton.
pub(crate) fn sexton() -> PathBuf {
    target_dir().join("release/sexton")
}

/// The command that makes [`sexton`].
pub(crate) fn build_sexton() -> Command {
    cargo(&["build", "--release", "--package", "sexton"])
}

/// The release build of sexton-fleet.
pub(crate) fn fleet() -> PathBuf {
    target_dir().join("release/sexton-fleet")
}

/// The command that makes [`fleet`].
pub(crate) fn build_fleet() -> Command {
    cargo(&["build", "--release", "--package", "sexton-fleet"])
}

/// What tests of the fleet page run. The engine for SQL takes minutes to build, and tests have built
/// it without optimizations already.
pub(crate) fn tested_fleet() -> PathBuf {
    target_dir().join("debug/sexton-fleet")
}

/// The command that makes [`tested_fleet`]. Of the whole workspace: the package alone would be other
/// features, and with them another build of that engine.
pub(crate) fn build_tested_fleet() -> Command {
    cargo(&["test", "--workspace", "--test", "it", "--no-run"])
}

/// What tests run: one static binary, here and in every guest.
pub(crate) fn static_sexton() -> PathBuf {
    static_dir().join(static_target()).join("release/sexton")
}

/// The command that makes [`static_sexton`].
pub(crate) fn build_static_sexton() -> Command {
    let mut build = build_sexton();
    build
        .args(["--target", &static_target()])
        .env("CARGO_TARGET_DIR", static_dir())
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        // Tests measure nothing that this would change; it halves the time to link.
        .env("CARGO_PROFILE_RELEASE_LTO", "off");
    build
}

/// Named, so that the flags below are not for programs that run while building.
fn static_target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// A target directory of its own keeps the different flags from invalidating the ordinary
/// build.
fn static_dir() -> PathBuf {
    target_dir().join("static")
}

/// The cargo that runs us, in the root of the tree.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(args)
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target_dir());
    // What cargo tells of the package that it runs is of xtask. Build scripts that look at it, as
    // that of ring does, would build all that depends on them again after each plain `cargo test`.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}
