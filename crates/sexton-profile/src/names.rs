//! How a frame is called in folded stacks and graphs: as perf, stackcollapse-perf and
//! inferno call it, so that graphs made here and there can be compared.

use std::borrow::Cow;

use sexton_model::stack::{CodeKind, Frame, StackTables, WAKER};

/// What perf shows for what it cannot name.
pub const UNKNOWN: &str = "[unknown]";

/// Suffixes that say what kind of frame it is, as FlameGraph writes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Suffixes {
    /// `_[k]` behind functions of the kernel.
    pub kernel: bool,
}

/// A frame's name, without semicolons and without the list of its arguments. Where the
/// function is not known it is the file in brackets, and `[unknown]` where that is not
/// known either.
pub fn of_frame(tables: &StackTables, frame: &Frame, comm: &str, suffixes: Suffixes) -> String {
    let module = frame.module.map_or(UNKNOWN, |name| tables.name(name));
    let name = match frame.symbol.map(|name| tables.name(name)) {
        // The name of a thread, which may be `(sd-pam)`.
        Some(function) if module == WAKER => function.replace(';', ":"),
        Some(function) => tidy(function, comm),
        None if module == UNKNOWN => UNKNOWN.to_owned(),
        // `[vdso]` has its brackets already.
        None if module.starts_with('[') => module.to_owned(),
        None => format!("[{}]", module.rsplit('/').next().unwrap_or(module)),
    };
    if frame.is_inlined {
        name + "_[i]"
    } else if suffixes.kernel && frame.kind == CodeKind::Kernel {
        name + "_[k]"
    } else {
        name
    }
}

fn tidy(function: &str, comm: &str) -> String {
    let function = function.replace(';', ":");
    let mut name = &function[..len_without_arguments(&function)];
    // `Ljava/io/OutputStream;::write`
    if comm.starts_with("java") && name.contains('/') {
        name = name.strip_prefix('L').unwrap_or(name);
    }
    name.to_owned()
}

/// Where the arguments of a function begin: at the first parenthesis that is in no other
/// bracket. Those of Go's methods (`http.(*Client).Do`) and of C++'s anonymous namespaces
/// are part of the name.
fn len_without_arguments(function: &str) -> usize {
    let mut depth = 0i32;
    let mut after_dot = None;
    for (at, c) in function.char_indices() {
        match c {
            '<' | '{' | '[' => depth += 1,
            '>' | '}' | ']' | ')' => depth -= 1,
            '(' => {
                let is_name =
                    after_dot == Some(at) || function[at..].starts_with("(anonymous namespace)");
                if depth == 0 && !is_name {
                    return at;
                }
                depth += 1;
            }
            '.' => after_dot = Some(at + 1),
            _ => {}
        }
    }
    function.len()
}

/// What stands for characters that symbols of an ELF file may not hold, in Rust's old
/// mangling; others are `$u` and their number in hex. Old versions of perf leave them.
const RUST_ESCAPES: [(&str, char); 8] = [
    ("SP", '@'),
    ("BP", '*'),
    ("RF", '&'),
    ("LT", '<'),
    ("GT", '>'),
    ("LP", '('),
    ("RP", ')'),
    ("C", ','),
];

/// Takes the hash from a Rust name, and undoes what perf left of its mangling. Other names
/// are returned as they are.
pub fn without_rust_hash(name: &str) -> Cow<'_, str> {
    const HASH_LEN: usize = 17;
    let Some((path, hash)) = name
        .len()
        .checked_sub(HASH_LEN)
        .and_then(|at| name.split_at_checked(at))
    else {
        return Cow::Borrowed(name);
    };
    let is_hash = hash.starts_with('h') && hash[1..].bytes().all(|b| b.is_ascii_hexdigit());
    if !is_hash {
        return Cow::Borrowed(name);
    }
    let path = path.strip_suffix("::").unwrap_or(path);
    let path = if path.starts_with("_$") {
        &path[1..]
    } else {
        path
    };
    Cow::Owned(undo_rust_escapes(path))
}

fn undo_rust_escapes(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find(['.', '$']) {
        name.push_str(&rest[..at]);
        rest = &rest[at..];
        let escape = rest.strip_prefix('$').and_then(|rest| rest.split_once('$'));
        if let Some(after) = rest.strip_prefix("..") {
            name.push_str("::");
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            name.push('.');
            rest = after;
        } else if let Some((c, after)) = escape.and_then(|(e, after)| Some((escaped(e)?, after))) {
            name.push(c);
            rest = after;
        } else {
            break;
        }
    }
    name + rest
}

fn escaped(escape: &str) -> Option<char> {
    let named = RUST_ESCAPES.iter().find(|(name, _)| *name == escape);
    named.map(|(_, c)| *c).or_else(|| {
        let number = u32::from_str_radix(escape.strip_prefix('u')?, 16).ok()?;
        char::from_u32(number).filter(|c| !c.is_control())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_and_names_stay() {
        for (function, name) in [
            ("a::b(int, c*) const", "a::b"),
            ("net/http.(*Client).Do", "net/http.(*Client).Do"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("map<int(*)()>::at(int)", "map<int(*)()>::at"),
            ("x;y", "x:y"),
        ] {
            assert_eq!(tidy(function, "other"), name);
        }
        assert_eq!(
            tidy("Ljava/io/Out;::write(I)V", "java"),
            "java/io/Out:::write"
        );
        assert_eq!(tidy("List", "java"), "List");
    }

    #[test]
    fn what_perf_leaves_of_rust_names_is_undone() {
        for (name, expected) in [
            ("std::io::open::hb90e1c1c787080f0", "std::io::open"),
            (
                "_$LT$a..B$u20$as$u20$c..D$GT$::next::hc14f1750ca79129b",
                "<a::B as c::D>::next",
            ),
            (
                "a::_$u7b$$u7b$closure$u7d$$u7d$::h6e849b55a66fcd85",
                "a::_{{closure}}",
            ),
            ("short", "short"),
            ("no_hash_but_quite_long_name", "no_hash_but_quite_long_name"),
            ("a$broken::h6e849b55a66fcd85", "a$broken"),
        ] {
            assert_eq!(without_rust_hash(name), expected);
        }
    }
}
