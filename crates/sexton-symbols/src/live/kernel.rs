//! Names of kernel addresses, from a table that is read once and kept small.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use sexton_host::Host;
use sexton_host::perf::Code;
use sexton_model::moment::Moment;
use sexton_model::stack::CodeKind;
use sexton_model::text::escape;

use super::Place;
use crate::demangle::plain;
use crate::kallsyms::{Kallsyms, KernelFunction};

/// What is not in the kernel's own text (modules, BPF programs) comes and goes. An address
/// there that was not seen before has the table read again, but not more often than this:
/// the kernel takes tens of milliseconds to write it. Where the table has a module's function
/// for it, another one is unlikely to have come into its place.
const READ_AGAIN: Duration = Duration::from_secs(60);
const READ_AGAIN_FOUND: Duration = Duration::from_secs(600);

/// Places that are kept; beyond that all are forgotten and looked up anew.
const MAX_KNOWN: usize = 1 << 14;

const KERNEL: &str = "[kernel]";

/// What the table calls the module of BPF programs.
const BPF: &str = "[bpf]";

/// Code that is remembered; then it starts anew.
const MAX_MADE: usize = 1 << 14;

/// Names of kernel addresses.
#[derive(Debug, Default)]
pub struct Kernel {
    table: Kallsyms,
    read_at: Option<Moment>,
    known: HashMap<u64, Arc<Place>>,
    modules: HashMap<Box<str>, Arc<str>>,
    /// Code that the kernel made since the table was read, as it told: by the first address,
    /// with the address after the last.
    made: BTreeMap<u64, (u64, Arc<str>)>,
    /// Whether it is told of all code that the kernel makes.
    is_told: bool,
    /// Whether that was so since the table was read.
    knows_made: bool,
}

impl Kernel {
    /// Takes note of code that the kernel made since this was last told; `None` when that is not
    /// known. What is told is told before samples of it are named.
    pub fn note_made(&mut self, made: Option<Vec<Code>>) {
        self.is_told = made.is_some();
        let Some(made) = made else {
            self.forget_made();
            return;
        };
        for code in made {
            if self.made.len() >= MAX_MADE {
                self.forget_made();
            }
            // It lies where other code has been.
            let before = self.made.range(..code.end).rev();
            let before = before.take_while(|(_, (end, _))| *end > code.start);
            let gone: Vec<u64> = before.map(|(start, _)| *start).collect();
            for start in gone {
                self.made.remove(&start);
            }
            self.known
                .retain(|address, _| !(code.start..code.end).contains(address));
            let name = escape(&code.name).into();
            self.made.insert(code.start, (code.end, name));
        }
    }

    fn forget_made(&mut self) {
        self.made.clear();
        if std::mem::take(&mut self.knows_made) {
            self.known.clear();
        }
    }

    fn made_place(&mut self, address: u64) -> Option<Place> {
        let (start, (end, name)) = self.made.range(..=address).next_back()?;
        (address < *end).then(|| Place {
            kind: CodeKind::Kernel,
            symbol: Some(Arc::clone(name)),
            module: Some(module(&mut self.modules, BPF)),
            address: *start,
        })
    }

    /// Whether the kernel hides its addresses from us. Known after the first lookup.
    pub fn is_hidden(&self) -> bool {
        self.read_at.is_some() && self.table.is_empty()
    }

    /// The function that an address lies in.
    pub fn place(&mut self, host: &Host, address: u64, now: Moment) -> Arc<Place> {
        if let Some(known) = self.known.get(&address) {
            return Arc::clone(known);
        }
        let place = match self.made_place(address) {
            Some(made) => made,
            None => self.in_table(host, address, now),
        };
        let place = Arc::new(place);
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(address, Arc::clone(&place));
        place
    }

