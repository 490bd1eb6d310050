//! Compiles one BPF program. Shared by the build scripts of all crates that have some.

use std::env;
use std::error::Error;
use std::path::Path;

use libbpf_cargo::SkeletonBuilder;

/// Compiles `source` and writes its skeleton; `include` holds headers of others.
pub(crate) fn compile(
    source: &Path,
    skeleton: &Path,
    include: Option<&Path>,
) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=CLANG");
    // Debian 12's plain `clang` is 14, which crashes on some CO-RE code.
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang-19".into());
    let warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];
    let include = include.map(|path| format!("-I{}", path.display()));
    SkeletonBuilder::new()
        .source(source)
        .clang(&clang)
        .clang_args(warnings.into_iter().chain(include.as_deref()))
        .build_and_generate(skeleton)
        .map_err(|error| {
            format!("cannot compile {} with {clang} (`cargo xtask test` installs it; CLANG=... chooses another): {error:#}", source.display())
        })?;
    Ok(())
}
