//! Masks: what alike siblings have in common.

use super::name;

/// Words with a digit in them that name one thing, not one of many. Keep to names
/// that have no siblings: `s3` would be torn from `s2` and `s4`.
const FIXED_WORDS: &[&str] = &[
    "apache2",
    "e2scrub",
    "fail2ban",
    "ip6tables",
    "ipv4",
    "ipv6",
    "k0s",
    "k3s",
    "k8s",
    "lvm2",
    "rke2",
    "udisks2",
];

/// Units whose number is a user, which is who and not which.
const FIXED_UIDS: &[(&str, &str)] = &[
    ("user-", ".slice"),
    ("user@", ".service"),
    ("user-runtime-dir@", ".service"),
];

/// The lengths of the groups of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The mask of one path component: names that a program made alike, differing only
/// in a number or an id, have the same mask.
///
/// | in the name | in the mask |
/// | --- | --- |
/// | a UUID, its dashes written `-`, `_` or `\x2d` | `<uuid>` |
/// | a word of 12 or more hex digits, or 25 of base 36 | `<id>` |
/// | 12 or more hex digits that end a longer word, as in `run-r0a1b…` | `<id>` |
/// | a shorter word of hex digits | `<n>` |
/// | other decimal digits | `<n>` |
///
/// A *word* is a run of ASCII letters and digits, and only one with a decimal digit
/// in it is masked. Decimal and hexadecimal share `<n>` on purpose: of the names
/// that `printf("%08x")` makes some are all digits and some are not, those of
/// `printf("%d")` differ in width, and all of either must meet in one group.
///
/// Left alone are user ids (`user-1000.slice`), escapes (`\x2d`), and a few words
/// that name one thing (`k8s`, `apache2`).
///
/// What it cannot tell: a number written in hex letters only (`deadbeef`) from a
/// word; a word of hex letters with a number (`bed7`) from a hex number, so `bed7`
/// and `face7` have the same mask; a decimal number of twelve digits from an id;
/// random letters without digits from a word.
///
/// ```
/// use sexton_model::origin::pattern_component;
///
/// assert_eq!(pattern_component(b"leak-00000017"), b"leak-<n>");
/// assert_eq!(pattern_component(b"leak-0000002a"), b"leak-<n>");
/// assert_eq!(pattern_component(b"user@1000.service"), b"user@1000.service");
/// ```
pub fn pattern_component(name: &[u8]) -> Vec<u8> {
    if is_fixed(name) {
        return name.to_vec();
    }
    let mut mask = Vec::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let taken = take_token(rest, &mut mask);
        rest = &rest[taken..];
    }
    mask
}

fn is_fixed(name: &[u8]) -> bool {
    FIXED_UIDS.iter().any(|(prefix, suffix)| {
        name::between(name, prefix, suffix).is_some_and(|uid| uid.iter().all(u8::is_ascii_digit))
    })
}

/// Masks what `rest` begins with and says how many bytes that was.
fn take_token(rest: &[u8], mask: &mut Vec<u8>) -> usize {
    if name::hex_escape(rest).is_some() {
        mask.extend(&rest[..4]);
        return 4;
    }
    let word = leading(rest, u8::is_ascii_alphanumeric);
    if word.is_empty() {
        mask.push(rest[0]);
        return 1;
    }
    // The first group of a UUID may be glued to a word: `pod0a1b2c3d-…`.
    let start = word.len().saturating_sub(UUID[0]);
    if let Some(len) = leading_uuid(&rest[start..]) {
        mask_word(&word[..start], mask);
        mask.extend(b"<uuid>");
        return start + len;
    }
    mask_word(word, mask);
    word.len()
}

fn leading(bytes: &[u8], class: impl Fn(&u8) -> bool) -> &[u8] {
    let len = bytes.iter().take_while(|b| class(b)).count();
    &bytes[..len]
}

/// The length of the UUID that `bytes` begins with.
fn leading_uuid(bytes: &[u8]) -> Option<usize> {
    let mut len = 0;
    for (n, &group) in UUID.iter().enumerate() {
        if n > 0 {
            len += dash_len(&bytes[len..])?;
        }
        let hex = leading(&bytes[len..], u8::is_ascii_hexdigit);
        let whole = hex.len() == group;
        len += whole.then_some(group)?;
    }
    let ended = !bytes.get(len).is_some_and(u8::is_ascii_alphanumeric);
    ended.then_some(len)
}

fn dash_len(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'-' | b'_', ..] => Some(1),
        [b'\\', b'x', b'2', b'd', ..] => Some(4),
        _ => None,
    }
}

fn mask_word(word: &[u8], mask: &mut Vec<u8>) {
    let fixed = FIXED_WORDS.iter().any(|fixed| fixed.as_bytes() == word);
    if fixed || !word.iter().any(u8::is_ascii_digit) {
        mask.extend(word);
    } else if word.iter().all(u8::is_ascii_hexdigit) {
        mask.extend(if word.len() >= 12 {
            &b"<id>"[..]
        } else {
            b"<n>"
        });
    } else if name::is_base36_id(word) {
        mask.extend(b"<id>");
    } else {
        mask_mixed_word(word, mask);
    }
}

