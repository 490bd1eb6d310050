//! `/proc/kallsyms`: one function of the kernel per line.

use super::{AddressMap, Found, Prefer};

/// Where a symbol of the kernel comes from.
#[derive(Debug, Default)]
pub struct Kallsyms {
    functions: AddressMap,
    /// `_text` and `_stext`: where the kernel was loaded.
    starts: [Option<u64>; 2],
}

/// perf records where one of these is.
const STARTS: [&str; 2] = ["_text", "_stext"];

impl Kallsyms {
    /// Reads the text of `/proc/kallsyms`; what is no line of it is passed over. Without the
    /// right to see addresses the kernel shows them as zero: then nothing is known.
    pub fn parse(text: &str) -> Self {
        let mut functions = AddressMap::default();
        let mut starts = [None; 2];
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            let is_code = matches!(kind, "t" | "T" | "w" | "W");
            match u64::from_str_radix(address, 16) {
                Ok(address) if address != 0 && is_code => {
                    if let Some(at) = STARTS.iter().position(|start| *start == name) {
                        starts[at] = Some(address);
                    }
                    functions.add(address, 0, rank(kind), name);
                }
                _ => {}
            }
        }
        functions.finish(Prefer::Best);
        Self { functions, starts }
    }

    /// The function at this address.
    pub fn find(&self, address: u64) -> Option<Found<'_>> {
        self.functions.find(address)
    }

    /// Where `_text` or `_stext` is.
    pub fn address_of(&self, name: &str) -> Option<u64> {
        let at = STARTS.iter().position(|start| *start == name)?;
        self.starts[at]
    }

    /// Whether no address is known.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }
}

/// A name that others may use ranks above a local one, and that above a weak one.
fn rank(kind: &str) -> u8 {
    match kind {
        "T" => 2,
        "t" => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let text = "ffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000040 t inner\n\
                    ffffffff81000080 D data\nffffffffc0001000 t in_module\t[nf_tables]\nbroken\n";
        let kallsyms = Kallsyms::parse(text);
        for (address, name) in [
            (0xffff_ffff_8100_0000, Some("_stext")),
            (0xffff_ffff_8100_003f, Some("_stext")),
            (0xffff_ffff_8100_0040, Some("inner")),
            (0xffff_ffff_c000_1001, Some("in_module")),
            (0xffff_ffff_7fff_ffff, None),
        ] {
            let found = kallsyms.find(address).map(|found| found.name());
            assert_eq!(found.as_deref(), name, "{address:x}");
        }
    }

    #[test]
    fn hidden_addresses_name_nothing() {
        assert!(Kallsyms::parse("0000000000000000 T _text\n").is_empty());
    }
}
