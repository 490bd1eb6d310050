//! Calls through a program's linkage table: `strlen@plt`. No symbol names such a stub; the
//! slot that it jumps through does, by its relocation.

use object::elf::{EM_X86_64, Rela64, SHT_DYNSYM, SHT_RELA, Sym64};
use object::endian::NativeEndian;

use super::functions::without_version;
use super::{Headers, ORDER, Section};
use crate::demangle::MAX_SYMBOL_BYTES;
use crate::source::{Source, each, one, part, text};

const TABLES: [&[u8]; 3] = [b".plt", b".plt.sec", b".plt.got"];

/// Relocations that are looked at for one stub.
const MAX_RELOCATIONS: u64 = 1 << 20;

const STUB_BYTES: u64 = 16;

/// Where the stubs of a file are, and what is needed to name one.
#[derive(Debug, Default)]
pub struct Plt {
    stubs: Vec<Section>,
    /// Each with the symbols that it refers to.
    relocations: Vec<Section>,
    symbols: Option<Section>,
    names: Option<Section>,
    is_understood: bool,
}

impl Plt {
    /// Finds the tables of a file.
    pub fn read(headers: &Headers, source: &dyn Source) -> Self {
        let code = headers.sections.iter().filter(|section| section.is_code);
        let is_table = |section: &&Section| {
            let named = |name: &&[u8]| headers.is_named(source, **section, name);
            TABLES.iter().any(named)
        };
        let symbols = headers.section_of(SHT_DYNSYM);
        let index = headers
            .sections
            .iter()
            .position(|section| section.kind == SHT_DYNSYM);
        let refers = |section: &&Section| {
            section.kind == SHT_RELA && index.is_some_and(|at| at == section.link as usize)
        };
        let mut relocations: Vec<Section> =
            headers.sections.iter().filter(refers).copied().collect();
        // Those of the linkage table are the fewer ones.
        relocations.sort_by_key(|section| section.size);
        Self {
            stubs: code.filter(is_table).take(TABLES.len()).copied().collect(),
            relocations: relocations.into_iter().take(4).collect(),
            names: symbols.and_then(|table| headers.sections.get(table.link as usize).copied()),
            symbols,
            is_understood: headers.machine == EM_X86_64,
        }
    }

    /// Where the stub begins that an address lies in; `None` when it is in none.
    pub fn find(&self, address: u64) -> Option<u64> {
        let (section, within) = self.holding(address)?;
        let size = match section.entry_size {
            size @ (8 | 16) => size,
            _ => STUB_BYTES,
        };
        Some(section.address + within / size * size)
    }

    fn holding(&self, address: u64) -> Option<(&Section, u64)> {
        self.stubs.iter().find_map(|section| {
            let within = address.checked_sub(section.address)?;
            (within < section.size).then_some((section, within))
        })
    }

    /// The symbol that a stub calls.
    pub fn symbol(&self, source: &dyn Source, stub: u64) -> Option<Vec<u8>> {
        let (section, within) = self.holding(stub).filter(|_| self.is_understood)?;
        let at = section.offset.checked_add(within)?;
        let code = part(source, at, STUB_BYTES, STUB_BYTES as usize)?;
        let slot = slot(&code, stub)?;
        let index = self
            .relocations
            .iter()
            .find_map(|table| relocated(source, *table, slot))?;
        let (symbols, names) = (self.symbols?, self.names?);
        let at = index.checked_mul(size_of::<Sym64<NativeEndian>>() as u64)?;
        let at = Some(at).filter(|at| *at < symbols.size)?;
        let symbol: Sym64<NativeEndian> = one(source, symbols.offset.checked_add(at)?)?;
        let at = names.offset.checked_add(symbol.st_name.get(ORDER).into())?;
        let mut name = text(source, at, MAX_SYMBOL_BYTES)?;
        name.truncate(without_version(&name).len());
        (!name.is_empty()).then_some(name)
    }
}

/// The symbol that the relocation of a slot refers to.
fn relocated(source: &dyn Source, table: Section, slot: u64) -> Option<u64> {
    let n = table.size / size_of::<Rela64<NativeEndian>>() as u64;
    let mut found = None;
    let n = n.min(MAX_RELOCATIONS);
    each(source, table.offset, n, |entry: &Rela64<NativeEndian>| {
        if entry.r_offset.get(ORDER) == slot {
            found = Some(entry.r_info.get(ORDER) >> 32);
        }
        found.is_none()
    });
    found.filter(|symbol| *symbol != 0)
}

/// The slot that a stub jumps through: `jmp *slot(%rip)`, with a prefix or none, and perhaps
/// an `endbr64` before it.
fn slot(code: &[u8], address: u64) -> Option<u64> {
    const ENDBR64: &[u8] = b"\xf3\x0f\x1e\xfa";
    let rest = code.strip_prefix(ENDBR64).unwrap_or(code);
    let rest = rest.strip_prefix(b"\xf2").unwrap_or(rest);
    let rest = rest.strip_prefix(b"\xff\x25")?;
    let distance = i32::from_le_bytes(rest.get(..4)?.try_into().ok()?);
    let after = (code.len() - rest.len() + 4) as u64;
    let next = address.checked_add(after)?;
    next.checked_add_signed(distance.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_stub() {
        for (code, expected) in [
            (&b"\xff\x25\x10\x00\x00\x00\x68"[..], Some(0x1016)),
            (b"\xf3\x0f\x1e\xfa\xff\x25\x10\x00\x00\x00", Some(0x101a)),
            (
                b"\xf3\x0f\x1e\xfa\xf2\xff\x25\xff\xff\xff\xff",
                Some(0x100a),
            ),
            (b"\xff\x35\x10\x00\x00\x00", None),
            (b"\xff\x25\x10", None),
        ] {
            assert_eq!(slot(code, 0x1000), expected, "{code:x?}");
        }
    }
}
