//! Bytes as text (RFC 4648, section 4, without padding): metadata of Parquet is text.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// No digit has this value.
const NONE: u8 = 64;

/// The value of each digit.
static VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < DIGITS.len() {
        values[DIGITS[value] as usize] = value as u8;
        value += 1;
    }
    values
}

/// The text of these bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |n: usize| u32::from(three.get(n).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for n in 0..=three.len() {
            let value = bits >> (18 - 6 * n) & 63;
            text.push(char::from(DIGITS[value as usize]));
        }
    }
    text
}

/// The bytes of a text; `None` when it is none of these.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for four in text.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for n in 0..4 {
            let value = match four.get(n) {
                Some(digit) => VALUES[usize::from(*digit)],
                None => 0,
            };
            if value == NONE {
                return None;
            }
            bits = bits << 6 | u32::from(value);
        }
        let [_, three @ ..] = bits.to_be_bytes();
        let n_bytes = four.len().checked_sub(1).filter(|n| *n > 0)?;
        if three[n_bytes..].iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(&three[..n_bytes]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_is_the_one_that_others_write() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        for wrong in ["Z", "Zm9v!", "Zh", "Zm9v Zm9v"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }
}
