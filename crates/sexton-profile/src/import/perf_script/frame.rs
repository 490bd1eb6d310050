//! One frame line: `ffffffff8162f4aa kmem_cache_free+0x5a ([kernel.kallsyms])`

use memchr::memmem::rfind;
use sexton_model::stack::{CodeKind, Frame, FrameId};
use sexton_model::text::escape;

use crate::names;
use crate::tables::TableBuilder;

/// What a frame line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrameLine<'a> {
    address: u64,
    function: &'a [u8],
    module: &'a [u8],
}

impl<'a> FrameLine<'a> {
    /// `None` when it is no such line.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii();
        let space = memchr::memchr(b' ', line)?;
        let address = str::from_utf8(&line[..space]).ok()?;
        let address = u64::from_str_radix(address, 16).ok()?;
        // Cut before the space, because the function may be empty.
        let rest = &line[space..];
        let whole = rest.strip_suffix(b")")?;
        // `(/tmp/a (deleted))`
        let before_note = whole.strip_suffix(b" (deleted)").unwrap_or(whole);
        let open = rfind(before_note, b" (")?;
        let (function, offset) = split_offset(rest[..open].trim_ascii());
        Some(Self {
            // Where the function begins: its samples are one place.
            address: address.wrapping_sub(offset),
            function: if function.is_empty() { b" " } else { function },
            module: &whole[open + 2..],
        })
    }

    /// The same, somewhere in its function.
    pub(super) fn without_address(self) -> Self {
        Self { address: 0, ..self }
    }

    /// Adds the frames, innermost first: a function `a->b` is `b`, put into `a` by a
    /// compiler at run time.
    pub(super) fn add(&self, tables: &mut TableBuilder, frames: &mut Vec<FrameId>) {
        // Names of processes, as stackcollapse-perf and inferno have it.
        if self.function.starts_with(b"(") {
            return;
        }
        let function = names::without_rust_hash(&escape(self.function)).into_owned();
        let module = escape(self.module);
        let kind = kind(&module);
        let module = tables.name(&module);
        let parts: Vec<&str> = function.split("->").collect();
        for (depth, part) in parts.iter().enumerate().rev() {
            let symbol = (*part != names::UNKNOWN).then(|| tables.name(part));
            let frame = Frame {
                kind,
                symbol,
                module: Some(module),
                address: self.address,
                is_inlined: depth > 0,
            };
            frames.push(tables.frame(frame));
        }
    }
}

/// Whether a line says where in its source the frame before it is, as `perf script -F +srcline`
/// writes it: `  memcpy.S:611`, or `  libc.so.6[16727a]` where that is not known.
pub(super) fn is_source(line: &[u8]) -> bool {
    let Some(text) = line
        .strip_prefix(b"  ")
        .filter(|text| !text.starts_with(b" "))
    else {
        return false;
    };
    let is_number = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    let is_hex = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let place = |mark: u8| Some(&text[memchr::memrchr(mark, text)? + 1..]);
    let address = place(b'[').and_then(|rest| rest.strip_suffix(b"]"));
    place(b':').is_some_and(is_number) || address.is_some_and(is_hex)
}

/// `+0x5a` at the end of a name is the place in the function.
fn split_offset(function: &[u8]) -> (&[u8], u64) {
    let split = rfind(function, b"+0x").and_then(|at| {
        let digits = str::from_utf8(&function[at + 3..]).ok()?;
        let offset = u64::from_str_radix(digits, 16).ok()?;
        Some((&function[..at], offset))
    });
    split.unwrap_or((function, 0))
}

/// Tells by its name whose code a file holds.
fn kind(module: &str) -> CodeKind {
    const OF_USERS: [&str; 5] = ["[vdso]", "[vsyscall]", "[uprobes]", "[heap]", "[stack]"];
    let file = module.rsplit('/').next().unwrap_or(module);
    let is_kernel = module.starts_with('[') || file.ends_with(".ko") || file.starts_with("vmlinux");
    if module == names::UNKNOWN {
        CodeKind::Unknown
    } else if is_kernel && !OF_USERS.contains(&module) {
        CodeKind::Kernel
    } else {
        CodeKind::User
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_read() {
        for (line, address, function, module) in [
            (
                "\tffffffff8162f4aa kmem_cache_free+0x5a ([kernel.kallsyms])",
                0xffff_ffff_8162_f450,
                "kmem_cache_free",
                "[kernel.kallsyms]",
            ),
            (
                "  7f53389994d0 [unknown] ([unknown])",
                0x7f53_3899_94d0,
                "[unknown]",
                "[unknown]",
            ),
            (
                "  7f1e2215d058  (/lib/libc-2.15.so)",
                0x7f1e_2215_d058,
                " ",
                "/lib/libc-2.15.so",
            ),
            (
                " 1 a::b(int (*)(void)) const (/a b/c (deleted))",
                1,
                "a::b(int (*)(void)) const",
                "/a b/c (deleted)",
            ),
        ] {
            let expected = FrameLine {
                address,
                function: function.as_bytes(),
                module: module.as_bytes(),
            };
            assert_eq!(FrameLine::parse(line.as_bytes()), Some(expected), "{line}");
        }
        for line in ["", "x y (z)", "12 abc", "12 (", "12  )"] {
            assert_eq!(FrameLine::parse(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn lines_of_source_are_told_from_damage() {
        for line in [
            "  memcpy.S:611",
            "  ??:0",
            "  /a b/c.c:1",
            "  [vdso][b46]",
            "  libc.so.6[16727a]",
        ] {
            assert!(is_source(line.as_bytes()), "{line}");
        }
        for line in [
            "",
            "  ",
            "  a.c:",
            "  a.c:x",
            "a.c:1",
            "\t7f53 a:1",
            "  libc[xyz]",
            "  libc[]",
        ] {
            assert!(!is_source(line.as_bytes()), "{line}");
        }
    }
}
