//! Units by name, those of users' own managers among them, and what to type about them.
//!
//! A unit of a user may be named like one of the system's; it is told together with the
//! manager that it belongs to: `user@1000.service/loop.service`.

use sexton_model::origin::{Kind, Origin};
use sexton_model::text::{escape, shell_word};

/// The unit that the path of a cgroup tells.
pub(crate) fn of_path(path: &str) -> Option<String> {
    let origin = Origin::of(path.as_bytes());
    let unit = escape(origin.host_unit()?.as_bytes());
    match (origin.kind(), origin.user()) {
        (Kind::UserUnit, Some(user)) if !unit.starts_with("user@") => {
            Some(format!("user@{user}.service/{unit}"))
        }
        _ => Some(unit),
    }
}

/// The unit without its manager.
pub(crate) fn own(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, unit)| unit)
}

/// Whether it belongs to a user's own manager.
pub(crate) fn is_of_user(name: &str) -> bool {
    user(name).is_some()
}

/// Whether it is a template, of which only instances run: `echo@.service`.
pub(crate) fn is_template(name: &str) -> bool {
    name.contains("@.")
}

/// All instances of a template, as `systemctl` takes them.
pub(crate) fn all_instances(template: &str) -> String {
    template.replacen("@.", "@*.", 1)
}

fn user(name: &str) -> Option<&str> {
    let (manager, _) = name.split_once('/')?;
    manager.strip_prefix("user@")?.strip_suffix(".service")
}

/// What to type to have something done with a unit, by whoever may.
pub(crate) fn systemctl(verb: &str, name: &str) -> String {
    let unit = word(own(name));
    match user(name) {
        Some(user) => {
            let user = shell_word(user);
            format!(
                "sudo -u '#{user}' XDG_RUNTIME_DIR=/run/user/{user} systemctl --user {verb} {unit}"
            )
        }
        None => format!("sudo systemctl {verb} {unit}"),
    }
}

/// What to type to stop a unit. What triggers it goes first: else it would start it again.
pub(crate) fn stop(name: &str, triggers: &[&str]) -> String {
    let triggers = triggers.iter().map(|trigger| beside(name, trigger));
    let commands: Vec<String> = triggers
        .chain([name.to_owned()])
        .map(|unit| systemctl("stop", &unit))
        .collect();
    commands.join(" && ")
}

/// Another unit of the same manager.
fn beside(name: &str, other: &str) -> String {
    match name.split_once('/') {
        Some((manager, _)) => format!("{manager}/{other}"),
        None => other.to_owned(),
    }
}

/// What to type to keep a unit from starting at boot: what triggers it, if anything does, is
/// what is enabled.
pub(crate) fn disable(name: &str, triggers: &[&str]) -> String {
    let all = match triggers {
        [] => vec![name.to_owned()],
        triggers => triggers.iter().map(|unit| beside(name, unit)).collect(),
    };
    let commands: Vec<String> = all
        .iter()
        .map(|unit| systemctl("disable --now", unit))
        .collect();
    commands.join(" && ")
}

/// What to type to see what a unit logs.
pub(crate) fn journal(name: &str) -> String {
    match user(name) {
        // `--user-unit` would look only at what the user who types it has logged.
        Some(user) => {
            let field = shell_word(&format!("_SYSTEMD_USER_UNIT={}", own(name)));
            format!("sudo journalctl {field} _UID={} -n 50", shell_word(user))
        }
        None => format!("journalctl -u {} -n 50", word(name)),
    }
}

/// A name that begins with a dash is no option.
fn word(name: &str) -> String {
    match name.starts_with('-') {
        true => format!("-- {}", shell_word(name)),
        false => shell_word(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_users_are_told_from_the_systems() {
        let of = |path| of_path(path).unwrap_or_default();
        assert_eq!(of("/system.slice/ssh.service"), "ssh.service");
        let own = "/user.slice/user-1000.slice/user@1000.service/app.slice/ssh.service";
        assert_eq!(of(own), "user@1000.service/ssh.service");
        let below = "/user.slice/user-1000.slice/user@1000.service/app.slice/ssh.service/a/1";
        assert_eq!(of(below), "user@1000.service/ssh.service");
        let manager = "/user.slice/user-1000.slice/user@1000.service/init.scope";
        assert_eq!(of(manager), "user@1000.service/init.scope");
        assert_eq!(of_path("/jobs/run-1"), None);
    }

    #[test]
    fn what_triggers_a_unit_is_stopped_before_it() {
        assert_eq!(
            stop("a.service", &["a.timer"]),
            "sudo systemctl stop a.timer && sudo systemctl stop a.service"
        );
        assert_eq!(stop("a.service", &[]), "sudo systemctl stop a.service");
        assert_eq!(
            disable("a.service", &["a.timer"]),
            "sudo systemctl disable --now a.timer"
        );
        assert_eq!(
            disable("a.service", &[]),
            "sudo systemctl disable --now a.service"
        );
    }

    #[test]
    fn a_template_stands_for_its_instances() {
        assert!(is_template("echo@.service") && !is_template("echo@1.service"));
        assert_eq!(
            systemctl("stop", &all_instances("echo@.service")),
            "sudo systemctl stop 'echo@*.service'"
        );
    }

    #[test]
    fn commands_do_what_they_say_and_no_more() {
        assert_eq!(
            systemctl("stop", "a.service"),
            "sudo systemctl stop a.service"
        );
        assert_eq!(
            systemctl("stop", "user@1000.service/a.service"),
            "sudo -u '#1000' XDG_RUNTIME_DIR=/run/user/1000 systemctl --user stop a.service"
        );
        assert_eq!(
            stop("user@7.service/a.service", &["a.socket"]),
            "sudo -u '#7' XDG_RUNTIME_DIR=/run/user/7 systemctl --user stop a.socket && \
             sudo -u '#7' XDG_RUNTIME_DIR=/run/user/7 systemctl --user stop a.service"
        );
        assert_eq!(
            systemctl("stop", "a;reboot;.service"),
            "sudo systemctl stop 'a;reboot;.service'"
        );
        assert_eq!(
            systemctl("stop", "-H evil.service"),
            "sudo systemctl stop -- '-H evil.service'"
        );
        assert_eq!(
            journal("user@7.service/$(id).service"),
            "sudo journalctl '_SYSTEMD_USER_UNIT=$(id).service' _UID=7 -n 50"
        );
    }
}
