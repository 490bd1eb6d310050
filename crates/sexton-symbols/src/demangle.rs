//! Names of functions as their authors wrote them: templates kept, without parameters, return
//! type and Rust's hash.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};
use sexton_model::text::escape;

/// A longer name is cut.
pub const MAX_BYTES: usize = 512;

/// A longer symbol is not decoded.
pub const MAX_SYMBOL_BYTES: usize = 4096;

/// The readable form of a symbol, safe to show. Symbols come from other people's files: a
/// short one can stand for a name that is endless, so the work ends with the room.
pub fn readable(symbol: &[u8]) -> String {
    decoded(symbol).map_or_else(|| plain(symbol), |name| plain(name.as_bytes()))
}

/// A name that needs no decoding, safe to show and cut.
pub fn plain(name: &[u8]) -> String {
    let mut name = escape(&name[..name.len().min(MAX_SYMBOL_BYTES)]);
    name.truncate(name.floor_char_boundary(MAX_BYTES));
    name
}

/// What a mangled symbol says; `None` when it is not mangled.
fn decoded(symbol: &[u8]) -> Option<String> {
    const MAX_DEPTH: u32 = 96;
    if symbol.len() > MAX_SYMBOL_BYTES || !symbol.starts_with(b"_") {
        return None;
    }
    let text = std::str::from_utf8(symbol).ok()?;
    // Names that compilers add to, as in `walk.constprop.0`, stay as they are.
    if let Ok(rust) = rustc_demangle::try_demangle(text) {
        return bounded(|out| write!(out, "{rust:#}"));
    }
    if !text.starts_with("_Z") {
        return None;
    }
    let options = DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(MAX_DEPTH);
    let name = Symbol::new(symbol).ok()?;
    bounded(|out| name.structured_demangle(out, &options))
}

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > 4 * MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

fn bounded(write: impl FnOnce(&mut Bounded) -> fmt::Result) -> Option<String> {
    let mut out = Bounded(String::new());
    write(&mut out).ok()?;
    Some(out.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(symbol: &[u8], expected: &str) {
        assert_eq!(readable(symbol), expected);
    }

    #[test]
    fn names_of_three_languages() {
        check(b"main", "main");
        check(b"_start", "_start");
        check(b"walk.constprop.0", "walk.constprop.0");
        check(
            b"_ZN3std2rt10lang_start17h0123456789abcdefE",
            "std::rt::lang_start",
        );
        check(b"_RNvCs1234_7mycrate3foo", "mycrate::foo");
        check(b"_ZN3foo3barEi", "foo::bar");
        check(b"_ZNK3foo3barEi", "foo::bar");
        check(b"_Znonsense", "_Znonsense");
    }

    #[test]
    fn templates_stay_and_what_they_return_goes() {
        // int twice<int>(int)
        check(b"_Z5twiceIiET_S0_", "twice<int>");
        check(
            b"_ZNSt6vectorIiSaIiEE9push_backERKi",
            "std::vector<int, std::allocator<int> >::push_back",
        );
    }

    #[test]
    fn hostile_names_are_escaped_and_short() {
        check(b"a\x1b[2J", "a\\033[2J");
        check(b"\xff", "\\377");
        assert_eq!(readable(&vec![b'x'; 100_000]).len(), MAX_BYTES);
        // Each substitution doubles the name.
        let bomb =
            b"_Z1fSt4pairIS_IiiES0_ES_IS1_S1_ES_IS2_S2_ES_IS3_S3_ES_IS4_S4_ES_IS5_S5_ES_IS6_S6_E";
        assert!(readable(bomb).len() <= MAX_BYTES);
    }

    proptest! {
        #[test]
        fn any_symbol_has_a_short_name(tail in prop::collection::vec(any::<u8>(), 0..300)) {
            for start in [&b""[..], b"_Z", b"_ZN", b"_R"] {
                let name = readable(&[start, &tail].concat());
                prop_assert!(name.len() <= MAX_BYTES);
            }
        }
    }
}
