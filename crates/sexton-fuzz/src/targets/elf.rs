//! Symbol tables of programs, and the other files that name functions.

use std::io::Cursor;

use sexton_profile::symbols::elf::ElfSymbols;
use sexton_profile::symbols::kallsyms::Kallsyms;
use sexton_profile::symbols::{demangle, perf_map};

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "elf", run };

fn run(bytes: &[u8]) {
    if let Ok(elf) = ElfSymbols::read(Cursor::new(bytes)) {
        for found in elf.functions.iter().take(100) {
            demangle::demangle(&found.name());
        }
        elf.find(0x1000);
    }
    let text = String::from_utf8_lossy(bytes);
    Kallsyms::parse(&text).find(u64::MAX);
    perf_map::parse(&text).find(0x1000);
    demangle::demangle(&text);
}