/// Masks a word with letters beyond `f` in it.
fn mask_mixed_word(word: &[u8], mask: &mut Vec<u8>) {
    let mut rest = word;
    while let Some(first) = rest.first() {
        let n_digits = leading(rest, u8::is_ascii_digit).len();
        if ends_in_id(rest) {
            mask.extend(b"<id>");
            return;
        } else if n_digits > 0 {
            mask.extend(b"<n>");
            rest = &rest[n_digits..];
        } else {
            mask.push(*first);
            rest = &rest[1..];
        }
    }
}

/// Whether the tail of a word is a hex id, glued to the letters before it.
///
/// Letters and then only digits are a word with a number: the `cade12345678` in
/// `cascade12345678`. And a letter or three more than the usual 32 or 64 belong to
/// the word: the `d` in `pod0a1b…`.
fn ends_in_id(tail: &[u8]) -> bool {
    let letters = leading(tail, u8::is_ascii_alphabetic).len();
    let number = tail[letters..].iter().all(u8::is_ascii_digit);
    let glued = letters > 0 && matches!(tail.len(), 33..=35 | 65..=67);
    tail.len() >= 12 && tail.iter().all(u8::is_ascii_hexdigit) && !number && !glued
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::escape;
    use proptest::prelude::*;

    fn check(name: &str, mask: &str) {
        assert_eq!(escape(&pattern_component(name.as_bytes())), mask, "{name}");
    }

    const HEX32: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    const HEX64: &str = "4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970";

    #[test]
    fn ids_are_masked() {
        check(HEX64, "<id>");
        check(HEX32, "<id>");
        check("4f797c539e6c", "<id>");
        check(&format!("docker-{HEX64}.scope"), "docker-<id>.scope");
        check(&format!("run-r{HEX32}.scope"), "run-r<id>.scope");
        check(&format!("pod{HEX32}"), "pod<id>");
        check(
            &format!("system.slice:docker:{HEX64}"),
            "system.slice:docker:<id>",
        );
        check("jvifp9a6b1lxa1kuw8bwfcovf", "<id>");
        check("0000000000000001", "<id>");
        check("000000000000000a", "<id>");
    }

    #[test]
    fn uuids_are_masked() {
        check("48cb34f5-cd39-4d59-9bb9-89f3c1611afd", "<uuid>");
        check("pod48cb34f5-cd39-4d59-9bb9-89f3c1611afd", "pod<uuid>");
        check(
            "kubepods-burstable-podd8cb34f5_cd39_4d59_9bb9_89f3c1611afd.slice",
            "kubepods-burstable-pod<uuid>.slice",
        );
        check(
            r"vm-48cb34f5\x2dcd39\x2d4d59\x2d9bb9\x2d89f3c1611afd.scope",
            "vm-<uuid>.scope",
        );
        check("deadbeef-dead-beef-dead-beefdeadbeef", "<uuid>");
        check(
            "48cb34f5-cd39-4d59-9bb9-89f3c1611afd0",
            "<n>-<n>-<n>-<n>-<id>",
        );
    }

    #[test]
    fn numbers_are_masked() {
        for name in [
            "leak-7",
            "leak-0000002a",
            "leak-00000001",
            "leak-1f",
            "leak-100000",
        ] {
            check(name, "leak-<n>");
        }
        for name in [
            "cascade9",
            "cascade10",
            "cascade12345678",
            "cascade1700000000",
        ] {
            check(name, "cascade<n>");
        }
        check("run-u123.service", "run-u<n>.service");
        check("foo@3.service", "foo@<n>.service");
        check("getty@tty1.service", "getty@tty<n>.service");
        check("session-3.scope", "session-<n>.scope");
        check("session-c12.scope", "session-<n>.scope");
        check(
            r"machine-qemu\x2d17\x2dvm.scope",
            r"machine-qemu\x2d<n>\x2dvm.scope",
        );
        check("run-p812-i4711.scope", "run-p<n>-i<n>.scope");
    }

    #[test]
    fn names_of_one_thing_are_kept() {
        for name in [
            "",
            "init.scope",
            "system.slice",
            "deadbeef",
            "user-1000.slice",
            "user@1000.service",
            "user-runtime-dir@1000.service",
            "k8s.io",
            "k3s.service",
            "apache2.service",
            r"dev-disk-by\x2dlabel.swap",
            "lxc.payload.web",
        ] {
            check(name, name);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_mask_and_it_is_its_own(name in prop::collection::vec(any::<u8>(), 0..80)) {
            let mask = pattern_component(&name);
            prop_assert_eq!(pattern_component(&mask), mask);
        }

        #[test]
        fn likely_names_have_a_mask_and_it_is_its_own(name in "([a-gk80-9]{0,9}[-_.@:<>]|\\\\x2d){0,9}") {
            let mask = pattern_component(name.as_bytes());
            prop_assert_eq!(pattern_component(&mask), mask);
        }

        #[test]
        fn decimal_siblings_meet(word in "[a-z]{0,6}([g-z][a-f]{0,4}|-)", a in 0u32.., b in 0u32..10_000) {
            let mask = |n| pattern_component(format!("{word}{n}.service").as_bytes());
            prop_assert_eq!(mask(a), mask(b));
        }

        #[test]
        fn padded_hex_siblings_meet(a in 0u32..0x1000_0000, b in 0u32..0x1000_0000) {
            let mask = |n| pattern_component(format!("leak-{n:08x}").as_bytes());
            prop_assert_eq!(mask(a), mask(b));
        }
    }
}
