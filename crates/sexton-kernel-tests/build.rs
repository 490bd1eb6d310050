//! Compiles the BPF program that benches compare with.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};

#[path = "../sexton-bpf/build/compile.rs"]
mod compile;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    // For the kernel's structures, which are described there once.
    let include = Path::new("../sexton-bpf/src/prog");
    let source = Path::new("benches/census/bare_walk.bpf.c");
    println!("cargo:rerun-if-changed={}", include.display());
    println!("cargo:rerun-if-changed={}", source.display());
    compile::compile(source, &out.join("bare_walk.skel.rs"), Some(include))
}
