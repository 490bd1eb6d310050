//! Hostile text, shown safely and reversibly.
//!
//! Names of cgroups, files and units are bytes that anyone may have chosen:
//! newlines that fake a second line of a report, terminal sequences, bidi
//! overrides that show `exe.txt` for `txt.exe`. [`escape`] shows any bytes as one
//! line of plain text, and [`unescape`] gives the same bytes back.
//!
//! The notation is that of `/proc/self/mountinfo`: a backslash and three octal
//! digits for each byte. Unlike the kernel we leave a backslash alone where it
//! cannot be misread, because systemd writes `\x2d` in every second unit name.

/// Shows `bytes` as printable text on one line.
///
/// Printable UTF-8 is shown as it is. Each byte of anything else becomes `\ooo`:
/// control characters, characters that are invisible or change the direction of
/// the text, private or unassigned ones, and bytes that are not UTF-8. A
/// backslash stands for itself unless three octal digits follow it, the first
/// below 4; then it is `\134`. Different bytes never look the same.
///
/// ```
/// use sexton_model::text::escape;
///
/// assert_eq!(escape(b"evil\nname\xff"), r"evil\012name\377");
/// assert_eq!(escape(br"dev-disk-by\x2dlabel.swap"), r"dev-disk-by\x2dlabel.swap");
/// assert_eq!(escape(br"a\012"), r"a\134012");
/// ```
pub fn escape(bytes: &[u8]) -> String {
    if bytes.iter().all(|&b| is_plain(b)) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut shown = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        escape_str(chunk.valid(), &mut shown);
        chunk
            .invalid()
            .iter()
            .for_each(|&b| push_octal(b, &mut shown));
    }
    shown
}

/// An error and its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

/// Shows a name as one word of a command that people copy into a shell. Names of units,
/// images and cgroups are chosen by others: `a;reboot.service` is one.
///
/// ```
/// use sexton_model::text::shell_word;
///
/// assert_eq!(shell_word("ecs.service"), "ecs.service");
/// assert_eq!(shell_word("a;reboot.service"), "'a;reboot.service'");
/// assert_eq!(shell_word("it's"), r"'it'\''s'");
/// ```
pub fn shell_word(name: &str) -> String {
    let is_harmless = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '@' | '%' | '+' | ':' | ',' | '.' | '/' | '_' | '-')
    };
    match !name.is_empty() && name.chars().all(is_harmless) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

/// Text for XML and HTML, in elements and in quoted attributes: it can end neither. XML cannot
/// express most control characters, however they are written, so all but line feeds and tabs
/// are shown as [`escape`] shows them.
///
/// ```
/// use sexton_model::text::xml;
///
/// assert_eq!(xml("<a href='x'>"), "&lt;a href=&#39;x&#39;&gt;");
/// assert_eq!(xml("red\u{1b}[31m"), r"red\033[31m");
/// ```
pub fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if c.is_control() && !matches!(c, '\n' | '\t') => push_char_octal(c, &mut safe),
            c => safe.push(c),
        }
    }
    safe
}

/// Gives back the bytes that [`escape`] was given.
///
/// Text that `escape` did not write is taken as it stands: a backslash that is
/// not followed by three octal digits, the first below 4, is a backslash.
pub fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, after) = match (first, leading_octal(tail)) {
            (b'\\', Some(byte)) => (byte, &tail[3..]),
            _ => (*first, tail),
        };
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// Whether a byte stands for itself wherever it appears.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'\\'
}

fn escape_str(text: &str, shown: &mut String) {
    for (at, c) in text.char_indices() {
        // What follows a backslash is shown as it is exactly when it is an octal
        // digit, so the bytes to come tell how the text to come will read.
        let misread = c == '\\' && leading_octal(&text.as_bytes()[at + 1..]).is_some();
        if is_printable(c) && !misread {
            shown.push(c);
        } else {
            push_char_octal(c, shown);
        }
    }
}

fn push_char_octal(c: char, shown: &mut String) {
    let mut utf8 = [0; 4];
    let utf8 = c.encode_utf8(&mut utf8);
    utf8.bytes().for_each(|b| push_octal(b, shown));
}

fn push_octal(byte: u8, shown: &mut String) {
    shown.push('\\');
    for shift in [6, 3, 0] {
        shown.push(char::from(b'0' + (byte >> shift & 7)));
    }
}

/// The byte that three octal digits at the start of `bytes` stand for.
fn leading_octal(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
            Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
        }
        _ => None,
    }
}

/// Whether a reader sees this character, as itself and where it stands.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    !is_blank_letter(c) && is_printable_to_std(c)
}

/// Characters that Unicode counts as letters, marks or symbols although nothing
/// is drawn for them: joiners, variation selectors, fillers, the empty braille
/// cell. The standard library calls them printable.
fn is_blank_letter(c: char) -> bool {
    matches!(c,
        '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
        | '\u{FFA0}' | '\u{E0100}'..='\u{E01EF}')
}

