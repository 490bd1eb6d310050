//! The small language that wordings are written in.
//!
//! Everything stands for itself, except what is in braces: `{queue:int}` a number,
//! `{mask:hex}` a hexadecimal one, `{device:word}` text up to white space or to what
//! follows, `{comm:text}` any text, even none, up to what follows, and `{..}` the same
//! without keeping it. `{{` is a brace. A wording fits a whole text or not at all.
//!
//! Each `text` ends at the first place where what follows fits, and is never looked at
//! again, so a hostile line costs about as much as an honest one.

/// A wording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// The first stretch begins where the text begins; each of the others has any text
    /// in front of it, which has a name if it is kept.
    stretches: Vec<Stretch>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Stretch {
    /// The name of the text in front of it.
    before: Option<String>,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Capture { name: String, kind: Kind },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Hex,
    Word,
}

/// What a wording found: names and what stands there.
pub type Captures<'w, 't> = Vec<(&'w str, &'t [u8])>;

impl Wording {
    /// Reads a wording. `Err` says what is wrong with it.
    pub fn parse(wording: &str) -> Result<Self, String> {
        let mut stretches = vec![Stretch::default()];
        let mut rest = wording;
        while !rest.is_empty() {
            let stretch = stretches.last_mut().ok_or("it has no stretch")?;
            if let Some(tail) = rest.strip_prefix("{{") {
                push_literal(&mut stretch.parts, "{");
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix('{') {
                let (inside, tail) = tail
                    .split_once('}')
                    .ok_or_else(|| format!("a brace is not closed in {wording:?}"))?;
                open_brace(&mut stretches, inside)?;
                rest = tail;
            } else {
                let end = rest.find('{').unwrap_or(rest.len());
                push_literal(&mut stretch.parts, &rest[..end]);
                rest = &rest[end..];
            }
        }
        let wording = Self { stretches };
        wording.check()?;
        Ok(wording)
    }

    /// The names of what it captures, in the order of the text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.stretches.iter().flat_map(|stretch| {
            let parts = stretch.parts.iter().filter_map(|part| match part {
                Part::Literal(_) => None,
                Part::Capture { name, .. } => Some(name.as_str()),
            });
            stretch.before.as_deref().into_iter().chain(parts)
        })
    }

    /// What it captures in `text`; `None` when it does not fit.
    pub fn fit<'w, 't>(&'w self, text: &'t [u8]) -> Option<Captures<'w, 't>> {
        let mut captures = Vec::new();
        let (first, others) = self.stretches.split_first()?;
        let mut at = first.fit_at(text, 0, &mut captures)?;
        for (n, stretch) in others.iter().enumerate() {
            let is_last = n + 1 == others.len();
            at = stretch.find(text, at, is_last, &mut captures)?;
        }
        (at == text.len()).then_some(captures)
    }

    fn check(&self) -> Result<(), String> {
        let mut names: Vec<&str> = self.names().collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("a name is used twice".into());
        }
        for stretch in self.stretches.iter() {
            let captures = |part: &Part| matches!(part, Part::Capture { .. });
            if stretch
                .parts
                .windows(2)
                .any(|pair| pair.iter().all(captures))
            {
                return Err("two captures touch".into());
            }
        }
        let inner = self.stretches.len().saturating_sub(1);
        if self.stretches[..inner]
            .iter()
            .skip(1)
            .any(|stretch| stretch.parts.is_empty())
        {
            return Err("two texts touch".into());
        }
        match self.stretches.first() {
            Some(first) if matches!(first.parts.first(), Some(Part::Literal(_))) => Ok(()),
            Some(first) if first.parts.len() > 1 => Ok(()),
            _ => Err("it begins with any text, so it would fit too much".into()),
        }
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    match parts.last_mut() {
        Some(Part::Literal(literal)) => literal.extend_from_slice(text.as_bytes()),
        _ => parts.push(Part::Literal(text.as_bytes().to_vec())),
    }
}

fn open_brace(stretches: &mut Vec<Stretch>, inside: &str) -> Result<(), String> {
    if inside == ".." {
        stretches.push(Stretch::default());
        return Ok(());
    }
    let (name, kind) = inside
        .split_once(':')
        .ok_or_else(|| format!("{{{inside}}} has no kind"))?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("{name:?} is no name"));
    }
    let name = name.to_owned();
    let kind = match kind {
        "text" => {
            stretches.push(Stretch {
                before: Some(name),
                parts: Vec::new(),
            });
            return Ok(());
        }
        "int" => Kind::Int,
        "hex" => Kind::Hex,
        "word" => Kind::Word,
        _ => return Err(format!("{kind:?} is no kind")),
    };
    if let Some(stretch) = stretches.last_mut() {
        stretch.parts.push(Part::Capture { name, kind });
    }
    Ok(())
}

impl Stretch {
    /// Finds the first place at or after `from` where it fits, for the last stretch the
    /// first from where it reaches the end. Returns where it ends.
    fn find<'w, 't>(
        &'w self,
        text: &'t [u8],
        from: usize,
        is_last: bool,
        captures: &mut Captures<'w, 't>,
    ) -> Option<usize> {
        let kept = captures.len();
        let mut start = from;
        if self.parts.is_empty() {
            start = text.len();
        }
        while start <= text.len() {
            if let Some(name) = &self.before {
                captures.push((name, &text[from..start]));
            }
            match self.fit_at(text, start, captures) {
                Some(end) if !is_last || end == text.len() => return Some(end),
                _ => captures.truncate(kept),
            }
            start += 1;
        }
        None
    }

