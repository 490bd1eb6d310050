//! Patterns as in shells: names of units in preset files, in signatures, in policies, and ids
//! of findings in scenarios.

use std::str::Chars;

/// Whether all of a text fits: `*`, `?` and `[a-z]`. A backslash stands for itself, and a star
/// takes slashes too, as in systemd's presets.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // A star takes one more character each time the rest does not fit. Only the last star ever
    // has to, so that many stars cost no more than one.
    let mut star: Option<(Chars<'_>, Chars<'_>)> = None;
    loop {
        let mut rest = text.clone();
        let Some(c) = rest.next() else {
            return pattern.all(|c| c == '*');
        };
        if let Some(next) = one(&pattern, c) {
            (pattern, text) = (next, rest);
            continue;
        }
        let mut next = pattern.clone();
        if next.next() == Some('*') {
            star = Some((next.clone(), text.clone()));
            pattern = next;
            continue;
        }
        let Some((after, from)) = &mut star else {
            return false;
        };
        from.next();
        (pattern, text) = (after.clone(), from.clone());
    }
}

/// Where the pattern goes on if it takes this character.
fn one<'p>(pattern: &Chars<'p>, c: char) -> Option<Chars<'p>> {
    let mut rest = pattern.clone();
    match rest.next()? {
        '*' => None,
        '?' => Some(rest),
        '[' => match set(rest.clone(), c) {
            Some((taken, end)) => taken.then_some(end),
            None => (c == '[').then_some(rest),
        },
        plain => (plain == c).then_some(rest),
    }
}

/// Whether a set takes the character, and where it ends; `None` if it never does.
fn set(mut rest: Chars<'_>, c: char) -> Option<(bool, Chars<'_>)> {
    let is_negated = rest.as_str().starts_with(['!', '^']);
    if is_negated {
        rest.next();
    }
    let (mut is_first, mut is_taken) = (true, false);
    loop {
        let from = rest.next()?;
        if from == ']' && !is_first {
            return Some((is_taken != is_negated, rest));
        }
        is_first = false;
        if from == '['
            && let Some((takes, end)) = class(&rest, c)
        {
            is_taken |= takes;
            rest = end;
            continue;
        }
        let mut range = rest.clone();
        let to = match (range.next(), range.next()) {
            (Some('-'), Some(to)) if to != ']' => {
                rest = range;
                to
            }
            _ => from,
        };
        is_taken |= (from..=to).contains(&c);
    }
}

/// Whether a class such as `[:alpha:]` takes the character, and where it ends; `None` if it is
/// none. The pattern begins behind its first bracket.
fn class<'p>(rest: &Chars<'p>, c: char) -> Option<(bool, Chars<'p>)> {
    let (name, end) = rest.as_str().strip_prefix(':')?.split_once(":]")?;
    let takes = match name {
        "alpha" => c.is_ascii_alphabetic(),
        "digit" => c.is_ascii_digit(),
        "alnum" => c.is_ascii_alphanumeric(),
        "lower" => c.is_ascii_lowercase(),
        "upper" => c.is_ascii_uppercase(),
        "punct" => c.is_ascii_punctuation(),
        "space" => c.is_ascii_whitespace() || c == '\u{b}',
        "blank" => c == ' ' || c == '\t',
        "cntrl" => c.is_ascii_control(),
        "graph" => c.is_ascii_graphic(),
        "print" => c.is_ascii_graphic() || c == ' ',
        "xdigit" => c.is_ascii_hexdigit(),
        _ => return None,
    };
    Some((takes, end.chars()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        };
        check("*", "", true);
        check("*", "ssh.service", true);
        check("ssh.*", "ssh.service", true);
        check("*.service", "ssh.socket", false);
        check("s?h.service", "ssh.service", true);
        check("a*b*c", "axxbxbc", true);
        check("a*b*c", "axxbxb", false);
        check("[a-cx]*", "b", true);
        check("[!a-c]*", "b", false);
        check("b[[:digit:]].service", "b1.service", true);
        check("b[[:digit:]].service", "bx.service", false);
        check("[![:upper:]_]", "_", false);
        check("[[:nonsense:]]", "n]", true);
        check("[]]", "]", true);
        check("[", "[", true);
        check("[a", "[a", true);
        check("[a", "a", false);
        check("[a-]", "-", true);
        check("[^-a]", "b", true);
        check("", "", true);
        check("", "a", false);
        check("a*a", "a", false);
        check("*/docker*<id>*", "/x/docker-<id>.scope", true);
        check("*/docker*<id>", "/x/docker-<id>.scope", false);
        check("s\u{fc}?*", "s\u{fc}\u{df}", true);
        check("[\u{e4}-\u{fc}]", "\u{fc}", true);
        check(r"a\*", r"a\b", true);
        check("*********************b", &"a".repeat(5000), false);
    }
}
