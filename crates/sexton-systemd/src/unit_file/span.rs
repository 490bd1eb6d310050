//! Spans of time as systemd writes them: `10s`, `1min 30s`, `100ms`, `5`, `infinity`.

/// A span in nanoseconds, `None` if it cannot be read. `infinity` is the largest there is.
pub fn parse_ns(text: &str) -> Option<u64> {
    let text = text.trim();
    if text == "infinity" {
        return Some(u64::MAX);
    }
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len());
        let unit = unit_ns(&rest[..letters])?;
        rest = rest[letters..].trim_start();
        // Saturates, which is what a span beyond all bounds means.
        total = total.saturating_add((number * unit) as u64);
    }
    (!text.is_empty()).then_some(total)
}

fn unit_ns(unit: &str) -> Option<f64> {
    const SECOND: f64 = 1e9;
    Some(match unit {
        "" | "s" | "sec" | "second" | "seconds" => SECOND,
        "ns" | "nsec" => 1.0,
        "us" | "usec" | "µs" | "μs" => 1e3,
        "ms" | "msec" => 1e6,
        "m" | "min" | "minute" | "minutes" => 60.0 * SECOND,
        "h" | "hr" | "hour" | "hours" => 3_600.0 * SECOND,
        "d" | "day" | "days" => 86_400.0 * SECOND,
        "w" | "week" | "weeks" => 604_800.0 * SECOND,
        "M" | "month" | "months" => 2_629_800.0 * SECOND,
        "y" | "year" | "years" => 31_557_600.0 * SECOND,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        let check = |text: &str, expected| assert_eq!(parse_ns(text), expected, "{text}");
        check("10s", Some(10_000_000_000));
        check("5", Some(5_000_000_000));
        check("1min 30s", Some(90_000_000_000));
        check("2min20s", Some(140_000_000_000));
        check("0.5s", Some(500_000_000));
        check("100ms", Some(100_000_000));
        check("0", Some(0));
        check("infinity", Some(u64::MAX));
        check("99999999999y", Some(u64::MAX));
        check("", None);
        check("soon", None);
        check("5 parsecs", None);
    }
}
