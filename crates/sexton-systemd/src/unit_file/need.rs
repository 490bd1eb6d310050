//! What cannot be masked without breaking another unit.
//!
//! systemd fails a unit whose `Requires=`, `BindsTo=` or `Requisite=` is masked, and a socket,
//! timer or path whose unit is. So a unit is left on where a unit that stays on needs it, and
//! what is left on may need others in turn.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::unit_file::graph::{Edge, Graph};
use crate::unit_file::name;
use crate::unit_file::set::UnitSet;

/// Why a unit is left on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The unit that stays on.
    pub by: String,
    /// What it is to the unit: `requires it`, `binds to it`, `is triggered by it`.
    pub how: &'static str,
}

impl Need {
    /// `myapp.service requires it`
    pub fn text(&self) -> String {
        format!("{} {}", self.by, self.how)
    }
}

/// Which of `units` cannot be masked, if all others of them are. `is_needed` says which units
/// stay on though only one of `units` starts them.
pub fn withheld(
    set: &UnitSet,
    graph: &Graph,
    units: &BTreeSet<String>,
    is_needed: impl Fn(&str) -> bool,
) -> BTreeMap<String, Need> {
    let mut masked = units.clone();
    let mut withheld = BTreeMap::new();
    loop {
        let reached = graph.reached_without(set, &masked);
        let stays = |unit: &str| Stay::of(set, &masked, &reached, unit, &is_needed);
        let found: Vec<(String, Need)> = graph
            .edges()
            .iter()
            .filter_map(|edge| needed(edge, &masked, stays))
            .collect();
        if found.is_empty() {
            return withheld;
        }
        for (unit, need) in found {
            masked.remove(&unit);
            withheld.entry(unit).or_insert(need);
        }
    }
}

/// What becomes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    /// It does not run.
    Off,
    /// It runs because others start it.
    Started,
    /// It is meant to run: it is enabled, or the deployment needs it.
    Meant,
}

impl Stay {
    fn of(
        set: &UnitSet,
        masked: &BTreeSet<String>,
        reached: &HashSet<String>,
        name: &str,
        is_needed: impl Fn(&str) -> bool,
    ) -> Self {
        let unit = set.find(name);
        if target(masked, name).is_some() || unit.is_none_or(|unit| unit.state.is_masked()) {
            Self::Off
        } else if unit.is_some_and(|unit| unit.state.is_enabled()) || is_needed(name) {
            Self::Meant
        } else if reached.contains(name) {
            Self::Started
        } else {
            Self::Off
        }
    }
}

/// Which unit masks this one: itself or its template.
fn target(masked: &BTreeSet<String>, name: &str) -> Option<String> {
    if masked.contains(name) {
        return Some(name.to_owned());
    }
    name::template(name).filter(|template| masked.contains(template))
}

