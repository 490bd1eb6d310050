//! Whose samples are those of a cgroup: its unit, container, image and pod.

use std::collections::HashMap;
use std::collections::VecDeque;

use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::origin::Origin;
use sexton_model::record::Record;
use sexton_model::text::escape;
use sexton_profile::window::Labels;

/// Containers that are remembered: ten times what a kubelet runs.
const MAX_CONTAINERS: usize = 1_100;

/// Longer values of labels are cut: receivers refuse those over 2,048 bytes.
const MAX_VALUE_BYTES: usize = 256;

/// What a runtime says of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Container {
    name: Option<String>,
    image: Option<String>,
    pod: Option<String>,
    namespace: Option<String>,
}

/// Containers as their runtimes told them.
#[derive(Debug, Default)]
pub struct Owners {
    known: HashMap<String, Container>,
    order: VecDeque<String>,
}

impl Owners {
    /// Remembers a container, if a record is about one.
    pub fn take(&mut self, record: &Record) {
        let (id, container) = if let Some(says) = record.says(&CONTAINER_STARTED) {
            let container = Container {
                name: says.name.clone(),
                image: says.image.clone(),
                pod: says.pod.clone(),
                namespace: says.pod_namespace.clone(),
            };
            (&says.id, container)
        } else if let Some(says) = record.says(&CONTAINER_EXITED) {
            let container = Container {
                name: says.name.clone(),
                image: says.image.clone(),
                pod: says.pod.clone(),
                namespace: says.pod_namespace.clone(),
            };
            (&says.id, container)
        } else {
            return;
        };
        let id = id.clone();
        let id = id.unwrap_or_else(|| record.subject.name.to_string());
        if self.known.insert(id.clone(), container).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > MAX_CONTAINERS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Labels of the samples of a cgroup, in the order of their names.
    pub fn labels(&self, node: &str, cgroup: Option<&[u8]>) -> Labels {
        let mut labels: Labels = vec![("node", node.to_owned())];
        let origin = Origin::of(cgroup.unwrap_or_default());
        let unit = origin.host_unit();
        let id = origin.container().map(|container| container.id);
        let told = id.and_then(|id| self.known.get(id));
        if let Some(id) = id {
            let name = told.and_then(|told| told.name.as_deref());
            labels.push(("container", bounded(name.unwrap_or(short(id)))));
            labels.push(("container_id", id.to_owned()));
        }
        let image = told.and_then(|told| told.image.as_deref());
        labels.extend(image.map(|image| ("image", bounded(image))));
        let pod = told.and_then(|told| told.pod.as_deref());
        labels.extend(pod.map(|pod| ("pod", bounded(pod))));
        let namespace = told.and_then(|told| told.namespace.as_deref());
        labels.extend(namespace.map(|namespace| ("namespace", bounded(namespace))));
        let pod_uid = origin.pod().map(|pod| pod.uid);
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
    use sexton_model::fact::container::ContainerStarted;
    use sexton_model::moment::Moment;
    use sexton_model::record::Sink;
    use sexton_model::subject::{Subject, SubjectKind};

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn started(owners: &mut Owners, id: &str) {
        let now = Moment::from_ns(1);
        let mut out = Sink::new("containers", now);
        let says = ContainerStarted {
            id: Some(id.into()),
            name: Some("app".into()),
            image: Some("web:1".into()),
            pod: Some("web-7".into()),
            pod_namespace: Some("shop".into()),
            ..ContainerStarted::default()
        };
        let subject = Subject::new(SubjectKind::Container, id);
        out.event(now, &subject, &CONTAINER_STARTED, says);
        out.into_records()
            .iter()
            .for_each(|record| owners.take(record));
    }

    fn check(cgroup: Option<&str>, expected: &str) {
        let mut owners = Owners::default();
        started(&mut owners, ID);
        let labels = owners.labels("n1", cgroup.map(str::as_bytes));
        let text: Vec<String> = labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(text.join(" "), expected);
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
    fn containers_and_values_are_bounded() {
        let mut owners = Owners::default();
        for n in 0..3_000 {
            started(&mut owners, &format!("{n:064x}"));
        }
        assert_eq!(
            (owners.known.len(), owners.order.len()),
            (MAX_CONTAINERS, MAX_CONTAINERS)
        );
        assert_eq!(bounded(&"ä".repeat(500)).len(), MAX_VALUE_BYTES);
    }
}
