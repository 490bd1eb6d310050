//! The functions of a file, by address. Twelve bytes are kept for each; names are read when
//! they are asked for.

use object::elf::{EM_X86_64, STB_GLOBAL, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64};
use object::endian::NativeEndian;

use super::{Headers, ORDER, Section};
use crate::choice::{Binding, merit, rank};
use crate::demangle::MAX_SYMBOL_BYTES;
use crate::source::{Source, each, text};

/// How much of a file is read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Symbols, functions or not.
    pub symbols: u64,
    /// Functions; those of more are not known.
    pub functions: usize,
}

impl Limits {
    /// While a node is watched: five megabytes for one file.
    pub const LIVE: Self = Self {
        symbols: 4_000_000,
        functions: 400_000,
    };
    /// When a recording is read, whose reader waits for it.
    pub const RECORDED: Self = Self {
        symbols: 32_000_000,
        functions: 8_000_000,
    };
}

/// Names further into their table than this are not read: the bits above hold the rank.
const NAME_BITS: u32 = 29;

/// Symbols at one address that are compared by name.
const MAX_COMPARED: usize = 16;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// From the lowest code of the file.
    start: u32,
    /// It ends here at the latest; the next function may begin before.
    size: u32,
    /// Its rank, and where its name is.
    name: u32,
}

impl Entry {
    fn rank(self) -> u32 {
        self.name >> NAME_BITS
    }
}

/// A function that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Function {
    /// Where it begins, in the file's own addresses.
    pub start: u64,
    /// How long it is; where the file does not say, as long as it can be.
    pub size: u32,
    /// Of the first symbol at this address.
    index: usize,
}

/// The functions of a file.
#[derive(Debug)]
pub struct Functions {
    base: u64,
    /// By start; of several at one address only those of the best rank.
    sorted: Vec<Entry>,
    names: Section,
}

impl Headers {
    /// Reads the functions; `None` when there is no table of symbols. Addresses are counted
    /// from `base`: a debug file does not say where the code of its program is.
    pub(crate) fn functions_from(
        &self,
        source: &dyn Source,
        base: u64,
        limits: Limits,
    ) -> Option<Functions> {
        let symbols = self.symbols()?;
        let names = *self.sections.get(symbols.link as usize)?;
        let mut sorted = Vec::new();
        let n = symbols.size / size_of::<Sym64<NativeEndian>>() as u64;
        each(source, symbols.offset, n.min(limits.symbols), |symbol| {
            sorted.extend(self.entry(symbol, base));
            sorted.len() < limits.functions
        });
        // Symbols of one rank stay in the order of the file, which perf keeps too.
        sorted.sort_by_key(|entry: &Entry| (entry.start, !entry.rank()));
        sorted.dedup_by(|later, first| {
            later.start == first.start && later.rank() < first.rank() || later == first
        });
        sorted.shrink_to_fit();
        Some(Functions {
            base,
            sorted,
            names,
        })
    }

    /// The same for a file that has its code.
    pub fn functions(&self, source: &dyn Source, limits: Limits) -> Option<Functions> {
        self.functions_from(source, self.base()?, limits)
    }

    fn entry(&self, symbol: &Sym64<NativeEndian>, base: u64) -> Option<Entry> {
        let section = usize::from(symbol.st_shndx.get(ORDER).0);
        let section = self.sections.get(section).filter(|_| section != 0);
        let is_function = match symbol.st_type() {
            STT_FUNC | STT_GNU_IFUNC => symbol.st_shndx.get(ORDER).0 != 0,
            // Functions in assembler have no type. On other processors neither have marks
            // between code and data.
            STT_NOTYPE => {
                let is_code = section.is_some_and(|section| section.is_code);
                is_code && (self.machine == EM_X86_64 || symbol.st_bind() != STB_LOCAL)
            }
            _ => false,
        };
        let binding = match symbol.st_bind() {
            STB_GLOBAL => Binding::Global,
            STB_LOCAL => Binding::Local,
            _ => Binding::Weak,
        };
        let (start, size) = (symbol.st_value.get(ORDER), symbol.st_size.get(ORDER));
        let rank = u32::from(rank(binding, size > 0));
        // One without a size ends with its section: `_init` is not what follows it.
        let room = section.and_then(|section| section.address.checked_add(section.size));
        let room = room.and_then(|end| end.checked_sub(start));
        let size = if size > 0 { Some(size) } else { room };
        let name = symbol.st_name.get(ORDER);
        let is_named = name != 0 && name >> NAME_BITS == 0;
        (is_function && is_named).then_some(Entry {
            start: u32::try_from(start.checked_sub(base)?).ok()?,
            size: u32::try_from(size.unwrap_or(u64::MAX)).unwrap_or(u32::MAX),
            name: rank << NAME_BITS | name,
        })
    }
}