    /// Fits it at one place. Returns where it ends.
    fn fit_at<'w, 't>(
        &'w self,
        text: &'t [u8],
        start: usize,
        captures: &mut Captures<'w, 't>,
    ) -> Option<usize> {
        let mut at = start;
        for (n, part) in self.parts.iter().enumerate() {
            let rest = text.get(at..)?;
            match part {
                Part::Literal(literal) => {
                    rest.starts_with(literal).then_some(())?;
                    at += literal.len();
                }
                Part::Capture { name, kind } => {
                    let stop = match self.parts.get(n + 1) {
                        Some(Part::Literal(next)) => next.first().copied(),
                        _ => None,
                    };
                    let length = kind.length(rest, stop)?;
                    captures.push((name, &rest[..length]));
                    at += length;
                }
            }
        }
        Some(at)
    }
}

impl Kind {
    /// How many bytes at the start of `text` are of this kind.
    fn length(self, text: &[u8], stop: Option<u8>) -> Option<usize> {
        let run = |text: &[u8], is_in: &dyn Fn(u8) -> bool| {
            text.iter()
                .position(|&byte| !is_in(byte))
                .unwrap_or(text.len())
        };
        let (sign, digits) = match self {
            Self::Int => {
                let sign = usize::from(text.first() == Some(&b'-'));
                (sign, run(&text[sign..], &|byte| byte.is_ascii_digit()))
            }
            Self::Hex => (0, run(text, &|byte| byte.is_ascii_hexdigit())),
            Self::Word => (
                0,
                run(text, &|byte| {
                    !byte.is_ascii_whitespace() && Some(byte) != stop
                }),
            ),
        };
        (digits > 0).then_some(sign + digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(wording: &str, text: &str, expected: Option<&[(&str, &str)]>) {
        let wording = Wording::parse(wording).expect("it is a wording");
        let found = wording.fit(text.as_bytes());
        let expected: Option<Captures<'_, '_>> = expected.map(|list| {
            list.iter()
                .map(|(name, value)| (*name, value.as_bytes()))
                .collect()
        });
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn what_is_not_in_braces_stands_for_itself() {
        check("Trigger reset is on", "Trigger reset is on", Some(&[]));
        check("Trigger reset is on", "Trigger reset is on!", None);
        check("Trigger reset is on", " Trigger reset is on", None);
        check("a {{b}", "a {b}", Some(&[]));
    }

    #[test]
    fn captures_have_kinds() {
        check(
            "q {queue:int} (t {n:int})",
            "q 7 (t -5)",
            Some(&[("queue", "7"), ("n", "-5")]),
        );
        check("q {queue:int} x", "q seven x", None);
        check(
            "at 0x{at:hex}!",
            "at 0xdeadBEEF!",
            Some(&[("at", "deadBEEF")]),
        );
        check(
            "dev {device:word}: up",
            "dev eth0: up",
            Some(&[("device", "eth0")]),
        );
        check("dev {device:word} up", "dev a b up", None);
        check("end {last:word}", "end of", Some(&[("last", "of")]));
    }

    #[test]
    fn text_reaches_to_where_the_rest_fits() {
        let wording = "[{comm:text}:{pid:int}]";
        check(
            wording,
            "[kworker/3:1:123]",
            Some(&[("comm", "kworker/3:1"), ("pid", "123")]),
        );
        check(
            wording,
            "[a]:9]:12]",
            Some(&[("comm", "a]:9]"), ("pid", "12")]),
        );
        check(wording, "[:12]", Some(&[("comm", ""), ("pid", "12")]));
        check("a{..}z", "a to z", Some(&[]));
        check("a{..}", "a", Some(&[]));
        check("a{..}b{x:text}c", "a b b c c", Some(&[("x", " b c ")]));
        check("a{..}aa", "aaa", Some(&[]));
        check("a{..}aa", "aa", None);
    }

    #[test]
    fn wordings_that_cannot_be_are_refused() {
        for wording in [
            "",
            "{..}x",
            "{a:text}",
            "{a:word}",
            "x {a}",
            "x {a:real}",
            "x {A:int}",
            "x {a:int}{b:int}",
            "x {a:int",
            "x{..}{..}y",
            "x {a:int} {a:int}",
        ] {
            assert!(Wording::parse(wording).is_err(), "{wording:?}");
        }
    }

    proptest! {
        #[test]
        fn any_wording_and_any_text_are_taken(wording in "[a{}:int. wordtx]{0,30}", text in "[a0 :{}]{0,40}") {
            if let Ok(wording) = Wording::parse(&wording) {
                wording.fit(text.as_bytes());
            }
        }

        #[test]
        fn any_bytes_are_taken(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let wording = Wording::parse("{a:word} {b:text}:{c:int}{..}{{x").expect("a wording");
            wording.fit(&text);
        }
    }
}
