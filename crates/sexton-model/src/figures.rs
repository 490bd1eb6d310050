//! Figures as every surface shows them: one way to write a count, a plural and a size.

const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/// A number with separators.
///
/// ```
/// use sexton_model::figures::number;
///
/// assert_eq!(number(999), "999");
/// assert_eq!(number(68_680), "68,680");
/// ```
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of things.
///
/// ```
/// use sexton_model::figures::count;
///
/// assert_eq!(count(1, "restart"), "1 restart");
/// assert_eq!(count(1_457, "restart"), "1,457 restarts");
/// ```
pub fn count(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", number(n), if n == 1 { "" } else { "s" })
}

/// Bytes in the largest unit that leaves at least one.
///
/// ```
/// use sexton_model::figures::bytes;
///
/// assert_eq!(bytes(1023), "1,023 B");
/// assert_eq!(bytes(1536), "1.5 KiB");
/// assert_eq!(bytes(1 << 30), "1 GiB");
/// assert_eq!(bytes(500 << 20), "500 MiB");
/// ```
pub fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = 0;
    // What would be rounded to 1,024 of a unit is one of the next.
    while value >= 1023.5 && unit + 1 < UNITS.len() && n >= 1024 {
        value /= 1024.0;
        unit += 1;
    }
    let name = UNITS[unit];
    if unit == 0 || value >= 99.95 {
        return format!("{} {name}", number(value.round() as u64));
    }
    let figure = format!("{value:.1}");
    format!("{} {name}", figure.trim_end_matches(".0"))
}
