//! Names of units: `ssh.service`, `getty@.service`, `getty@tty1.service`.

/// Every sort of unit that systemd knows.
const TYPES: &[&str] = &[
    "automount",
    "device",
    "mount",
    "path",
    "scope",
    "service",
    "slice",
    "socket",
    "swap",
    "target",
    "timer",
];

/// systemd's own limit.
const NAME_BYTES_MAX: usize = 255;

/// Whether a name stands for one unit, for many, or for one of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `ssh.service`
    Plain,
    /// `getty@.service`
    Template,
    /// `getty@tty1.service`
    Instance,
}

/// The form of a valid name, `None` of any other text.
pub fn form(name: &str) -> Option<Form> {
    let (stem, suffix) = name.rsplit_once('.')?;
    let is_valid = |b: u8| b.is_ascii_alphanumeric() || b":_.-\\@".contains(&b);
    if name.len() > NAME_BYTES_MAX
        || stem.is_empty()
        || !TYPES.contains(&suffix)
        || !stem.bytes().all(is_valid)
    {
        return None;
    }
    match stem.split_once('@') {
        None => Some(Form::Plain),
        Some(("", _)) => None,
        Some((_, "")) => Some(Form::Template),
        Some(_) => Some(Form::Instance),
    }
}

/// What comes behind the last dot: `service`.
pub fn sort(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

/// `getty@.service` of `getty@tty1.service`.
pub fn template(name: &str) -> Option<String> {
    let (prefix, rest) = name.split_once('@')?;
    match form(name)? {
        Form::Instance => Some(format!("{prefix}@.{}", sort(rest))),
        Form::Plain | Form::Template => None,
    }
}

/// `tty1` of `getty@tty1.service`.
pub fn instance(name: &str) -> Option<&str> {
    match form(name)? {
        Form::Instance => Some(name.split_once('@')?.1.rsplit_once('.')?.0),
        Form::Plain | Form::Template => None,
    }
}

/// `getty@tty1.service` of `getty@.service` and `tty1`.
pub fn with_instance(template: &str, instance: &str) -> Option<String> {
    let (prefix, rest) = template.split_once('@')?;
    Some(format!("{prefix}@{instance}.{}", sort(rest)))
}

/// `ssh` of `ssh.service`.
pub fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Whether units of this sort may have other names.
pub fn may_alias(sort: &str) -> bool {
    matches!(
        sort,
        "service" | "socket" | "target" | "device" | "timer" | "path"
    )
}

/// Whether units of this sort may be templates.
pub fn may_template(sort: &str) -> bool {
    matches!(sort, "service" | "socket" | "target" | "timer" | "path")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let check = |name: &str, expected| assert_eq!(form(name), expected, "{name}");
        check("ssh.service", Some(Form::Plain));
        check("getty@.service", Some(Form::Template));
        check("getty@tty1.service", Some(Form::Instance));
        check(r"dev-disk-by\x2dlabel.swap", Some(Form::Plain));
        check("@x.service", None);
        check("ssh", None);
        check(".service", None);
        check("a b.service", None);
        check("ssh.service.d", None);
        check("multi-user.target.wants", None);
    }

    #[test]
    fn templates_and_instances() {
        assert_eq!(template("a@b@c.service").as_deref(), Some("a@.service"));
        assert_eq!(template("a@.service"), None);
        assert_eq!(instance("a@b.c.service"), Some("b.c"));
        assert_eq!(
            with_instance("a@.service", "b").as_deref(),
            Some("a@b.service")
        );
    }
}