    fn in_table(&mut self, host: &Host, address: u64, now: Moment) -> Place {
        let mut found = self.table.find(address);
        let age = match found {
            Some(found) if found.module.is_none() => None,
            Some(found) if found.is_made() && !self.knows_made => Some(READ_AGAIN),
            Some(_) => Some(READ_AGAIN_FOUND),
            None => Some(READ_AGAIN),
        };
        let is_old = |age| self.read_at.is_none_or(|read| now.since(read) >= age);
        if age.is_some_and(is_old) {
            self.read_at = Some(now);
            self.known.clear();
            self.table = read_kallsyms(host).unwrap_or(std::mem::take(&mut self.table));
            self.knows_made = self.is_told;
            found = self.table.find(address);
        }
        let is_certain = |found: &KernelFunction<'_>| !found.is_made() || self.knows_made;
        match found {
            Some(found) => Place {
                kind: CodeKind::Kernel,
                symbol: is_certain(&found).then(|| plain(found.name.as_bytes()).into()),
                module: Some(module(&mut self.modules, found.module.unwrap_or(KERNEL))),
                address: if is_certain(&found) {
                    found.start
                } else {
                    address
                },
            },
            None => Place {
                kind: CodeKind::Kernel,
                symbol: None,
                module: Some(module(&mut self.modules, KERNEL)),
                address,
            },
        }
    }
}

fn module(modules: &mut HashMap<Box<str>, Arc<str>>, name: &str) -> Arc<str> {
    if let Some(known) = modules.get(name) {
        return Arc::clone(known);
    }
    let text: Arc<str> = escape(name.as_bytes()).into();
    modules.insert(name.into(), Arc::clone(&text));
    text
}

/// The functions of the running kernel. Read line by line: the whole text is twice as large as
/// what is kept of it. Takes tens of milliseconds.
pub fn read_kallsyms(host: &Host) -> Option<Kallsyms> {
    let path = host.proc("kallsyms").ok()?;
    let mut table = Kallsyms::default();
    host.each_line(path, |line| table.add(line)).ok()?;
    table.finish();
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"1000 T start\n2000 t bpf_prog_old\t[bpf]\n9000 t bpf_prog_far\t[bpf]\n";

    fn code(start: u64, end: u64, name: &str) -> Code {
        let name = name.into();
        Code { start, end, name }
    }

    /// What is known right after the table was read.
    fn read() -> Kernel {
        Kernel {
            table: Kallsyms::parse(TABLE),
            read_at: Some(Moment::from_ns(1)),
            is_told: true,
            knows_made: true,
            ..Kernel::default()
        }
    }

    fn name(kernel: &mut Kernel, address: u64) -> Option<String> {
        let host = Host::live().expect("a mount table");
        let place = kernel.place(&host, address, Moment::from_ns(2));
        place.symbol.as_ref().map(ToString::to_string)
    }

    #[test]
    fn a_program_that_came_later_has_its_own_name() {
        let mut kernel = read();
        assert_eq!(name(&mut kernel, 0x3010).as_deref(), Some("bpf_prog_old"));
        kernel.note_made(Some(vec![code(0x3000, 0x3100, "bpf_prog_new")]));
        for (address, expected) in [
            (0x2010, "bpf_prog_old"),
            (0x2fff, "bpf_prog_old"),
            (0x3000, "bpf_prog_new"),
            (0x30ff, "bpf_prog_new"),
            (0x1010, "start"),
        ] {
            assert_eq!(name(&mut kernel, address).as_deref(), Some(expected));
        }
        // In the place of one that is gone.
        kernel.note_made(Some(vec![code(0x3080, 0x3200, "bpf_prog_newer")]));
        assert_eq!(name(&mut kernel, 0x3090).as_deref(), Some("bpf_prog_newer"));
    }

    #[test]
    fn what_may_have_come_untold_has_no_name() {
        let mut kernel = read();
        kernel.note_made(Some(vec![code(0x3000, 0x3100, "bpf_prog_new")]));
        assert_eq!(name(&mut kernel, 0x2010).as_deref(), Some("bpf_prog_old"));
        kernel.note_made(None);
        assert_eq!(name(&mut kernel, 0x2010), None);
        assert_eq!(name(&mut kernel, 0x3010), None);
        assert_eq!(name(&mut kernel, 0x1010).as_deref(), Some("start"));
    }
}
