//! Names of kernel addresses, asked for a few at a time.

use std::collections::HashMap;

use sexton_host::Host;
use sexton_symbols::demangle::plain;
use sexton_symbols::live::read_kallsyms;

/// Names that are kept; beyond that all are forgotten and asked for anew.
const MAX_KNOWN: usize = 4096;

/// Names of kernel addresses that have been asked for.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    known: HashMap<u64, String>,
}

impl Symbols {
    /// The functions of a sample of a core, which without kernel addresses ran a program.
    pub(crate) fn stack(&mut self, host: &Host, addresses: &[u64]) -> Vec<String> {
        match addresses {
            [] => vec!["[user]".into()],
            _ => self.names(host, addresses),
        }
    }

    /// The functions that these addresses lie in, outermost first, from addresses that
    /// are innermost first. What has no name stays a number.
    ///
    /// Reads `/proc/kallsyms`, which takes milliseconds, but only for addresses that were
    /// not seen before: a core is mostly held by the same few functions.
    pub(crate) fn names(&mut self, host: &Host, addresses: &[u64]) -> Vec<String> {
        if self.known.len() > MAX_KNOWN {
            self.known.clear();
        }
        let mut unknown: Vec<u64> = addresses
            .iter()
            .copied()
            .filter(|address| !self.known.contains_key(address))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty()
            && let Some(table) = read_kallsyms(host)
        {
            let found = |address| Some((address, plain(table.find(address)?.name.as_bytes())));
            self.known.extend(unknown.into_iter().filter_map(found));
        }
        let frames = addresses.iter().rev().map(|address| {
            let name = self.known.get(address).cloned();
            name.unwrap_or_else(|| format!("{address:#x}"))
        });
        frames.collect()
    }
}
