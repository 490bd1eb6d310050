//! For the fuzz targets.

use super::parse;

/// Everything that a machine might say of itself in small files.
pub fn descriptions(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    parse::assignments(&text).for_each(drop);
    parse::switch(&text, "psi");
    parse::count_of_list(&text);
    parse::memory_bytes(&text);
    parse::is_virtual(&text);
    parse::machine_id(&text);
    let hidden = parse::without_secrets(&text);
    // What is hidden stays so when the line is read again.
    parse::switch(&hidden, "password").map(str::to_owned)
}
