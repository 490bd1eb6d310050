//! Patterns as in shells, as preset files use them.

/// Whether a name matches: `*`, `?` and `[a-z]`. A backslash stands for itself.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // The usual walk with one place to return to: a star takes one more each time, and
    // only the last star ever has to.
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match one(&pattern, p, name[n]) {
            Some(next) => {
                p = next;
                n += 1;
            }
            None if pattern.get(p) == Some(&'*') => {
                star = Some((p + 1, n));
                p += 1;
            }
            None => match &mut star {
                Some((after, from)) => {
                    *from += 1;
                    p = *after;
                    n = *from;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// Where the pattern goes on if it takes this character.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match pattern.get(at)? {
        '*' => None,
        '?' => Some(at + 1),
        '[' => match set(pattern, at, c) {
            Some((taken, next)) => taken.then_some(next),
            None => (c == '[').then_some(at + 1),
        },
        &plain => (plain == c).then_some(at + 1),
    }
}

/// Whether a set takes the character, and where it ends; `None` if it never does.
fn set(pattern: &[char], at: usize, c: char) -> Option<(bool, usize)> {
    let negated = matches!(pattern.get(at + 1), Some('!' | '^'));
    let first = at + 1 + usize::from(negated);
    let mut here = first;
    let mut taken = false;
    loop {
        let from = *pattern.get(here)?;
        if from == ']' && here > first {
            return Some((taken != negated, here + 1));
        }
        let to = match (pattern.get(here + 1), pattern.get(here + 2)) {
            (Some('-'), Some(&to)) if to != ']' => {
                here += 2;
                to
            }
            _ => from,
        };
        taken |= (from..=to).contains(&c);
        here += 1;
    }
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
        check("[]]", "]", true);
        check("[", "[", true);
        check(r"a\*", r"a\b", true);
        check("*********************b", &"a".repeat(5000), false);
    }
}
