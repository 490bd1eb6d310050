//! Whose samples are those of a cgroup: its unit, container, image and pod.

use std::collections::HashMap;
use std::time::Duration;

use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::moment::Moment;
use sexton_model::origin::Origin;
use sexton_model::record::Record;
use sexton_model::text::escape;
use sexton_profile::window::Labels;

/// The label that each container has another value of.
pub(super) const CONTAINER_ID: &str = "container_id";

/// Containers that are remembered: ten times what a kubelet runs.
const MAX_CONTAINERS: usize = 1_100;

/// Longer values of labels are cut: receivers refuse those over 2,048 bytes.
const MAX_VALUE_BYTES: usize = 256;

/// A container that has run for less has no labels of its own: a loop of short-lived ones would make
/// new series without end, and receivers bound those of all nodes together.
const SETTLED: Duration = Duration::from_secs(60);

/// What a runtime says of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Container {
    name: Option<String>,
    image: Option<String>,
    pod: Option<String>,
    namespace: Option<String>,
}

/// A container that its runtime reported, or whose samples were seen.
#[derive(Debug, Clone, Default)]
struct Known {
    told: Container,
    /// When it started, or was first seen; none if it ran before the agent did.
    since: Option<Moment>,
    has_exited: bool,
    /// The larger, the later it was reported or seen.
    turn: u64,
}

impl Known {
    fn is_settled(&mut self, at: Moment) -> bool {
        // Another boot, whose clock began anew.
        self.since = self.since.map(|since| since.min(at));
        self.since.is_none_or(|since| at.since(since) >= SETTLED)
    }
}

/// Containers as their runtimes told them.
#[derive(Debug, Default)]
pub struct Owners {
    known: HashMap<String, Known>,
    turn: u64,
}

impl Owners {
    /// Remembers a container, if a record is about one.
    pub fn take(&mut self, record: &Record) {
        let (id, told, before_open, has_exited) =
            if let Some(says) = record.says(&CONTAINER_STARTED) {
                let told = Container {
                    name: says.name.clone(),
                    image: says.image.clone(),
                    pod: says.pod.clone(),
                    namespace: says.pod_namespace.clone(),
                };
                (&says.id, told, says.before_open, false)
            } else if let Some(says) = record.says(&CONTAINER_EXITED) {
                let told = Container {
                    name: says.name.clone(),
                    image: says.image.clone(),
                    pod: says.pod.clone(),
                    namespace: says.pod_namespace.clone(),
                };
                (&says.id, told, says.before_open, true)
            } else {
                return;
            };
        let id = id.clone();
        let id = id.unwrap_or_else(|| record.subject.name.to_string());
        let since = (before_open != Some(true)).then_some(record.at);
        let known = self.renewed(&id, since);
        known.told = told;
        known.has_exited = has_exited;
    }

    /// The container of this id, which is new at that time if it is not known.
    fn renewed(&mut self, id: &str, since: Option<Moment>) -> &mut Known {
        if !self.known.contains_key(id) && self.known.len() >= MAX_CONTAINERS {
            self.drop_one();
        }
        self.turn += 1;
        let known = self.known.entry(id.to_owned());
        let known = known.or_insert_with(|| Known {
            since,
            ..Known::default()
        });
        known.turn = self.turn;
        known
    }

    /// Drops one that exited, or else the one that was not heard of for longest.
    fn drop_one(&mut self) {
        let oldest = self.known.iter();
        let oldest = oldest.min_by_key(|(_, known)| (!known.has_exited, known.turn));
        if let Some(id) = oldest.map(|(id, _)| id.clone()) {
            self.known.remove(&id);
        }
    }

    /// Labels of the samples of a cgroup at a time, in the order of their names.
    pub fn labels(&mut self, node: &str, cgroup: Option<&[u8]>, at: Moment) -> Labels {
        let mut labels: Labels = vec![("node", node.to_owned())];
        let origin = Origin::of(cgroup.unwrap_or_default());
        let unit = origin.host_unit();
        let id = origin.container().map(|container| container.id);
        let (told, is_settled) = match id {
            Some(id) => {
                let known = self.renewed(id, Some(at));
                (known.told.clone(), known.is_settled(at))
            }
            None => (Container::default(), true),
        };
        let told = match is_settled {
            true => told,
            false => Container {
                image: told.image,
                namespace: told.namespace,
                ..Container::default()
            },
        };
        if let Some(id) = id.filter(|_| is_settled) {
            let name = told.name.as_deref();
            labels.push(("container", bounded(name.unwrap_or(short(id)))));
            labels.push((CONTAINER_ID, id.to_owned()));
        }
        let (image, pod) = (told.image.as_deref(), told.pod.as_deref());
        labels.extend(image.map(|image| ("image", bounded(image))));
        labels.extend(pod.map(|pod| ("pod", bounded(pod))));
        let namespace = told.namespace.as_deref();
        labels.extend(namespace.map(|namespace| ("namespace", bounded(namespace))));
        let pod_uid = origin.pod().map(|pod| pod.uid).filter(|_| is_settled);
        labels.extend(pod_uid.map(|uid| ("pod_uid", bounded(&uid))));
        labels.extend(unit.map(|unit| ("unit", bounded(unit))));
        // What a receiver lists first: the workload as people call it.
        let service = pod.or(image).or(unit);
        let service = service.map_or_else(|| "node".to_owned(), bounded);
        labels.push(("service_name", service));
        labels.sort_unstable();
        labels
    }

