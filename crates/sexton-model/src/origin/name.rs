//! Names as systemd and the runtimes write them.

/// Suffixes of the units that have a cgroup of their own. Slices are apart.
const UNIT_SUFFIXES: [&str; 5] = [".service", ".scope", ".socket", ".mount", ".swap"];

/// The longest name systemd takes for a unit.
const UNIT_NAME_MAX: usize = 255;

/// The unit whose cgroup is called `component`.
///
/// systemd puts an underscore before a name that the kernel could take for one
/// of its own files, such as `_cpu.service`; it is taken off. A name with bytes
/// that systemd refuses is not a unit, nor is a template without its instance.
pub(super) fn unit(component: &[u8]) -> Option<&str> {
    let name = unit_text(component)?;
    UNIT_SUFFIXES
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .filter(|stem| is_stem(stem))
        .map(|_| name)
}

/// The slice whose cgroup is called `component`.
pub(super) fn slice(component: &[u8]) -> Option<&str> {
    let name = unit_text(component)?;
    name.strip_suffix(".slice")
        .filter(|stem| is_stem(stem))
        .map(|_| name)
}

fn unit_text(component: &[u8]) -> Option<&str> {
    let name = str::from_utf8(component.strip_prefix(b"_").unwrap_or(component)).ok()?;
    let valid = |b: u8| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b);
    (name.len() <= UNIT_NAME_MAX && name.bytes().all(valid)).then_some(name)
}

fn is_stem(stem: &str) -> bool {
    !stem.is_empty() && !stem.starts_with('@') && !stem.ends_with('@')
}

/// The user id in `user-1000.slice` or `user@1000.service`.
pub(super) fn uid(component: &[u8]) -> Option<u32> {
    uid_of_slice(component).or_else(|| uid_of_manager(component))
}

/// The user id in `user-1000.slice`.
pub(super) fn uid_of_slice(component: &[u8]) -> Option<u32> {
    number(between(component, "user-", ".slice")?)
}

/// The user id in `user@1000.service`.
pub(super) fn uid_of_manager(component: &[u8]) -> Option<u32> {
    number(between(component, "user@", ".service")?)
}

fn number(digits: &[u8]) -> Option<u32> {
    // `parse` would take a sign.
    let digits = str::from_utf8(digits).ok()?;
    let plain = digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// What stands between a prefix and a suffix, if anything does.
pub(super) fn between<'a>(name: &'a [u8], prefix: &str, suffix: &str) -> Option<&'a [u8]> {
    name.strip_prefix(prefix.as_bytes())?
        .strip_suffix(suffix.as_bytes())
        .filter(|middle| !middle.is_empty())
}

/// The text of a container id, short ones and those of BuildKit included.
pub(super) fn container_id(name: &[u8]) -> Option<&str> {
    let id = str::from_utf8(name).ok()?;
    (is_hex_id(name) || is_base36_id(name)).then_some(id)
}

/// Twelve or more hex digits: Docker's short form and everything above.
pub(super) fn is_hex_id(name: &[u8]) -> bool {
    (12..=64).contains(&name.len()) && name.iter().all(u8::is_ascii_hexdigit)
}

/// The 64 hex digits that all runtimes of the Docker family use.
pub(super) fn is_full_id(name: &[u8]) -> bool {
    name.len() == 64 && name.iter().all(u8::is_ascii_hexdigit)
}

/// 25 characters of base 36, as BuildKit and Swarm make them. A name without any
/// digit is a word; a random one lacks digits three times in ten thousand.
pub(super) fn is_base36_id(name: &[u8]) -> bool {
    name.len() == 25
        && name
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && name.iter().any(u8::is_ascii_digit)
}

/// Undoes the escaping of unit names: `\x2d` is a dash, a bare dash is a slash.
///
/// The dash is left alone here: machine names have no slashes.
pub(super) fn undo_unit_escape(name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let [first, tail @ ..] = rest {
        let (byte, after) = match hex_escape(rest) {
            Some(byte) => (byte, &rest[4..]),
            None => (*first, tail),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// The byte that a leading `\x2d` stands for.
pub(super) fn hex_escape(name: &[u8]) -> Option<u8> {
    let digit = |b: &u8| char::from(*b).to_digit(16);
    match name {
        [b'\\', b'x', high, low, ..] => u8::try_from(digit(high)? << 4 | digit(low)?).ok(),
        _ => None,
    }
}
