//! Times and sizes as people write them: `12h`, `1h30m`, `250ms`, `2GiB`, `500M`.

use std::time::Duration;

const TIMES: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

const SIZES: [(&str, u64); 5] = [
    ("", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];

/// Reads a time.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 30s, 5m, 12h, 1h30m or 250ms");
    let mut rest = text;
    let mut ms: u64 = 0;
    while !rest.is_empty() {
        let (number, unit, after) = split(rest);
        let (_, each) = TIMES
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?;
        let more = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(*each));
        ms = more
            .and_then(|more| ms.checked_add(more))
            .ok_or_else(wrong)?;
        rest = after;
    }
    if ms == 0 {
        Err(wrong())
    } else {
        Ok(Duration::from_millis(ms))
    }
}

/// Reads seconds with a fraction, `12.5`, as nanoseconds.
pub fn seconds_ns(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number =
        |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    let whole: u64 = whole.parse().ok()?;
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Reads a size in bytes; `K`, `KiB` and the like are powers of 1024.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size: write 500MiB, 2GiB or a number of bytes");
    let (number, unit, after) = split(text);
    let unit = unit.trim_end_matches("iB").trim_end_matches('B');
    let (_, each) = SIZES
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(wrong)?;
    let size = number
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(*each));
    size.filter(|_| after.is_empty()).ok_or_else(wrong)
}

/// The leading number, the letters after it, and the rest.
fn split(text: &str) -> (&str, &str, &str) {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    let letters = rest
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(letters);
    (number, unit, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, ms) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in [
            "",
            "0s",
            "12",
            "h",
            "5 m",
            "1y",
            "-3s",
            "99999999999999999999s",
            "1h-",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read() {
        for (text, n) in [
            ("512", 512),
            ("4K", 4096),
            ("2GiB", 2 << 30),
            ("3MB", 3 << 20),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(bytes(text), Ok(n), "{text}");
        }
        for text in ["", "G", "2 GiB", "1.5G", "-1", "9999999999T", "3X"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
