//! Where files of the lake are.

use sexton_model::wall::{date_of_day, unix_ns};
use sha2::{Digest as _, Sha256};

/// The folder of sets.
pub const FOLDER_OF_SETS: &str = "sets";

const US_PER_SECOND: i64 = 1_000_000;
const US_PER_HOUR: i64 = 3600 * US_PER_SECOND;
const US_PER_DAY: i64 = 24 * US_PER_HOUR;
/// Of a name that is part of a path.
const MAX_NAME: usize = 80;

/// The begin of the hour of a time, in microseconds since 1970.
pub fn hour_of(at_us: i64) -> i64 {
    at_us.div_euclid(US_PER_HOUR) * US_PER_HOUR
}

/// The day of a time, `2026-11-18`.
pub fn day_of(at_us: i64) -> String {
    date_of_day(at_us.div_euclid(US_PER_DAY))
}

/// Whether a text is the name of a day, `2026-11-18`.
pub fn is_day(name: &str) -> bool {
    let begin = unix_ns(&format!("{name}T00:00:00Z"));
    let begin_us = begin.and_then(|ns| i64::try_from(ns / 1000).ok());
    begin_us.is_some_and(|at_us| day_of(at_us) == name)
}

/// The path of a report: the same for the same node, boot and reported time.
pub fn path_of(node: &str, boot: &str, at_us: i64) -> String {
    let of_day = at_us.rem_euclid(US_PER_DAY);
    let time = match of_day % US_PER_HOUR / US_PER_SECOND {
        0 => format!("{:02}", of_day / US_PER_HOUR),
        // Reports of less than an hour each.
        seconds => format!(
            "{:02}{:02}{:02}",
            of_day / US_PER_HOUR,
            seconds / 60,
            seconds % 60
        ),
    };
    let boot: String = boot
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(8)
        .collect();
    let name = name_of(node);
    format!("day={}/{time}-{name}-{boot}.parquet", day_of(at_us))
}

/// The path of a set.
pub fn path_of_set(digest: &str) -> String {
    format!("{FOLDER_OF_SETS}/{digest}.parquet")
}

/// The day that a path is of: `day=2026-11-18/…`.
pub fn day_of_path(path: &str) -> Option<&str> {
    path.split('/').find_map(|part| part.strip_prefix("day="))
}

/// A name as part of a path. Names that lose something by it get a digest, so that no two
/// nodes share a path.
fn name_of(node: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !node.is_empty() && node.len() <= MAX_NAME && node.chars().all(is_plain) {
        return node.to_owned();
    }
    let plain: String = node.chars().filter(|c| is_plain(*c)).take(40).collect();
    format!("{plain}~{}", digest_of(node.as_bytes(), 4))
}

/// What a node is called by where its name is left out.
pub fn redacted_name(node: &str) -> String {
    format!("node-{}", digest_of(node.as_bytes(), 6))
}

/// The first bytes of the SHA-256, in hexadecimal.
pub fn digest_of(bytes: &[u8], n_bytes: usize) -> String {
    let digest = Sha256::digest(bytes);
    let hex = digest.iter().take(n_bytes);
    hex.map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: i64 = 1_794_960_000_000_000 + 13 * US_PER_HOUR + 59;

    #[test]
    fn the_same_hour_has_the_same_path() {
        let path = path_of("web7", "5f2a90c1-77aa", AT);
        assert_eq!(path, "day=2026-11-18/13-web7-5f2a90c1.parquet");
        assert_eq!(path, path_of("web7", "5f2a90c1-77aa", hour_of(AT)));
        let later = path_of("web7", "5f2a90c1-77aa", hour_of(AT) + 90 * US_PER_SECOND);
        assert_eq!(later, "day=2026-11-18/130130-web7-5f2a90c1.parquet");
        assert_eq!(day_of_path(&path), Some("2026-11-18"));
    }

    #[test]
    fn only_dates_are_days() {
        let check = |name: &str, expected| assert_eq!(is_day(name), expected, "{name}");
        check("2026-11-18", true);
        check("2028-02-29", true);
        check("2099-01-01", true);
        for name in [
            "",
            "old",
            "tmp",
            "2026-11-31",
            "2026-11-8",
            "2026-11",
            "99999-01-01",
        ] {
            check(name, false);
        }
    }

    #[test]
    fn hostile_names_stay_in_their_folder_and_apart() {
        let up = path_of("../../etc/passwd", "", AT);
        assert_eq!(up.matches('/').count(), 1, "{up}");
        assert_ne!(up, path_of("....etcpasswd", "", AT));
        assert_ne!(path_of("a/b", "", AT), path_of("ab", "", AT));
        assert!(path_of(&"x".repeat(5000), "", AT).len() < 120);
    }
}
