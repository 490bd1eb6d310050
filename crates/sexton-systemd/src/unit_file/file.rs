//! The syntax of unit files and of systemd's other settings.

/// One `Key=value` line, with continuation lines joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The section it stands in: `Service`.
    pub section: String,
    /// Its key: `ExecStart`.
    pub key: String,
    /// Its value; empty resets a list.
    pub value: String,
}

/// Reads a file. Lines that make no sense are passed over, as systemd does.
pub fn parse(text: &str) -> Vec<Assignment> {
    parse_to_bad_line(text).0
}

/// The same, and the line at which systemd stops: the name of a section that does not end.
pub(crate) fn parse_to_bad_line(text: &str) -> (Vec<Assignment>, Option<String>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut section = String::new();
    let mut assignments = Vec::new();
    for line in joined(text) {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.to_owned();
        } else if line.starts_with('[') {
            return (assignments, Some(line.to_owned()));
        } else if let Some((key, value)) = line.split_once('=') {
            assignments.push(Assignment {
                section: section.clone(),
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            });
        }
    }
    (assignments, None)
}

/// Lines without comments, each with the lines that continue it.
fn joined(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut pending: Option<String> = None;
    for line in text.lines() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        let mut whole = pending.take().unwrap_or_default();
        match line.strip_suffix('\\') {
            Some(rest) => {
                whole.push_str(rest);
                whole.push(' ');
                pending = Some(whole);
            }
            None => {
                whole.push_str(line);
                lines.push(whole);
            }
        }
    }
    lines.extend(pending);
    lines
}

/// The words of a value. Quotes hold a word together; a backslash in front of a space or
/// a quote makes it part of the word.
pub fn words(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', _) => {
                let word = word.get_or_insert_default();
                match chars.next() {
                    // systemd's `\x2d` in names must stay as it is written.
                    Some(next) if !next.is_whitespace() && !"\"'\\".contains(next) => {
                        word.push('\\');
                        word.push(next);
                    }
                    Some(next) => word.push(next),
                    None => {}
                }
            }
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines() {
        let text = "\u{feff}# c\n[Unit]\nA = b \n ;x\nnonsense\n[Service]\nExecStart=/a \\\n# no\n  -b\nRestart=\n";
        let read: Vec<String> = parse(text)
            .iter()
            .map(|a| format!("{}.{}={}", a.section, a.key, a.value))
            .collect();
        assert_eq!(
            read,
            ["Unit.A=b", "Service.ExecStart=/a    -b", "Service.Restart="]
        );
    }

    #[test]
    fn a_section_without_an_end_ends_the_file() {
        let (read, bad) = parse_to_bad_line("[Unit]\nA=b\n[Install\nAlias=c\n");
        assert_eq!((read.len(), bad.as_deref()), (1, Some("[Install")));
        assert_eq!(parse_to_bad_line("[Unit]\nA=[b\n").1, None);
    }

    #[test]
    fn words_and_quotes() {
        let check = |value: &str, expected: &[&str]| assert_eq!(words(value), expected, "{value}");
        check("  a  b ", &["a", "b"]);
        check(r#""a b" 'c "d' e"#, &["a b", "c \"d", "e"]);
        check(r"dev-by\x2did a\ b", &[r"dev-by\x2did", "a b"]);
        check(r#""""#, &[""]);
        check("", &[]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC*|[\\[\\]=\\\\\n a\"']*") {
            for assignment in parse(&text) {
                words(&assignment.value);
            }
        }
    }
}