    /// Labels of owners that were folded.
    pub fn other(node: &str) -> Labels {
        let other = sexton_profile::window::OTHER;
        vec![
            ("node", node.to_owned()),
            ("service_name", other.to_owned()),
            ("unit", other.to_owned()),
        ]
    }
}

/// The first twelve digits, as runtimes show an id.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// Plain text of a bounded length: names are from outside.
fn bounded(text: &str) -> String {
    let plain = escape(text.as_bytes());
    plain[..plain.floor_char_boundary(MAX_VALUE_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::fact::container::{ContainerExited, ContainerStarted};
    use sexton_model::record::Sink;
    use sexton_model::subject::{Subject, SubjectKind};

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn at(seconds: u64) -> Moment {
        Moment::from_ns(seconds * 1_000_000_000)
    }

    fn take(owners: &mut Owners, out: Sink) {
        let records = out.into_records();
        records.iter().for_each(|record| owners.take(record));
    }

    fn started(owners: &mut Owners, id: &str, seconds: u64) {
        let mut out = Sink::new("containers", at(seconds));
        let says = ContainerStarted {
            id: Some(id.into()),
            name: Some("app".into()),
            image: Some("web:1".into()),
            pod: Some("web-7".into()),
            pod_namespace: Some("shop".into()),
            before_open: Some(seconds == 0),
            ..ContainerStarted::default()
        };
        let subject = Subject::new(SubjectKind::Container, id);
        out.event(at(seconds), &subject, &CONTAINER_STARTED, says);
        take(owners, out);
    }

    fn exited(owners: &mut Owners, id: &str, seconds: u64) {
        let mut out = Sink::new("containers", at(seconds));
        let says = ContainerExited {
            id: Some(id.into()),
            ..ContainerExited::default()
        };
        let subject = Subject::new(SubjectKind::Container, id);
        out.event(at(seconds), &subject, &CONTAINER_EXITED, says);
        take(owners, out);
    }

    fn text(labels: &Labels) -> String {
        let labels = labels.iter().map(|(name, value)| format!("{name}={value}"));
        labels.collect::<Vec<_>>().join(" ")
    }

    /// A cgroup a minute after its container started.
    fn check(cgroup: Option<&str>, expected: &str) {
        let mut owners = Owners::default();
        started(&mut owners, ID, 100);
        let cgroup = cgroup.map(str::as_bytes);
        owners.labels("n1", cgroup, at(100));
        assert_eq!(text(&owners.labels("n1", cgroup, at(160))), expected);
    }

    #[test]
    fn a_cgroup_names_its_owner() {
        check(None, "node=n1 service_name=node");
        check(
            Some("/system.slice/ecs.service"),
            "node=n1 service_name=ecs.service unit=ecs.service",
        );
        check(
            Some(&format!("/system.slice/docker-{ID}.scope")),
            &format!(
                "container=app container_id={ID} image=web:1 namespace=shop node=n1 pod=web-7 \
                 service_name=web-7"
            ),
        );
        let unknown = ID.replace('0', "f");
        check(
            Some(&format!("/docker/{unknown}")),
            &format!("container=f123456789ab container_id={unknown} node=n1 service_name=node"),
        );
    }

    #[test]
    fn a_loop_of_short_lived_containers_makes_no_new_series() {
        let mut owners = Owners::default();
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..500 {
            let id = format!("{n:064x}");
            let began = 100 + n * 2;
            // The runtime tells of every other one.
            if n % 2 == 0 {
                started(&mut owners, &id, began);
            }
            let cgroup = format!("/docker/{id}");
            let labels = owners.labels("n1", Some(cgroup.as_bytes()), at(began + 1));
            seen.insert(text(&labels));
            exited(&mut owners, &id, began + 1);
        }
        let seen: Vec<String> = seen.into_iter().collect();
        assert_eq!(
            seen,
            [
                "image=web:1 namespace=shop node=n1 service_name=web:1",
                "node=n1 service_name=node",
            ]
        );
    }

    #[test]
    fn one_that_ran_before_the_agent_has_its_labels_at_once() {
        let mut owners = Owners::default();
        started(&mut owners, ID, 0);
        let cgroup = format!("/docker/{ID}");
        let labels = owners.labels("n1", Some(cgroup.as_bytes()), at(5));
        assert!(text(&labels).starts_with("container=app"), "{labels:?}");
    }

    #[test]
    fn those_that_exited_are_forgotten_first_and_then_those_not_seen_for_longest() {
        let mut owners = Owners::default();
        started(&mut owners, ID, 1);
        let other = ID.replace('0', "f");
        started(&mut owners, &other, 1);
        for n in 0..3_000 {
            let id = format!("{n:064x}");
            started(&mut owners, &id, 2 + n);
            exited(&mut owners, &id, 3 + n);
        }
        assert_eq!(owners.known.len(), MAX_CONTAINERS);
        assert!(owners.known.contains_key(ID) && owners.known.contains_key(&other));
        // None of these exits; one of the old ones is seen all the time.
        let cgroup = format!("/docker/{ID}");
        for n in 0..3_000 {
            started(&mut owners, &format!("a{n:063x}"), 4_000 + n);
            owners.labels("n1", Some(cgroup.as_bytes()), at(4_000 + n));
        }
        assert_eq!(owners.known.len(), MAX_CONTAINERS);
        assert!(owners.known.contains_key(ID) && !owners.known.contains_key(&other));
        assert_eq!(bounded(&"ä".repeat(500)).len(), MAX_VALUE_BYTES);
    }
}
