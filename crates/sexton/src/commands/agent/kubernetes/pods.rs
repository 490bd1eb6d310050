//! Which pod a container belongs to, by the kubelet's own labels as container runtimes tell them.

use std::collections::VecDeque;

use sexton_kubernetes::Pod;
use sexton_model::fact::container::{CONTAINER_EXITED, CONTAINER_STARTED};
use sexton_model::finding::Finding;
use sexton_model::record::{Event, Record};
use sexton_model::subject::{Subject, SubjectKind};

/// Containers that are remembered. Ten times what a kubelet takes.
const MAX_CONTAINERS: usize = 1_100;

/// Pods that one finding names.
const MAX_PODS: usize = 4;

/// The containers of pods that were seen, newest last.
#[derive(Debug, Default)]
pub struct Pods {
    known: VecDeque<(String, Pod)>,
}

impl Pods {
    /// Remembers whose container this is, if a record says so.
    pub fn take(&mut self, record: &Record) {
        let says = if let Some(event) = Event::of(record, &CONTAINER_STARTED) {
            let says = event.says;
            (
                &says.id,
                &says.pod,
                &says.pod_namespace,
                &says.pod_uid,
                &says.name,
                &says.image,
            )
        } else if let Some(event) = Event::of(record, &CONTAINER_EXITED) {
            let says = event.says;
            (
                &says.id,
                &says.pod,
                &says.pod_namespace,
                &says.pod_uid,
                &says.name,
                &says.image,
            )
        } else {
            return;
        };
        let (id, Some(pod), Some(namespace), Some(uid), name, image) = says else {
            return;
        };
        let id = id
            .clone()
            .unwrap_or_else(|| record.subject.name.to_string());
        let pod = Pod {
            namespace: namespace.clone(),
            name: pod.clone(),
            uid: uid.clone(),
            container: name.as_deref().map(|name| in_pod(name).to_owned()),
            image: image.clone(),
        };
        self.known.retain(|(known, _)| *known != id);
        if self.known.len() >= MAX_CONTAINERS {
            self.known.pop_front();
        }
        self.known.push_back((id, pod));
    }

    /// The pods that a finding is about, newest first.
    pub fn of(&self, finding: &Finding) -> Vec<Pod> {
        let mut pods: Vec<Pod> = Vec::new();
        let subjects = std::iter::once(&finding.subject).chain(&finding.touched);
        for subject in subjects {
            for (id, pod) in self.known.iter().rev() {
                let is_told = pods.iter().any(|told| told.uid == pod.uid);
                if !is_told && pods.len() < MAX_PODS && is_about(subject, id, pod) {
                    pods.push(pod.clone());
                }
            }
        }
        pods
    }
}

fn is_about(subject: &Subject, id: &str, pod: &Pod) -> bool {
    let name = &*subject.name;
    match subject.kind {
        SubjectKind::Container => name == id || name.ends_with(&format!("/{id}")),
        SubjectKind::Image => pod.image.as_deref() == Some(name),
        // systemd's cgroup driver writes the uid with underscores.
        SubjectKind::Cgroup => {
            name.contains(id)
                || name.contains(&pod.uid)
                || name.contains(&pod.uid.replace('-', "_"))
        }
        _ => false,
    }
}

/// The name that a pod has for its container: Docker's is `k8s_app_pod_namespace_uid_0`.
fn in_pod(name: &str) -> &str {
    let docker = name
        .strip_prefix("k8s_")
        .and_then(|rest| rest.split('_').next());
    docker.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sexton_model::fact::container::ContainerStarted;
    use sexton_model::finding::{Confidence, Severity};
    use sexton_model::moment::Moment;
    use sexton_model::record::Sink;

    const UID: &str = "0f1e2d3c-0000-1111-2222-333344445555";

    fn seen(id: &str, pod: &str, uid: &str, image: &str) -> Vec<Record> {
        let now = Moment::from_ns(1);
        let mut out = Sink::new("containers", now);
        let says = ContainerStarted {
            id: Some(id.into()),
            name: Some(format!("k8s_app_{pod}_shop_{uid}_0")),
            image: Some(image.into()),
            pod: Some(pod.into()),
            pod_namespace: Some("shop".into()),
            pod_uid: Some(uid.into()),
            ..ContainerStarted::default()
        };
        let subject = Subject::new(SubjectKind::Container, id);
        out.event(now, &subject, &CONTAINER_STARTED, says);
        out.into_records()
    }

    fn check(subject: Subject, expected: &[&str]) {
        let mut pods = Pods::default();
        let records = [
            seen("aaaa", "crasher", UID, "crash:1"),
            seen("bbbb", "web", "other", "web:1"),
        ];
        records
            .iter()
            .flatten()
            .for_each(|record| pods.take(record));
        let finding = Finding {
            code: "CTR001",
            subject,
            severity: Severity::Serious,
            confidence: Confidence::CERTAIN,
            title: String::new(),
            figure: String::new(),
            since: None,
            evidence: Vec::new(),
            remedies: Vec::new(),
            touched: Vec::new(),
            episodes: Vec::new(),
        };
        let found = pods.of(&finding);
        let names: Vec<&str> = found.iter().map(|pod| pod.name.as_str()).collect();
        assert_eq!(names, expected);
        for pod in found {
            assert_eq!(pod.container.as_deref(), Some("app"));
        }
    }

    #[test]
    fn a_container_an_image_or_a_cgroup_name_the_pod() {
        check(Subject::new(SubjectKind::Container, "aaaa"), &["crasher"]);
        check(Subject::new(SubjectKind::Image, "crash:1"), &["crasher"]);
        check(
            Subject::new(SubjectKind::Cgroup, "/kubepods/pod7/bbbb"),
            &["web"],
        );
        let slice = format!(
            "/kubepods.slice/kubepods-pod{}.slice",
            UID.replace('-', "_")
        );
        check(Subject::new(SubjectKind::Cgroup, slice), &["crasher"]);
        check(Subject::new(SubjectKind::Unit, "aaaa"), &[]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut pods = Pods::default();
        for n in 0..3_000 {
            let records = seen(&n.to_string(), "web", &n.to_string(), "web:1");
            records.iter().for_each(|record| pods.take(record));
        }
        assert_eq!(pods.known.len(), MAX_CONTAINERS);
    }
}
