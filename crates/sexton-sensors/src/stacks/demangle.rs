//! Names of functions as their authors wrote them.

use std::fmt::{self, Write};

use sexton_model::text::escape;

/// A longer name is cut.
const MAX_BYTES: usize = 512;

/// The readable form of a symbol, safe to show. Symbols come from other people's files: a
/// short one can stand for a name that is endless, so the work ends with the room.
pub(super) fn readable(symbol: &[u8]) -> String {
    let plain = || cut(escape(symbol));
    let Ok(text) = std::str::from_utf8(symbol) else {
        return plain();
    };
    // Names that compilers add to, as in `walk.constprop.0`, stay as they are.
    if let Ok(rust) = rustc_demangle::try_demangle(text) {
        let name = bounded(|out| write!(out, "{rust:#}"));
        return name.map_or_else(plain, |name| cut(escape(name.as_bytes())));
    }
    if !text.starts_with("_Z") {
        return plain();
    }
    let options = cpp_demangle::DemangleOptions::new().no_params();
    cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|name| bounded(|out| name.structured_demangle(out, &options)))
        .map_or_else(plain, |name| cut(escape(name.as_bytes())))
}

fn cut(mut name: String) -> String {
    name.truncate(name.floor_char_boundary(MAX_BYTES));
    name
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

    #[track_caller]
    fn check(symbol: &[u8], expected: &str) {
        assert_eq!(readable(symbol), expected);
    }

    #[test]
    fn names_of_three_languages() {
        check(b"main", "main");
        check(b"walk.constprop.0", "walk.constprop.0");
        check(
            b"_ZN3std2rt10lang_start17h0123456789abcdefE",
            "std::rt::lang_start",
        );
        check(b"_RNvCs1234_7mycrate3foo", "mycrate::foo");
        check(b"_ZNK3foo3barEi", "foo::bar");
        check(b"_Znonsense", "_Znonsense");
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
}