impl Functions {
    /// What the table takes in memory.
    pub fn bytes(&self) -> usize {
        self.sorted.capacity() * size_of::<Entry>()
    }

    /// How many symbols are kept.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The function that an address lies in.
    pub fn find(&self, address: u64) -> Option<Function> {
        let at = u32::try_from(address.checked_sub(self.base)?).ok()?;
        let above = self.sorted.partition_point(|entry| entry.start <= at);
        let start = self.sorted.get(above.checked_sub(1)?)?.start;
        let aliases = self.sorted[..above].iter().rev();
        let n = aliases.take_while(|entry| entry.start == start).count();
        let same = &self.sorted[above - n..above];
        // Symbols of one function agree on its size, or a part of it has its own.
        let size = same.iter().map(|entry| entry.size).max()?;
        (at - start < size).then(|| self.function(above - n, size))
    }

    fn function(&self, index: usize, size: u32) -> Function {
        Function {
            start: self.base + u64::from(self.sorted[index].start),
            size,
            index,
        }
    }

    /// Functions spread evenly over the file, at most `n`.
    pub fn some(&self, n: usize) -> Vec<Function> {
        let step = (self.sorted.len() / n.max(1)).max(1);
        let some = self.sorted.iter().enumerate().step_by(step).take(n);
        some.map(|(at, entry)| self.function(at, entry.size))
            .collect()
    }

    /// The symbol that names a function, from the file that these functions were read from.
    pub fn symbol(&self, source: &dyn Source, function: Function) -> Option<Vec<u8>> {
        let start = self.sorted.get(function.index)?.start;
        let same = self.sorted[function.index..].iter();
        let same = same.take_while(|entry| entry.start == start);
        let names = same.take(MAX_COMPARED).filter_map(|entry| {
            let at = u64::from(entry.name & ((1 << NAME_BITS) - 1));
            let room = usize::try_from(self.names.size.checked_sub(at)?).ok()?;
            let at = self.names.offset.checked_add(at)?;
            let mut name = text(source, at, room.min(MAX_SYMBOL_BYTES))?;
            name.truncate(without_version(&name).len());
            Some(name)
        });
        let named = names.filter(|name| !name.is_empty());
        named.reduce(|best, name| {
            if merit(&name) > merit(&best) {
                name
            } else {
                best
            }
        })
    }
}

/// A symbol without the version that full tables put behind it, and tables of exported symbols
/// do not: `memcpy@@GLIBC_2.14`.
pub(super) fn without_version(symbol: &[u8]) -> &[u8] {
    let Some(at) = symbol.iter().position(|byte| *byte == b'@') else {
        return symbol;
    };
    let version = &symbol[at + 1..];
    let version = version.strip_prefix(b"@").unwrap_or(version);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let is_version =
        version.first().is_some_and(u8::is_ascii_uppercase) && version.iter().all(is_plain);
    if is_version { &symbol[..at] } else { symbol }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_go_and_names_stay() {
        for (symbol, name) in [
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("memcpy@GLIBC_2.2.5", "memcpy"),
            ("memcpy", "memcpy"),
            ("go.type@func", "go.type@func"),
            ("a@", "a@"),
        ] {
            assert_eq!(without_version(symbol.as_bytes()), name.as_bytes());
        }
    }
}
