//! Names of kernel addresses, from a table that is read once and kept small.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sexton_host::Host;
use sexton_model::moment::Moment;
use sexton_model::stack::CodeKind;
use sexton_model::text::escape;

use super::Place;
use crate::demangle::plain;
use crate::kallsyms::Kallsyms;

/// What is not in the kernel's own text (modules, BPF programs) comes and goes. An address
/// there that was not seen before has the table read again, but not more often than this:
/// the kernel takes tens of milliseconds to write it. Where the table has a module's function
/// for it, another one is unlikely to have come into its place.
const READ_AGAIN: Duration = Duration::from_secs(60);
const READ_AGAIN_FOUND: Duration = Duration::from_secs(600);

/// Places that are kept; beyond that all are forgotten and looked up anew.
const MAX_KNOWN: usize = 1 << 14;

const KERNEL: &str = "[kernel]";

/// Names of kernel addresses.
#[derive(Debug, Default)]
pub struct Kernel {
    table: Kallsyms,
    read_at: Option<Moment>,
    known: HashMap<u64, Arc<Place>>,
    modules: HashMap<Box<str>, Arc<str>>,
}

impl Kernel {
    /// Whether the kernel hides its addresses from us. Known after the first lookup.
    pub fn is_hidden(&self) -> bool {
        self.read_at.is_some() && self.table.is_empty()
    }

    /// The function that an address lies in.
    pub fn place(&mut self, host: &Host, address: u64, now: Moment) -> Arc<Place> {
        if let Some(known) = self.known.get(&address) {
            return Arc::clone(known);
        }
        let mut found = self.table.find(address);
        let age = match found {
            Some(found) if found.module.is_none() => None,
            Some(_) => Some(READ_AGAIN_FOUND),
            None => Some(READ_AGAIN),
        };
        let is_old = |age| self.read_at.is_none_or(|read| now.since(read) >= age);
        if age.is_some_and(is_old) {
            self.read_at = Some(now);
            self.known.clear();
            self.table = read_kallsyms(host).unwrap_or(std::mem::take(&mut self.table));
            found = self.table.find(address);
        }
        let place = Arc::new(match found {
            Some(found) => Place {
                kind: CodeKind::Kernel,
                symbol: Some(plain(found.name.as_bytes()).into()),
                module: Some(module(&mut self.modules, found.module.unwrap_or(KERNEL))),
                address: found.start,
            },
            None => Place {
                kind: CodeKind::Kernel,
                symbol: None,
                module: Some(module(&mut self.modules, KERNEL)),
                address,
            },
        });
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(address, Arc::clone(&place));
        place
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
