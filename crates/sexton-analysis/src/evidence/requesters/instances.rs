//! Instances of a template: `echo@17-0.service`, of which a socket with `Accept=yes` starts one
//! for each connection. Each is a unit of its own, so that systemd counts restarts of none.

use crate::evidence::known;

/// The template of all cgroups of a pattern, if each of them is an instance of one.
pub(super) fn template(pattern: &str) -> Option<String> {
    let last = pattern.rsplit('/').next()?;
    let (name, instance) = last.strip_suffix(".service")?.split_once('@')?;
    let template = format!("{name}@.service");
    let is_many = instance.contains('<') && !name.contains('<') && !name.is_empty();
    (is_many && !known::is_between(&template)).then_some(template)
}

/// The socket that starts instances of a template, one for each connection: systemd finds
/// the template by the name of the socket alone (systemd.socket(5), `Accept=`).
pub(super) fn socket(template: &str) -> Option<String> {
    let name = template.strip_suffix("@.service")?;
    Some(format!("{name}.socket"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_have_a_template_and_a_socket() {
        let check = |pattern: &str, expected: Option<&str>| {
            assert_eq!(template(pattern).as_deref(), expected, "{pattern}");
        };
        check(
            "/system.slice/system-echo.slice/echo@<n>-<n>.service",
            Some("echo@.service"),
        );
        check("/system.slice/getty@tty1.service", None);
        check("/system.slice/run-<id>.service", None);
        check("/system.slice/a-<n>@<n>.service", None);
        check("/system.slice/echo@<n>.service/inner", None);
        // A login makes these, and a crash those.
        check("/user.slice/user-<n>.slice/user@<n>.service", None);
        check("/system.slice/systemd-coredump@<n>-<n>.service", None);
        assert_eq!(socket("echo@.service").as_deref(), Some("echo.socket"));
    }
}
