//! Lists the files of signatures, so that adding one is adding a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let signatures = Path::new(&manifest).join("../../signatures");
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    let mut code = String::new();
    for (constant, folder) in [
        ("UNITS", "units"),
        ("SHAPES", "shapes"),
        ("KERNEL_LOG", "klog"),
    ] {
        let folder = signatures.join(folder);
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()))
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "toml")
            })
            .collect();
        files.sort();
        writeln!(code, "static {constant}: &[(&str, &str)] = &[").expect("a string takes all");
        for file in files {
            let slug = file.file_stem().expect("a name").to_string_lossy();
            writeln!(
                code,
                "    ({slug:?}, include_str!({:?})),",
                file.display().to_string()
            )
            .expect("a string takes all");
        }
        code.push_str("];\n");
    }
    fs::write(Path::new(&out).join("signatures.rs"), code).expect("cannot write signatures.rs");
}
