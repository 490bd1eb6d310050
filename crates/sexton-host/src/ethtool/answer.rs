//! What drivers answer, read without trust: the layouts are those of `linux/ethtool.h`.

use sexton_model::text::escape;

/// The length of a name.
const NAME: usize = 32;

/// What a driver says of itself and its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Its version; that of the kernel for most that come with it.
    pub version: String,
    /// The version of the device's firmware; empty where there is none.
    pub firmware: String,
    /// The device's address on its bus; empty where there is none.
    pub bus: String,
    /// How many statistics it keeps.
    pub n_stats: usize,
}

/// Room for the names of so many statistics.
pub(super) fn strings_bytes(n: usize) -> usize {
    12 + n * NAME
}

/// `struct ethtool_drvinfo`.
pub fn driver(answer: &[u8]) -> Option<Driver> {
    let text = |at: usize| answer.get(at..at + NAME).map(name);
    Some(Driver {
        name: text(4)?,
        version: text(36)?,
        firmware: text(68)?,
        bus: text(100)?,
        n_stats: number(answer, 180)?,
    })
}

/// `struct ethtool_gstrings`.
pub fn names(answer: &[u8]) -> Option<Vec<String>> {
    let n = number(answer, 8)?;
    let end = n.checked_mul(NAME)?.checked_add(12)?;
    Some(answer.get(12..end)?.chunks_exact(NAME).map(name).collect())
}

/// `struct ethtool_stats`.
pub fn values(answer: &[u8]) -> Option<Vec<u64>> {
    let n = number(answer, 4)?;
    let end = n.checked_mul(8)?.checked_add(8)?;
    let (values, _) = answer.get(8..end)?.as_chunks::<8>();
    Some(
        values
            .iter()
            .map(|bytes| u64::from_ne_bytes(*bytes))
            .collect(),
    )
}

fn number(answer: &[u8], at: usize) -> Option<usize> {
    let bytes = answer.get(at..at + 4)?.first_chunk::<4>()?;
    usize::try_from(u32::from_ne_bytes(*bytes)).ok()
}

/// A name up to the first zero byte, or to its end if there is none.
fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    escape(&bytes[..end.unwrap_or(bytes.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(names_of: &[&[u8]], expected: &[&str]) {
        let mut answer = vec![0; 8];
        answer.extend((names_of.len() as u32).to_ne_bytes());
        for name in names_of {
            let mut padded = [0; NAME];
            padded[..name.len()].copy_from_slice(name);
            answer.extend(padded);
        }
        assert_eq!(names(&answer).expect("names"), expected);
    }

    #[test]
    fn names_end_at_zero_or_at_their_end() {
        check(&[], &[]);
        check(
            &[b"tx_timeout", b"[0]: missed_irqs"],
            &["tx_timeout", "[0]: missed_irqs"],
        );
        check(&[&[b'a'; 32], b"b"], &[&"a".repeat(32), "b"]);
        check(&[b"evil\x1b[2J\0hidden"], &[r"evil\033[2J"]);
    }

    #[test]
    fn an_answer_that_is_cut_off_is_refused() {
        let mut answer = vec![0; 12];
        answer[8..].copy_from_slice(&2u32.to_ne_bytes());
        answer.extend([b'x'; 63]);
        assert_eq!(names(&answer), None);
        assert_eq!(values(&[0, 0, 0, 0, 9, 0, 0, 0, 1]), None);
        assert_eq!(driver(&[0; 100]), None);
    }

    proptest! {
        #[test]
        fn any_answer_is_taken(answer in prop::collection::vec(any::<u8>(), 0..300)) {
            driver(&answer);
            names(&answer);
            values(&answer);
        }
    }
}
