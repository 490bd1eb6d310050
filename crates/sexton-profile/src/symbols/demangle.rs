//! Names as programmers wrote them.

use cpp_demangle::{DemangleOptions, Symbol};

/// Longer names are shown as they are: decoding them could take for ever.
const MAX_LEN: usize = 4096;

/// Undoes the mangling of Rust and C++ names; any other name is returned as it is.
pub fn demangle(name: &str) -> String {
    if name.len() > MAX_LEN || !name.starts_with('_') {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let symbol = Symbol::new(name).ok();
    let options = DemangleOptions::new().recursion_limit(96);
    let text = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    text.unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn both_manglings_are_undone_and_other_names_are_left() {
        for (mangled, name) in [
            ("main", "main"),
            ("_start", "_start"),
            ("_ZN3foo3barEi", "foo::bar(int)"),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            (
                "_RNvCskwGfYPst2Cb_3foo16example_function",
                "foo::example_function",
            ),
            ("_Zbroken", "_Zbroken"),
        ] {
            assert_eq!(demangle(mangled), name);
        }
    }
}