/// The end of an edge that must not be masked, because the other end stays on.
fn needed(
    edge: &Edge,
    masked: &BTreeSet<String>,
    stays: impl Fn(&str) -> Stay,
) -> Option<(String, Need)> {
    let need = |unit: String, by: &str, how| {
        let by = by.to_owned();
        Some((unit, Need { by, how }))
    };
    let forward = match edge.how {
        "requires" => "requires it",
        "binds to" => "binds to it",
        "needs" => "needs it to be active",
        "socket" | "timer" | "path" => "triggers it",
        _ => return None,
    };
    if let Some(unit) = target(masked, &edge.to)
        && stays(&edge.from) != Stay::Off
    {
        return need(unit, &edge.from, forward);
    }
    let is_trigger = forward == "triggers it" && masked.contains(&edge.from);
    if is_trigger && stays(&edge.to) == Stay::Meant {
        return need(edge.from.clone(), &edge.to, "is triggered by it");
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use sexton_host::FolderRoot;

    use super::*;
    use crate::unit_file::Tree;

    /// Units with their text; those that are enabled; what is to be masked; what is withheld.
    #[track_caller]
    fn check(units: &[(&str, &str)], enabled: &[&str], mask: &[&str], expected: &[(&str, &str)]) {
        let folder = tempfile::tempdir().expect("a folder");
        let lib = folder.path().join("usr/lib/systemd/system");
        let wants = folder
            .path()
            .join("etc/systemd/system/multi-user.target.wants");
        fs::create_dir_all(&lib).expect("made");
        fs::create_dir_all(&wants).expect("made");
        fs::write(lib.join("multi-user.target"), "[Unit]\n").expect("written");
        symlink("multi-user.target", lib.join("default.target")).expect("linked");
        for (name, text) in units {
            fs::write(lib.join(name), text).expect("written");
        }
        for name in enabled {
            symlink(format!("/usr/lib/systemd/system/{name}"), wants.join(name)).expect("linked");
        }
        let root = FolderRoot::open(folder.path()).expect("opens");
        let set = UnitSet::read(&mut Tree::new(&root));
        let mask = mask.iter().map(|name| (*name).to_owned()).collect();
        let found = withheld(&set, &Graph::of(&set), &mask, |_| false);
        let found: Vec<(&str, String)> = found
            .iter()
            .map(|(unit, need)| (unit.as_str(), need.text()))
            .collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (*a, b.as_str())).collect();
        assert_eq!(found, expected, "{units:?}");
    }

    const PLAIN: &str = "[Service]\nExecStart=/x\n[Install]\nWantedBy=multi-user.target\n";

    #[test]
    fn what_an_enabled_unit_requires_stays() {
        let app = |key: &str| format!("[Unit]\n{key}=postfix.service\n{PLAIN}");
        for (key, how) in [
            ("Requires", "requires it"),
            ("BindsTo", "binds to it"),
            ("Requisite", "needs it to be active"),
        ] {
            let units = [("postfix.service", PLAIN), ("myapp.service", &app(key))];
            let on = ["postfix.service", "myapp.service"];
            let why = format!("myapp.service {how}");
            check(
                &units,
                &on,
                &["postfix.service"],
                &[("postfix.service", &why)],
            );
            // One that does not run breaks nothing, and one that goes too needs nothing.
            check(&units, &on[..1], &["postfix.service"], &[]);
            check(&units, &on, &on, &[]);
        }
        let wants = app("Wants");
        let units = [("postfix.service", PLAIN), ("myapp.service", &wants)];
        check(
            &units,
            &["postfix.service", "myapp.service"],
            &["postfix.service"],
            &[],
        );
    }

    #[test]
    fn what_is_left_on_needs_others_in_turn() {
        let socket = "[Socket]\nListenStream=1\n[Install]\nWantedBy=multi-user.target\n";
        let units = [
            ("rpcbind.service", PLAIN),
            ("rpcbind.socket", socket),
            (
                "statd.service",
                "[Unit]\nRequires=rpcbind.socket\n[Service]\nExecStart=/x\n",
            ),
            (
                "client.service",
                "[Unit]\nWants=statd.service\n[Service]\nExecStart=/x\n",
            ),
        ];
        let both = ["rpcbind.service", "rpcbind.socket"];
        check(
            &units,
            &["rpcbind.service", "rpcbind.socket", "client.service"],
            &both,
            &[
                ("rpcbind.service", "rpcbind.socket triggers it"),
                ("rpcbind.socket", "statd.service requires it"),
            ],
        );
        // Nothing starts the one that requires it.
        check(&units, &both, &both, &[]);
    }

    #[test]
    fn a_trigger_of_an_enabled_unit_stays() {
        let timer = "[Timer]\nOnCalendar=daily\n[Install]\nWantedBy=multi-user.target\n";
        let units = [("job.service", PLAIN), ("job.timer", timer)];
        let why = [("job.timer", "job.service is triggered by it")];
        check(&units, &["job.service", "job.timer"], &["job.timer"], &why);
        // Only the timer starts it.
        check(&units, &["job.timer"], &["job.timer"], &[]);
    }

    #[test]
    fn an_instance_needs_its_template() {
        let app = format!("[Unit]\nRequires=mail@x.service\n{PLAIN}");
        let units = [("mail@.service", PLAIN), ("app.service", &app)];
        check(
            &units,
            &["app.service"],
            &["mail@.service"],
            &[("mail@.service", "app.service requires it")],
        );
    }
}
