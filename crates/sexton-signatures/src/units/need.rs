//! What cannot be masked without breaking another unit.
//!
//! systemd fails a unit whose `Requires=`, `BindsTo=` or `Requisite=` is masked, and a socket,
//! timer or path whose unit is. A service that wants another one starts without it, and yet was
//! written to use it. So a unit is left on where a unit that stays on needs it, and what is left
//! on may need others in turn.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use sexton_model::fact::unit::UnitFile;
use sexton_model::unit_name;

use super::node::Node;

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

const REQUISITE: &str = "needs it to be active";
const TRIGGERS: &str = "triggers it";

/// A unit, what it is to another one, and that one.
#[derive(Debug, Clone, Copy)]
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    /// What it is to one that it fails without; none if it does not.
    how: Option<&'static str>,
}

fn edges<'a>(from: &'a str, file: &'a UnitFile) -> impl Iterator<Item = Edge<'a>> {
    // A target wants what there is; a service that names another one has a use for it.
    let wants = (unit_name::sort(from) == "service").then_some("wants it");
    let all = [
        (&file.wants, wants),
        (&file.requires, Some("requires it")),
        (&file.binds_to, Some("binds to it")),
        (&file.upholds, None),
        (&file.requisite, Some(REQUISITE)),
        (&file.triggers, Some(TRIGGERS)),
    ];
    all.into_iter()
        .flat_map(move |(units, how)| units.iter().map(move |to| Edge { from, to, how }))
}

