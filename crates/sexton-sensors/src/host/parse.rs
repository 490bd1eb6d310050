//! The small formats in which a machine describes itself.

/// `KEY=value` lines with shell quotes, as in os-release(5) and files like it. What is no
/// such line is left out.
pub(super) fn assignments(text: &str) -> impl Iterator<Item = (&str, String)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.trim().split_once('=')?;
        let is_key = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (!key.is_empty() && is_key(key)).then(|| (key, unquote(value)))
    })
}

/// Takes off the quotes, and the backslashes inside them.
fn unquote(value: &str) -> String {
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(plain) = quoted('\'') {
        return plain.to_owned();
    }
    let inner = quoted('"').unwrap_or(value);
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let escaped = (c == '\\').then(|| chars.next()).flatten();
        plain.push(escaped.unwrap_or(c));
    }
    plain
}

/// The value of a switch of the kernel's command line; empty for one without a value. The
/// last one counts, as it does for the kernel. What follows `--` is for init.
pub(super) fn switch<'a>(command_line: &'a str, name: &str) -> Option<&'a str> {
    let words = command_line.split_whitespace();
    let ours = words.take_while(|word| *word != "--");
    let values = ours.filter_map(|word| match word.split_once('=') {
        Some((key, value)) => (key == name).then_some(value),
        None => (word == name).then_some(""),
    });
    values.last()
}

/// Parts of the names of switches that hold what nobody else should read.
const SECRETS: [&str; 6] = ["pass", "secret", "token", "credential", "auth", "key"];

/// The command line without secrets. Boot loaders pass passwords for disks and iSCSI.
pub(super) fn without_secrets(command_line: &str) -> String {
    let word = |word: &str| match word.split_once('=') {
        Some((key, value)) if is_secret(key, value) => format!("{key}=<hidden>"),
        _ => word.to_owned(),
    };
    let words: Vec<String> = command_line.split_whitespace().map(word).collect();
    words.join(" ")
}

/// `user:password@host` is a secret whatever the switch is called.
fn is_secret(key: &str, value: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let has_login = value
        .split_once('@')
        .is_some_and(|(login, _)| login.contains(':'));
    has_login || SECRETS.iter().any(|part| key.contains(part))
}

/// How many numbers a list such as `0-3,8` has.
pub(super) fn count_of_list(list: &str) -> Option<u64> {
    list.trim().split(',').try_fold(0_u64, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        count.checked_add(u64::from(last.checked_sub(first)?) + 1)
    })
}

/// `MemTotal` of `/proc/meminfo`.
pub(super) fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Whether the first processor says that it is a hypervisor's. `None` where processors
/// have no such flag to say it with.
pub(super) fn is_virtual(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "flags").then_some(value)
    })?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// What a machine-id(5) file holds. The id itself is nobody's business.
pub(super) fn machine_id(content: &str) -> &'static str {
    match content.trim() {
        "" => "empty",
        "uninitialized" => "uninitialized",
        _ => "present",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(found: T, expected: T) {
        assert_eq!(found, expected);
    }

    fn owned(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
        pairs
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned()))
            .collect()
    }

    #[test]
    fn quotes_come_off() {
        let text = "# a comment\nID=debian\nNAME=\"Debian \\\"GNU\\\"\"\nX='a\\b'\nno line\n A-B=c\nEND=\"\n";
        check(
            assignments(text).collect(),
            owned(&[
                ("ID", "debian"),
                ("NAME", "Debian \"GNU\""),
                ("X", "a\\b"),
                ("END", "\""),
            ]),
        );
    }

    #[test]
    fn the_last_switch_counts_and_init_has_its_own() {
        let line = "quiet psi=0 cgroup_no_v1=all psi=1 -- psi=2";
        check(switch(line, "psi"), Some("1"));
        check(switch(line, "quiet"), Some(""));
        check(switch(line, "cgroup_no_v1"), Some("all"));
        check(switch(line, "cgroup"), None);
    }

    #[test]
    fn secrets_are_hidden() {
        check(
            without_secrets(
                "ro rd.iscsi.password=hunter2 root=UUID=1 netroot=iscsi:me:hunter2@host:x  quiet\n",
            )
            .as_str(),
            "ro rd.iscsi.password=<hidden> root=UUID=1 netroot=<hidden> quiet",
        );
    }

    #[test]
    fn lists_are_counted() {
        check(count_of_list("0-95\n"), Some(96));
        check(count_of_list("0,2-3,8"), Some(4));
        check(count_of_list("0"), Some(1));
        check(count_of_list(""), None);
        check(count_of_list("3-1"), None);
    }

    #[test]
    fn memory_and_flags_are_found() {
        check(
            memory_bytes("MemTotal:       16 kB\nMemFree: 1 kB\n"),
            Some(16 * 1024),
        );
        check(memory_bytes("MemFree: 1 kB\n"), None);
        check(
            is_virtual("processor\t: 0\nflags\t\t: fpu hypervisor\n"),
            Some(true),
        );
        check(is_virtual("flags\t\t: fpu hypervisors\n"), Some(false));
        check(is_virtual("Features\t: fp asimd\n"), None);
        check(machine_id("0123456789abcdef\n"), "present");
        check(machine_id("uninitialized\n"), "uninitialized");
        check(machine_id("\n"), "empty");
    }

    proptest! {
        #[test]
        fn any_text_does(text: String) {
            assignments(&text).for_each(drop);
            switch(&text, "psi");
            without_secrets(&text);
            count_of_list(&text);
            memory_bytes(&text);
            is_virtual(&text);
        }
    }
}
