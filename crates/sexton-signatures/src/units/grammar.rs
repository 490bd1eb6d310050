//! Files that signs ask for, each read by its own grammar: white space, quotes, comments and
//! continued lines mean what they mean to the program that reads the file.

use serde::Deserialize;

/// How a file of settings is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grammar {
    /// `main.cf` of Postfix: postconf(5).
    Postfix,
    /// Assignments of a shell, as in `/etc/default`.
    Shell,
    /// `key = value` in sections.
    Ini,
}

impl Grammar {
    /// As signatures write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postfix => "postfix",
            Self::Shell => "shell",
            Self::Ini => "ini",
        }
    }

    /// The value of a key: of several the last, as all three do it. In an INI file the key may
    /// be given with its section, `Section.key`.
    pub fn value(self, text: &str, key: &str) -> Option<String> {
        let pairs = match self {
            Self::Postfix => postfix(text),
            Self::Shell => shell(text),
            Self::Ini => ini(text),
        };
        let is_key = |name: &str| match self {
            Self::Ini => {
                let bare = name.rsplit('\0').next().unwrap_or(name);
                bare.eq_ignore_ascii_case(key) || name.replace('\0', ".").eq_ignore_ascii_case(key)
            }
            Self::Postfix | Self::Shell => name == key,
        };
        let found = pairs.into_iter().rfind(|(name, _)| is_key(name));
        found.map(|(_, value)| value)
    }
}

/// A line that begins with white space continues the one before; a comment does not end it.
fn postfix(text: &str) -> Vec<(String, String)> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        match lines.last_mut() {
            Some(whole) if line.starts_with(char::is_whitespace) => {
                whole.push(' ');
                whole.push_str(bare);
            }
            _ => lines.push(bare.to_owned()),
        }
    }
    let pair = |line: &String| {
        let (key, value) = line.split_once('=')?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    lines.iter().filter_map(pair).collect()
}

/// Assignments at the beginning of lines; what a command would print is not known and kept as
/// it is written.
fn shell(text: &str) -> Vec<(String, String)> {
    let pair = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let (key, value) = line.split_once('=')?;
        let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_.".contains(&b);
        let is_key = !key.is_empty() && key.bytes().all(is_name);
        is_key.then(|| (key.to_owned(), unquoted(value)))
    };
    text.lines().filter_map(pair).collect()
}

/// The assignments of a file that `EnvironmentFile=` of systemd names, as `KEY=value`.
pub fn environment(text: &str) -> Vec<String> {
    let pairs = shell(text).into_iter();
    pairs.map(|(key, value)| format!("{key}={value}")).collect()
}

/// The first word of a shell line, without its quotes.
fn unquoted(value: &str) -> String {
    let mut word = String::new();
    let mut quote = None;
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => word.extend(chars.next()),
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            (c, None) if c.is_whitespace() || c == ';' => break,
            (c, _) => word.push(c),
        }
    }
    word
}

/// Keys carry their section, parted by a NUL, which no file of text holds.
fn ini(text: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut pairs = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.trim().to_owned();
        } else if let Some((key, value)) = line.split_once(['=', ':']) {
            let value = value.trim().trim_matches(['"', '\'']);
            pairs.push((format!("{section}\0{}", key.trim()), value.to_owned()));
        }
    }
    pairs
}

/// One line of `/etc/fstab`: fstab(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// What is mounted: a device, `UUID=…`, `server:/export`.
    pub what: String,
    /// Where.
    pub place: String,
    /// The sort of filesystem.
    pub sort: String,
    /// Its options.
    pub options: Vec<String>,
}

/// The lines of a table of mounts that name at least device, place and sort.
pub fn fstab(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let mut fields = line.split_whitespace().map(unescaped);
        let (what, place, sort) = (fields.next()?, fields.next()?, fields.next()?);
        let options = fields.next().unwrap_or_default();
        Some(Mount {
            what: what.replace('"', ""),
            place,
            sort,
            options: options.split(',').map(str::to_owned).collect(),
        })
    };
    let lines = text.lines().map(str::trim_start);
    lines
        .filter(|line| !line.starts_with('#'))
        .filter_map(mount)
        .collect()
}

/// `\040` is a space: three octal digits are a byte, as getmntent(3) reads them.
fn unescaped(field: &str) -> String {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(grammar: Grammar, text: &str, key: &str, expected: Option<&str>) {
        let found = grammar.value(text, key);
        assert_eq!(found.as_deref(), expected, "{text:?}");
    }

    #[test]
    fn main_cf_of_postfix() {
        let check = |text, expected| check(Grammar::Postfix, text, "relayhost", expected);
        check("relayhost=[mx]:587\n", Some("[mx]:587"));
        check("relayhost\t=\t[mx]:587\n", Some("[mx]:587"));
        check("relayhost =\n  [mx]\n# c\n  :587\n", Some("[mx] :587"));
        check("relayhost = a\nrelayhost =\n", Some(""));
        check("# relayhost = a\nsmtp_relayhost = b\n", None);
    }

    #[test]
    fn defaults_of_a_shell() {
        let check = |text, expected| check(Grammar::Shell, text, "ENABLED", expected);
        check("ENABLED=yes\n", Some("yes"));
        check("ENABLED=\"yes\"\n", Some("yes"));
        check("  export ENABLED='yes' # on\n", Some("yes"));
        check("ENABLED=no\nENABLED=yes;\n", Some("yes"));
        check("#ENABLED=yes\nNOT_ENABLED=yes\nENABLED =yes\n", None);
        check("ENABLED=\n", Some(""));
        check("ENABLED=a\\ b\"c d\"\n", Some("a bc d"));
    }

    #[test]
    fn sections_of_an_ini_file() {
        let text = "[Daemons]\nAccounts_daemon = true\n;x = 1\n[Scripts]\nshutdown: false\n";
        check(Grammar::Ini, text, "shutdown", Some("false"));
        check(Grammar::Ini, text, "Scripts.Shutdown", Some("false"));
        check(Grammar::Ini, text, "Daemons.shutdown", None);
        check(Grammar::Ini, text, "x", None);
    }

    #[test]
    fn a_table_of_mounts() {
        let text = "# x\n\tsrv:/x\t/my\\040data\tnfs4\tvers=4,ro\t0 0\nUUID=\"1\" /a xfs\nproc\n";
        let mounts = fstab(text);
        assert_eq!(mounts.len(), 2);
        assert_eq!(
            (mounts[0].place.as_str(), mounts[0].sort.as_str()),
            ("/my data", "nfs4")
        );
        assert_eq!(mounts[0].options, ["vers=4", "ro"]);
        assert_eq!(mounts[1].what, "UUID=1");
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC*|[\\\\0-9a-z=#\"' \t\n\\[\\]]*") {
            for grammar in [Grammar::Postfix, Grammar::Shell, Grammar::Ini] {
                grammar.value(&text, "a");
            }
            fstab(&text);
        }
    }
}