/// Which of `units` cannot be masked, if all others of them are. `is_needed` says which units
/// stay on though only one of `units` starts them.
pub(super) fn withheld(
    node: &Node<'_>,
    units: &BTreeSet<String>,
    is_needed: impl Fn(&str) -> bool,
) -> BTreeMap<String, Need> {
    let on = node.units.iter();
    let edges: Vec<Edge<'_>> = on.flat_map(|(name, file)| edges(name, file)).collect();
    let mut masked = units.clone();
    let mut withheld = BTreeMap::new();
    loop {
        let reached = reached(node, &edges, &masked);
        let stays = |unit: &str| Stay::of(node, &masked, &reached, unit, &is_needed);
        let found: Vec<(String, Need)> = edges
            .iter()
            .filter_map(|edge| needed(*edge, &masked, stays))
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

/// The units that a boot reaches if none of the units `off` could start.
fn reached<'a>(node: &'a Node<'_>, edges: &[Edge<'a>], off: &BTreeSet<String>) -> HashSet<&'a str> {
    let mut out: HashMap<&str, Vec<&str>> = HashMap::new();
    for edge in edges.iter().filter(|edge| edge.how != Some(REQUISITE)) {
        out.entry(edge.from).or_default().push(edge.to);
    }
    let mut reached = HashSet::from([node.start]);
    let mut queue = vec![node.start];
    while let Some(name) = queue.pop() {
        let is_off = node.find(name).is_none_or(|unit| unit.is_masked());
        if is_off || off.contains(name) {
            continue;
        }
        for to in out.get(name).map_or(&[][..], Vec::as_slice) {
            if reached.insert(to) {
                queue.push(to);
            }
        }
    }
    reached
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
        node: &Node<'_>,
        masked: &BTreeSet<String>,
        reached: &HashSet<&str>,
        name: &str,
        is_needed: impl Fn(&str) -> bool,
    ) -> Self {
        let unit = node.find(name);
        if target(masked, name).is_some() || unit.is_none_or(|unit| unit.is_masked()) {
            Self::Off
        } else if unit.is_some_and(|unit| unit.is_enabled()) || is_needed(name) {
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
    unit_name::template(name).filter(|template| masked.contains(template))
}

/// The end of an edge that must not be masked, because the other end stays on.
fn needed(
    edge: Edge<'_>,
    masked: &BTreeSet<String>,
    stays: impl Fn(&str) -> Stay,
) -> Option<(String, Need)> {
    let need = |unit: String, by: &str, how| {
        let by = by.to_owned();
        Some((unit, Need { by, how }))
    };
    let how = edge.how?;
    if let Some(unit) = target(masked, edge.to)
        && stays(edge.from) != Stay::Off
    {
        return need(unit, edge.from, how);
    }
    let is_trigger = how == TRIGGERS && masked.contains(edge.from);
    if is_trigger && stays(edge.to) == Stay::Meant {
        return need(edge.from.to_owned(), edge.to, "is triggered by it");
    }
    None
}

#[cfg(test)]
mod tests {
    use sexton_model::fact::unit::{UnitContext, UnitState};

    use super::*;

    const START: &str = "multi-user.target";

    /// A unit and what it needs: `requires`, `binds to`, `requisite`, `triggers` or `wants`.
    type Unit<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    /// Units; those that are enabled; what is to be masked; what is withheld.
    #[track_caller]
    fn check(units: &[Unit<'_>], enabled: &[&str], mask: &[&str], expected: &[(&str, &str)]) {
        let mut files = vec![(START.to_owned(), UnitFile::default())];
        files[0].1.wants = enabled.iter().map(|name| (*name).to_owned()).collect();
        for (name, needs) in units {
            let mut file = UnitFile {
                state: Some("static".to_owned()),
                ..UnitFile::default()
            };
            if enabled.contains(name) {
                file.state = Some("enabled".to_owned());
            }
            for (how, to) in *needs {
                let list = match *how {
                    "requires" => &mut file.requires,
                    "binds to" => &mut file.binds_to,
                    "requisite" => &mut file.requisite,
                    "triggers" => &mut file.triggers,
                    _ => &mut file.wants,
                };
                list.push((*to).to_owned());
            }
            files.push(((*name).to_owned(), file));
        }
        let on = files.iter().map(|(name, file)| (name.as_str(), file));
        let node = Node::new(START, on.collect(), []);
        let mask = mask.iter().map(|name| (*name).to_owned()).collect();
        let found = withheld(&node, &mask, |_| false);
        let found: Vec<(&str, String)> = found
            .iter()
            .map(|(unit, need)| (unit.as_str(), need.text()))
            .collect();
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (*a, b.as_str())).collect();
        assert_eq!(found, expected, "{units:?}");
    }

    #[test]
    fn what_an_enabled_unit_requires_stays() {
        let on = ["postfix.service", "myapp.service"];
        for (key, how) in [
            ("requires", "requires it"),
            ("binds to", "binds to it"),
            ("requisite", "needs it to be active"),
            ("wants", "wants it"),
        ] {
            let needs = [(key, "postfix.service")];
            let units = [("postfix.service", &[][..]), ("myapp.service", &needs)];
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
        let wants = [("wants", "postfix.service")];
        let units = [("postfix.service", &[][..]), ("x.target", &wants)];
        check(
            &units,
            &["postfix.service", "x.target"],
            &["postfix.service"],
            &[],
        );
    }

    #[test]
    fn what_is_left_on_needs_others_in_turn() {
        let units: [Unit<'_>; 4] = [
            ("rpcbind.service", &[]),
            ("rpcbind.socket", &[("triggers", "rpcbind.service")]),
            ("statd.service", &[("requires", "rpcbind.socket")]),
            ("client.service", &[("wants", "statd.service")]),
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
        let units: [Unit<'_>; 2] = [
            ("job.service", &[]),
            ("job.timer", &[("triggers", "job.service")]),
        ];
        let why = [("job.timer", "job.service is triggered by it")];
        check(&units, &["job.service", "job.timer"], &["job.timer"], &why);
        // Only the timer starts it.
        check(&units, &["job.timer"], &["job.timer"], &[]);
    }

    #[test]
    fn an_instance_needs_its_template() {
        let units: [Unit<'_>; 2] = [
            ("mail@.service", &[]),
            ("app.service", &[("requires", "mail@x.service")]),
        ];
        check(
            &units,
            &["app.service"],
            &["mail@.service"],
            &[("mail@.service", "app.service requires it")],
        );
    }

    #[test]
    fn a_masked_unit_and_another_name() {
        let state = |name: &str, state: &str, own: Option<&str>| UnitState {
            name: name.to_owned(),
            state: state.to_owned(),
            alias_of: own.map(str::to_owned),
        };
        let file = UnitFile {
            state: Some("enabled".to_owned()),
            ..UnitFile::default()
        };
        let off = UnitContext {
            units: vec![
                state("b.service", "masked", None),
                state("c.service", "alias", Some("a.service")),
            ],
            ..UnitContext::default()
        };
        let on = BTreeMap::from([("a.service", &file)]);
        let node = Node::new(START, on, [&off]);
        let states = |name: &str| {
            let unit = node.find(name)?;
            Some((unit.is_masked(), unit.is_enabled()))
        };
        assert_eq!(states("b.service"), Some((true, false)));
        assert_eq!(states("c.service"), Some((false, true)));
        assert_eq!(states("d.service"), None);
    }
}
