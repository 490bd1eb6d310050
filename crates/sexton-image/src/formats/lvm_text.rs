//! The text that LVM2 keeps of a volume group: sections, numbers, strings and lists.

use std::io;

use crate::tree::invalid;

/// LVM's own sections are four deep.
const DEPTH_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Section(Section),
}

/// What is between two braces, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Section(pub(super) Vec<(String, Value)>);

impl Section {
    fn get(&self, key: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    }

    pub(super) fn number(&self, key: &str) -> io::Result<u64> {
        match self.get(key) {
            Some(Value::Number(number)) => Ok(*number),
            _ => Err(missing(key)),
        }
    }

    pub(super) fn text(&self, key: &str) -> io::Result<&str> {
        match self.get(key) {
            Some(Value::Text(text)) => Ok(text),
            _ => Err(missing(key)),
        }
    }

    pub(super) fn list(&self, key: &str) -> io::Result<&[Value]> {
        match self.get(key) {
            Some(Value::List(list)) => Ok(list),
            _ => Err(missing(key)),
        }
    }

    /// The sections in a section of that name; none if there is none.
    pub(super) fn sections(&self, key: &str) -> impl Iterator<Item = (&str, &Section)> {
        let within = match self.get(key) {
            Some(Value::Section(section)) => section.0.as_slice(),
            _ => &[],
        };
        within.iter().filter_map(|(name, value)| match value {
            Value::Section(section) => Some((name.as_str(), section)),
            _ => None,
        })
    }

    pub(super) fn section(&self, key: &str) -> io::Result<&Section> {
        match self.get(key) {
            Some(Value::Section(section)) => Ok(section),
            _ => Err(missing(key)),
        }
    }
}

fn missing(key: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the LVM metadata has no {key}"),
    )
}

pub(super) fn parse(text: &str) -> io::Result<Section> {
    let mut parser = Parser { rest: text };
    let section = parser.section(0)?;
    match parser.rest.is_empty() {
        true => Ok(section),
        false => Err(odd()),
    }
}

fn odd() -> io::Error {
    invalid("LVM metadata that is no text of LVM")
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    /// Passes white space and comments.
    fn pass_blank(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\0']);
            match self.rest.strip_prefix('#') {
                Some(comment) => self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest),
                None => return,
            }
        }
    }

    fn take(&mut self, what: char) -> bool {
        self.pass_blank();
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Up to the closing brace, or to the end of the text.
    fn section(&mut self, depth: usize) -> io::Result<Section> {
        if depth > DEPTH_MAX {
            return Err(odd());
        }
        let mut section = Section::default();
        loop {
            self.pass_blank();
            if self.rest.is_empty() || self.rest.starts_with('}') {
                return Ok(section);
            }
            let name = self.word()?;
            let value = if self.take('{') {
                let within = self.section(depth + 1)?;
                if !self.take('}') {
                    return Err(odd());
                }
                Value::Section(within)
            } else if self.take('=') {
                self.value(depth)?
            } else {
                return Err(odd());
            };
            section.0.push((name, value));
        }
    }

    fn word(&mut self) -> io::Result<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word.is_empty() {
            true => Err(odd()),
            false => Ok(word.to_owned()),
        }
    }

    fn value(&mut self, depth: usize) -> io::Result<Value> {
        if depth > DEPTH_MAX {
            return Err(odd());
        }
        if self.take('"') {
            return Ok(Value::Text(self.text()?));
        }
        if self.take('[') {
            let mut list = Vec::new();
            while !self.take(']') {
                list.push(self.value(depth + 1)?);
                self.take(',');
            }
            return Ok(Value::List(list));
        }
        let word = self.word()?;
        Ok(word.parse().map_or(Value::Text(word), Value::Number))
    }

    /// After the opening quote.
    fn text(&mut self) -> io::Result<String> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                c => text.push(c),
            }
        }
        Err(odd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_lvm() {
        let text =
            "vg0 {\n\tid = \"a\\\"b\"\n # c }\n s = [\"x\", 3]\n sub { n = 8 }\n e = []\n}\n\0";
        let parsed = parse(text).expect("text of LVM");
        let group = parsed.section("vg0").expect("there");
        assert_eq!(group.text("id").expect("there"), "a\"b");
        let list = [Value::Text("x".into()), Value::Number(3)];
        assert_eq!(group.list("s").expect("there"), list);
        assert_eq!(
            group.section("sub").and_then(|s| s.number("n")).ok(),
            Some(8)
        );
        assert_eq!(group.list("e").expect("there"), []);
    }

    #[test]
    fn what_is_no_text_of_lvm_is_refused() {
        let check = |text: &str| assert!(parse(text).is_err(), "{text}");
        check("a {");
        check("a = \"b");
        check("a = [1, ");
        check("}");
        check("a b");
        check(&"a {".repeat(100_000));
        check(&format!("a = {}", "[".repeat(100_000)));
    }
}
