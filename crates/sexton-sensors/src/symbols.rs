//! Names of kernel addresses, asked for a few at a time.

use std::collections::HashMap;

use sexton_host::Host;

/// Names that are kept; beyond that all are forgotten and asked for anew.
const MAX_KNOWN: usize = 4096;

/// Names of kernel addresses that have been asked for.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    known: HashMap<u64, String>,
}

impl Symbols {
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
            && let Ok(path) = host.proc("kallsyms")
            && let Ok(table) = host.read(path)
        {
            // Megabytes: no copy is made of them.
            let table = String::from_utf8_lossy(&table);
            self.known.extend(find(&table, &unknown));
        }
        let frames = addresses.iter().rev().map(|address| {
            let name = self.known.get(address).cloned();
            name.unwrap_or_else(|| format!("{address:#x}"))
        });
        frames.collect()
    }
}

/// The function nearest below each of the sorted `addresses`.
fn find(table: &str, addresses: &[u64]) -> Vec<(u64, String)> {
    let mut nearest: Vec<Option<(u64, &str)>> = vec![None; addresses.len()];
    for line in table.lines() {
        let mut fields = line.split_ascii_whitespace();
        let (Some(start), Some(kind), Some(name)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // Where addresses are hidden, they read as zero.
        let start = u64::from_str_radix(start, 16).unwrap_or(0);
        if start == 0 || !matches!(kind, "t" | "T" | "w" | "W") {
            continue;
        }
        let above = addresses.partition_point(|address| *address < start);
        for best in &mut nearest[above..] {
            if best.is_none_or(|(known, _)| known < start) {
                *best = Some((start, name));
            }
        }
    }
    let found = addresses.iter().zip(nearest);
    found
        .filter_map(|(address, best)| Some((*address, best?.1.to_owned())))
        .collect()
}

pub(crate) mod fuzzing {
    //! For the fuzz targets.

    /// Names of functions, from what `/proc/kallsyms` might say.
    pub fn symbol_table(table: &[u8]) -> Vec<String> {
        let table = String::from_utf8_lossy(table);
        let found = super::find(&table, &[0, 0x1000, 0xffff_ffff_8000_0000, u64::MAX]);
        found.into_iter().map(|(_, name)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(table: &str, addresses: &[u64], expected: &[(u64, &str)]) {
        let found = find(table, addresses);
        let found: Vec<(u64, &str)> = found
            .iter()
            .map(|(address, name)| (*address, name.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_nearest_function_below() {
        let table =
            "00000100 T early\n00000300 t late\t[module]\n00000200 T middle\n00000210 d data\nx\n";
        check(table, &[], &[]);
        check(
            table,
            &[0x50, 0x100, 0x1ff, 0x215, 0x300],
            &[
                (0x100, "early"),
                (0x1ff, "early"),
                (0x215, "middle"),
                (0x300, "late"),
            ],
        );
        check("00000000 T hidden\n", &[0x100], &[]);
    }
}
