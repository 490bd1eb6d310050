//! Compiles every `src/prog/*.bpf.c` and writes its skeleton to `OUT_DIR`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "build/compile.rs"]
mod compile;

fn main() -> Result<(), Box<dyn Error>> {
    let prog = Path::new("src/prog");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed={}", prog.display());
    for entry in fs::read_dir(prog)? {
        let source = entry?.path();
        let name = source.file_name().unwrap_or_default().to_string_lossy();
        if let Some(stem) = name.strip_suffix(".bpf.c") {
            compile::compile(&source, &out.join(format!("{stem}.skel.rs")), None)?;
        }
    }
    Ok(())
}
