//! Symbol tables of programs, and the other files that name functions.

use sexton_symbols::code::Code;
use sexton_symbols::debug_file::Wanted;
use sexton_symbols::demangle::readable;
use sexton_symbols::elf::{Headers, Limits, build_id_of_notes};
use sexton_symbols::kallsyms::Kallsyms;
use sexton_symbols::perf_map::PerfMap;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "elf", run };

fn run(bytes: &[u8]) {
    let file = bytes.to_vec();
    if let Some(headers) = Headers::read(&file) {
        // The file is its own debug file, too.
        Wanted::of(&headers, &file).is_met_by(&headers, &file);
        let code = Code::read(&headers, &file, Some((&headers, &file)), Limits::LIVE);
        for offset in (0..bytes.len() as u64).step_by(64).chain([u64::MAX]) {
            if let Some(found) = code.find(offset) {
                code.name(found, |_| Some(&file));
            }
        }
    }
    build_id_of_notes(bytes);
    Kallsyms::parse(bytes).find(u64::MAX);
    PerfMap::parse(bytes, 1 << 20).find(0x1000);
    readable(bytes);
}
