//! Puts the built page (`ui/dist`) into the program, each file packed with gzip. Without it
//! the program is built all the same, and says what is missing when the page is asked for.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = root.join("../../ui/dist");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-env-changed=SEXTON_WITHOUT_PAGE");
    println!("cargo:rerun-if-changed={}", watched(&dist).display());
    let mut files = Vec::new();
    if env::var_os("SEXTON_WITHOUT_PAGE").is_none() {
        if dist.join("index.html").is_file() {
            collect(&dist, &mut files)?;
            files.sort();
        } else {
            println!(
                "cargo:warning=`sexton serve` will have no page: type `cargo xtask page`, which \
                 needs Node and npm and installs them, and build again"
            );
        }
    }
    let mut list = String::from("static ASSETS: &[Asset] = &[\n");
    for (n, file) in files.iter().enumerate() {
        println!("cargo:rerun-if-changed={}", file.display());
        let packed = out.join(format!("{n}.gz"));
        pack(file, &packed)?;
        let path = file.strip_prefix(&dist).unwrap_or(file).to_string_lossy();
        let path = format!("/{path}");
        let kind = kind(file);
        let _ = writeln!(
            list,
            "    Asset {{ path: {path:?}, kind: {kind:?}, packed: include_bytes!({packed:?}) }},"
        );
    }
    list.push_str("];\n");
    fs::write(out.join("assets.rs"), list)
}

/// What cargo looks at to see that there is more to do. A path that is not there would
/// have it build again every time; `cargo xtask page` touches this file instead.
fn watched(dist: &Path) -> &Path {
    if dist.is_dir() {
        dist
    } else {
        Path::new("build.rs")
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn pack(file: &Path, packed: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(file)?)?;
    fs::write(packed, encoder.finish()?)
}

fn kind(file: &Path) -> &'static str {
    match file.extension().and_then(|end| end.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}