/// Whether `Debug` of a string leaves this character alone.
///
/// That borrows the Unicode tables of the standard library: it escapes control,
/// format, private and unassigned characters and every space but the plain one.
/// The letter in front lets a combining accent pass, as it does within a word.
fn is_printable_to_std(c: char) -> bool {
    let mut utf8 = [b'a'; 5];
    let len = 1 + c.encode_utf8(&mut utf8[1..]).len();
    str::from_utf8(&utf8[..len]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(bytes: &[u8], shown: &str) {
        assert_eq!(escape(bytes), shown);
        assert_eq!(unescape(shown), bytes, "unescape {shown:?}");
    }

    #[test]
    fn ordinary_names_are_shown_as_they_are() {
        check(b"", "");
        check(b"system.slice", "system.slice");
        check(br"dev-disk-by\x2dlabel.swap", r"dev-disk-by\x2dlabel.swap");
        check("job één 作業 Zażółć".as_bytes(), "job één 作業 Zażółć");
        check("e\u{301}".as_bytes(), "e\u{301}");
        check("हिन्दी".as_bytes(), "हिन्दी");
        check(b"'quoted\" $(name)", "'quoted\" $(name)");
    }

    #[test]
    fn what_cannot_be_seen_is_octal() {
        check(
            b"two\nlines\tand\x1b[31mred\x7f\0",
            r"two\012lines\011and\033[31mred\177\000",
        );
        check(b"\xff\xc3(", r"\377\303(");
        check(b"\xed\xa0\x80", r"\355\240\200");
        let hidden = [
            "\u{80}",
            "\u{9b}",
            "\u{a0}",
            "\u{ad}",
            "\u{34f}",
            "\u{61c}",
            "\u{115f}",
            "\u{180e}",
            "\u{200b}",
            "\u{200d}",
            "\u{200e}",
            "\u{2028}",
            "\u{2029}",
            "\u{202e}",
            "\u{2060}",
            "\u{2066}",
            "\u{2800}",
            "\u{3000}",
            "\u{3164}",
            "\u{e000}",
            "\u{fe0f}",
            "\u{feff}",
            "\u{fff9}",
            "\u{fffe}",
            "\u{378}",
            "\u{e0041}",
            "\u{e0100}",
            "\u{10ffff}",
        ];
        for text in hidden {
            let octal: String = text.bytes().map(|b| format!("\\{b:03o}")).collect();
            check(text.as_bytes(), &octal);
        }
    }

    #[test]
    fn a_backslash_is_escaped_only_where_it_would_be_misread() {
        check(br"\", r"\");
        check(br"\\", r"\\");
        check(br"a\12", r"a\12");
        check(br"a\012", r"a\134012");
        check(br"a\377", r"a\134377");
        check(br"a\400", r"a\400");
        check(br"a\089", r"a\089");
        check(br"\\101", r"\\134101");
        check(br"\\\101", r"\\\134101");
        check(br"\134134", r"\134134134");
        check(b"\\\n", r"\\012");
        check(b"\\\n12", r"\\01212");
        check(b"\\1\n", r"\1\012");
        check(b"\\10\xff", r"\10\377");
        check("\\1\u{200b}".as_bytes(), r"\1\342\200\213");
    }

    #[test]
    fn markup_stays_text() {
        assert_eq!(
            xml("<script>\"a\" & 'b'"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;"
        );
        assert_eq!(xml("]]>\n\tnext"), "]]&gt;\n\tnext");
        assert_eq!(xml("\0\r\u{85}"), r"\000\015\302\205");
        assert_eq!(xml("作業"), "作業");
    }

    /// Bytes in which backslashes, octal digits and bad bytes meet often.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            4 => Just(b'\\'),
            4 => b'0'..=b'9',
            2 => prop::sample::select(&b"\n\x7f\xe2\x80\xae\xff a"[..]),
            1 => any::<u8>(),
        ];
        prop::collection::vec(byte, 0..40)
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(bytes in hostile()) {
            prop_assert_eq!(unescape(&escape(&bytes)), bytes);
        }

        #[test]
        fn any_string_comes_back(text in any::<String>()) {
            let shown = escape(text.as_bytes());
            prop_assert!(!shown.chars().any(char::is_control));
            prop_assert_eq!(unescape(&shown), text.as_bytes());
        }

        #[test]
        fn nothing_unprintable_is_shown(bytes in hostile()) {
            let shown = escape(&bytes);
            prop_assert!(shown.chars().all(is_printable), "{:?}", shown);
        }

        #[test]
        fn different_bytes_look_different(a in hostile(), b in hostile()) {
            prop_assert_eq!(a == b, escape(&a) == escape(&b));
        }

        #[test]
        fn any_text_unescapes_without_panic(text in any::<String>()) {
            prop_assert!(unescape(&text).len() <= text.len());
        }
    }
}
