//! Lists a telling piece of each wording of the kernel's log, so that the sensor records lines
//! that signatures ask for without matching them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

/// A shorter piece would be in every other line.
const MIN_PIECE_BYTES: usize = 5;

fn main() {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let folder = Path::new(&manifest).join("../../signatures/klog");
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("cannot list {}: {error}", folder.display()));
    let mut pieces = BTreeSet::new();
    for file in files {
        let path = file.expect("an entry").path();
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let table: toml::Table = toml::from_str(&text)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        let patterns = table.get("pattern").and_then(toml::Value::as_array);
        let wordings = patterns
            .into_iter()
            .flatten()
            .filter_map(|pattern| pattern.get("wordings")?.as_array())
            .flatten()
            .filter_map(toml::Value::as_str);
        pieces.extend(wordings.map(longest_piece));
    }
    let mut code = String::from("static PIECES: &[&str] = &[\n");
    for piece in &pieces {
        writeln!(code, "    {piece:?},").expect("a string takes all");
    }
    code.push_str("];\n");
    let out = env::var_os("OUT_DIR").expect("cargo says where to write");
    let out = Path::new(&out).join("kernel_log_pieces.rs");
    fs::write(out, code).expect("cannot write kernel_log_pieces.rs");
}

/// The longest text of a wording that stands for itself.
fn longest_piece(wording: &str) -> String {
    let outside = wording
        .split('{')
        .map(|part| part.split_once('}').map_or(part, |(_, after)| after));
    let longest = outside.max_by_key(|piece| piece.len()).unwrap_or_default();
    assert!(
        longest.len() >= MIN_PIECE_BYTES,
        "{wording:?} has no piece of text that tells its lines from others"
    );
    longest.to_owned()
}
