//! Which running programs were built without frame pointers, so that their stacks are cut
//! short.
//!
//! Nothing in a file says so. But a function that keeps a frame pointer begins with setting
//! it up, so the beginnings of some functions are looked at.

use std::collections::BTreeMap;
use std::path::Path;

use sexton_host::Host;
use sexton_host::code::{CodeFile, Mapping, open_mapped};
use sexton_model::sight::Sight;
use sexton_model::text::escape;
use sexton_symbols::elf::{Headers, Limits};
use sexton_symbols::source::Source;

/// Programs that are looked at.
const MAX_PROGRAMS: usize = 64;
/// Functions of each.
const N_FUNCTIONS: usize = 128;
/// Shorter ones may do without a frame in any build.
const LEAST_BYTES: u32 = 64;
/// Fewer functions tell nothing.
const LEAST_FUNCTIONS: usize = 8;
/// Programs that are named.
const MAX_NAMED: usize = 6;

const WHAT: &str = "user stacks";

/// What the running programs' stacks will look like.
pub(super) fn examine(host: &Host) -> Sight {
    let programs = running(host);
    let mut without: Vec<(&[u8], usize)> = Vec::new();
    let mut n_unknown = 0;
    for (path, (pid, mapping, n)) in &programs {
        let file = open_mapped(host, *pid, mapping).ok();
        match file.as_ref().and_then(has_frame_pointers) {
            Some(true) => {}
            Some(false) => without.push((path, *n)),
            None => n_unknown += 1,
        }
    }
    without.sort_by_key(|(_, n)| usize::MAX - n);
    tell(&without, n_unknown, programs.len())
}

fn tell(without: &[(&[u8], usize)], n_unknown: usize, n_all: usize) -> Sight {
    if without.is_empty() {
        let text = format!("{n_all} running programs looked at, {n_unknown} of them stripped");
        return Sight::sees(WHAT, text);
    }
    let name = |path: &[u8]| {
        let path = escape(path);
        let name = Path::new(&path).file_name().map(|name| name.to_owned());
        name.map_or(path.clone(), |name| name.to_string_lossy().into_owned())
    };
    let named: Vec<String> = without
        .iter()
        .take(MAX_NAMED)
        .map(|(path, _)| name(path))
        .collect();
    let more = match without.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    let text = format!(
        "cut short for {} of {n_all} running programs, built without frame pointers: {}{more}",
        without.len(),
        named.join(", "),
    );
    // Most distributions build so: it is said, but it is no fault of this node.
    Sight::sees(WHAT, text)
}

/// The programs that run: a process of each, and how many there are.
fn running(host: &Host) -> BTreeMap<Vec<u8>, (u32, Mapping, usize)> {
    let mut programs: BTreeMap<Vec<u8>, (u32, Mapping, usize)> = BTreeMap::new();
    let entries = host.proc("").and_then(|proc| host.list(proc));
    for entry in entries.unwrap_or_default() {
        let Some(pid) = entry.name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(link) = host
            .proc(&format!("{pid}/exe"))
            .and_then(|exe| host.read_link(exe))
        else {
            continue;
        };
        let path = std::os::unix::ffi::OsStrExt::as_bytes(link.as_os_str());
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path).to_vec();
        if let Some((_, _, n)) = programs.get_mut(&path) {
            *n += 1;
        } else if programs.len() < MAX_PROGRAMS
            && let Ok(mappings) = Mapping::read_executable(host, pid)
            && let Some(own) = mappings.into_iter().find(|mapping| mapping.path == path)
        {
            programs.insert(path, (pid, own, 1));
        }
    }
    programs
}

/// `None` when the file does not tell where its functions are.
fn has_frame_pointers(file: &CodeFile) -> Option<bool> {
    let headers = Headers::read(file)?;
    let functions = headers.functions(file, Limits::LIVE)?;
    let some = functions.some(8 * N_FUNCTIONS);
    let long = some.into_iter().filter(|one| one.size >= LEAST_BYTES);
    let sets_up: Vec<bool> = long
        .take(N_FUNCTIONS)
        .filter_map(|one| sets_up_frame(file, headers.offset_of(one.start)?))
        .collect();
    let n = sets_up.iter().filter(|set_up| **set_up).count();
    // Thunks, assembler and functions that call nothing have no frame in any build.
    (sets_up.len() >= LEAST_FUNCTIONS).then_some(n * 2 > sets_up.len())
}

fn sets_up_frame(file: &dyn Source, offset: u64) -> Option<bool> {
    let mut code = [0; 32];
    let n = file.read_at(&mut code, offset).ok()?;
    (n == code.len()).then(|| begins_with_frame(&code))
}

#[cfg(target_arch = "x86_64")]
fn begins_with_frame(code: &[u8]) -> bool {
    // push %rbp; mov %rsp,%rbp in either encoding. endbr64, or a check of the stack's end
    // as in Go, may come before.
    let forms: [&[u8]; 2] = [&[0x55, 0x48, 0x89, 0xe5], &[0x55, 0x48, 0x8b, 0xec]];
    forms
        .iter()
        .any(|form| code.windows(form.len()).any(|bytes| bytes == *form))
}

#[cfg(target_arch = "aarch64")]
fn begins_with_frame(code: &[u8]) -> bool {
    // stp x29, x30, [sp, #...]!, with or without writing sp back.
    code.chunks_exact(4).any(|word| {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        word & 0xfe00_7fff == 0xa800_7bfd
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn begins_with_frame(_: &[u8]) -> bool {
    true
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &[u8], expected: bool) {
        let mut code = code.to_vec();
        code.resize(32, 0x90);
        assert_eq!(begins_with_frame(&code), expected);
    }

    #[test]
    fn beginnings_of_functions() {
        check(&[0x55, 0x48, 0x89, 0xe5], true);
        check(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5], true);
        check(&[0x41, 0x57, 0x41, 0x56, 0x55, 0x53], false);
        check(&[0x48, 0x83, 0xec, 0x18], false);
    }

    #[test]
    fn what_is_cut_short_is_named() {
        let without: Vec<(&[u8], usize)> = vec![(b"/usr/bin/a", 3), (b"/usr/bin/b", 1)];
        let sight = tell(&without, 1, 9);
        assert_eq!(
            sight.because,
            "cut short for 2 of 9 running programs, built without frame pointers: a, b"
        );
        assert!(tell(&[], 1, 9).because.starts_with("9 running programs"));
    }
}
