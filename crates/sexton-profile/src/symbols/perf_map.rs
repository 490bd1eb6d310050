//! `/tmp/perf-PID.map`: what a run-time compiler says of its code, `START SIZE NAME` per
//! line in hex. Any user may have written it.

use super::{AddressMap, Prefer};

/// Reads such a file; what is no line of it is passed over.
pub fn parse(text: &str) -> AddressMap {
    let mut functions = AddressMap::default();
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let mut hex = || {
            let word = words.next()?.trim_start_matches("0x");
            u64::from_str_radix(word, 16).ok()
        };
        let (Some(start), Some(size)) = (hex(), hex()) else {
            continue;
        };
        if let Some(name) = words.next() {
            functions.add(start, start.saturating_add(size), 0, name);
        }
    }
    // A compiler may use the same place twice; what it said last holds.
    functions.finish(Prefer::Last);
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_on_a_place_holds() {
        let map = parse("1000 10 first one\nnonsense\n1000 20 second one\n2000 8 other\n");
        let find = |address| map.find(address).map(|found| (found.name(), found.start));
        assert_eq!(find(0x101f), Some(("second one".into(), 0x1000)));
        assert_eq!(find(0x1020), None);
        assert_eq!(find(0x2007), Some(("other".into(), 0x2000)));
    }
}
