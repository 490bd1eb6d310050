//! Events of the node and of pods: one for each finding, repeats counted as a series. Pure.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use sexton_model::finding::Severity;

use crate::conditions::kind;
use crate::text::{MAX_NOTE_BYTES, cut, micros, stable_hash};
use crate::verdict::{Pod, Turn};

/// Events that are remembered; those of the API server are gone after an hour, too.
const MAX_KNOWN: usize = 128;

/// Pods that one finding makes events for.
const MAX_PODS: usize = 4;

/// A series is told at most this often.
const SERIES_EVERY: Duration = Duration::from_secs(360);

/// The longest name of a namespace, and of a pod.
const MAX_LABEL_BYTES: usize = 63;
const MAX_POD_BYTES: usize = 253;

/// What the API server calls a name of an instance, at most.
const MAX_NAME_BYTES: usize = 128;

/// One event, and how often it happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) pod: Option<Pod>,
    reason: String,
    note: String,
    is_warning: bool,
    first_ns: u64,
    last_ns: u64,
    count: u64,
    told_count: u64,
    told_ns: u64,
    /// Whether the API server has it.
    pub(crate) is_created: bool,
}

impl Event {
    /// The namespace it belongs to: that of its pod, or the one where a node's are.
    pub(crate) fn namespace<'a>(&'a self, of_node: &'a str) -> &'a str {
        self.pod.as_ref().map_or(of_node, |pod| &pod.namespace)
    }

    /// The whole of it, to be created. What is known of its pod beyond the runtime goes into
    /// the note.
    pub(crate) fn body(&self, node: &str, of_node: &str, about_pod: &str) -> Value {
        let regarding = match &self.pod {
            Some(pod) => json!({
                "apiVersion": "v1", "kind": "Pod",
                "namespace": pod.namespace, "name": pod.name, "uid": pod.uid,
            }),
            // kubectl describe node asks for the events of this uid, as the kubelet writes them.
            None => json!({ "apiVersion": "v1", "kind": "Node", "name": node, "uid": node }),
        };
        let mut note = self.note.clone();
        if !about_pod.is_empty() {
            note = format!("{about_pod}: {note}");
        }
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "name": self.name, "namespace": self.namespace(of_node) },
            "eventTime": micros(self.first_ns),
            "reportingController": "sexton",
            "reportingInstance": cut(node, MAX_NAME_BYTES),
            "action": "Diagnose",
            "reason": self.reason,
            "regarding": regarding,
            "note": cut(&note, MAX_NOTE_BYTES),
            "type": if self.is_warning { "Warning" } else { "Normal" },
        })
    }

    /// The repeats, to be patched.
    pub(crate) fn series(&self) -> Value {
        json!({ "series": {
            "count": self.count.max(2),
            "lastObservedTime": micros(self.last_ns),
        }})
    }

    /// The API server had it already, from an earlier agent, with this many repeats.
    pub(crate) fn was_there(&mut self, count: u64) {
        self.is_created = true;
        self.count += count.max(1);
    }

    pub(crate) fn told(&mut self, now_ns: u64) {
        (self.is_created, self.told_count, self.told_ns) = (true, self.count, now_ns);
    }

    /// The API server does not take it. If it happens again, it is tried again as a series is.
    pub(crate) fn is_refused(&mut self, now_ns: u64) {
        (self.told_count, self.told_ns) = (self.count, now_ns);
    }

    /// The API server has forgotten it.
    pub(crate) fn is_lost(&mut self) {
        (self.is_created, self.count, self.first_ns) = (false, 1, self.last_ns);
        // The name stays: it says which finding this is.
        self.told_count = 0;
    }

    fn is_due(&self, now_ns: u64) -> bool {
        let rested = Duration::from_nanos(now_ns.saturating_sub(self.told_ns));
        self.count > self.told_count && (self.told_count == 0 || rested >= SERIES_EVERY)
    }
}

/// All events that are remembered, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Events {
    known: VecDeque<Event>,
    /// Those that were dropped before they could be told, and those that were refused.
    pub(crate) n_untold: u64,
}

impl Events {
    /// Takes what happened to a finding.
    pub(crate) fn take(&mut self, turn: &Turn, node: &str) {
        self.note(turn, node, None);
        for pod in turn.problem.pods.iter().take(MAX_PODS) {
            match is_name(&pod.namespace, MAX_LABEL_BYTES) && is_name(&pod.name, MAX_POD_BYTES) {
                true => self.note(turn, node, Some(pod.clone())),
                // A container runtime repeats what any container says of itself; an API server
                // has no such pod, and in an address it could be another place.
                false => self.n_untold += 1,
            }
        }
    }

    /// The next one to send to the API server.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<&mut Event> {
        self.known.iter_mut().find(|event| event.is_due(now_ns))
    }

    /// When the next is due that is not due yet.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        let every = u64::try_from(SERIES_EVERY.as_nanos()).unwrap_or(u64::MAX);
        let untold = self.known.iter().filter(|it| it.count > it.told_count);
        untold.map(|it| it.told_ns.saturating_add(every)).min()
    }

    fn note(&mut self, turn: &Turn, node: &str, pod: Option<Pod>) {
        let problem = &turn.problem;
        let about = pod.as_ref().map_or(node, |pod| &pod.uid);
        let key = format!("{node} {about} {} {}", problem.id, turn.is_over);
        let name = format!("sexton-{:016x}", stable_hash(&key));
        let known = self.known.iter_mut().find(|event| event.name == name);
        if let Some(event) = known {
            event.count += 1;
            event.last_ns = turn.wall_ns;
            return;
        }
        let condition = kind(problem.family);
        let event = Event {
            name,
            pod,
            reason: match turn.is_over {
                true => format!("{condition}Resolved"),
                false => condition,
            },
            note: match turn.is_over {
                true => format!("resolved: {} ({})", problem.title, problem.id),
                false => format!("{} ({})", with_root(turn), problem.id),
            },
            is_warning: !turn.is_over && problem.severity > Severity::Note,
            first_ns: turn.wall_ns,
            last_ns: turn.wall_ns,
            count: 1,
            told_count: 0,
            told_ns: 0,
            is_created: false,
        };
        if self.known.len() >= MAX_KNOWN {
            self.forget_one();
        }
        self.known.push_back(event);
    }

    /// Forgets the oldest that was told; if none was, the oldest.
    fn forget_one(&mut self) {
        let told = self.known.iter().position(|it| it.count == it.told_count);
        if told.is_none() {
            self.n_untold += 1;
        }
        self.known.remove(told.unwrap_or(0));
    }
}

/// Whether it can be the name of a thing of the API server (RFC 1123): letters, digits and, in
/// between, hyphens; and dots between such names, if it may be longer than one.
fn is_name(name: &str, max_bytes: usize) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let (first, last) = (label.bytes().next(), label.bytes().last());
        first.is_some_and(is_plain)
            && last.is_some_and(is_plain)
            && label.bytes().all(|byte| is_plain(byte) || byte == b'-')
    };
    let mut labels = name.split('.');
    let n_labels = labels.clone().count();
    name.len() <= max_bytes
        && (n_labels == 1 || max_bytes > MAX_LABEL_BYTES)
        && labels.all(is_label)
}

fn with_root(turn: &Turn) -> String {
    let problem = &turn.problem;
    match &problem.root {
        Some(root) => format!("{}; root cause: {root}", problem.title),
        None => problem.title.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Problem;
    use sexton_model::family::Family;

    fn turn(second: u64, id: &str, pods: Vec<Pod>) -> Turn {
        Turn {
            problem: Problem {
                id: id.into(),
                code: "CTR001",
                family: Family::ContainerChurn,
                severity: Severity::Serious,
                title: "app of pod default/crasher exits after 1 s, again and again".into(),
                root: None,
                pods,
            },
            is_over: false,
            wall_ns: second * 1_000_000_000,
        }
    }

    fn crasher() -> Pod {
        Pod {
            namespace: "shop".into(),
            name: "crasher".into(),
            uid: "1-2-3".into(),
            ..Pod::default()
        }
    }

    #[test]
    fn node_and_pod_have_one_each_and_repeats_are_a_series() {
        let mut events = Events::default();
        for second in [1_000, 1_001, 1_002] {
            events.take(&turn(second, "CTR001:app", vec![crasher()]), "node-1");
        }
        let mut created = Vec::new();
        while let Some(event) = events.due(1_002_000_000_000) {
            created.push(event.body("node-1", "default", ""));
            event.told(1_002_000_000_000);
        }
        assert_eq!(created.len(), 2);
        assert_eq!(created[0]["metadata"]["namespace"], "default");
        assert_eq!(created[0]["regarding"]["uid"], "node-1");
        assert_eq!(created[1]["metadata"]["namespace"], "shop");
        assert_eq!(created[1]["regarding"]["name"], "crasher");
        assert_eq!(created[1]["reason"], "SextonContainerChurn");
        assert!(events.due(1_003_000_000_000).is_none());
        events.take(&turn(1_004, "CTR001:app", Vec::new()), "node-1");
        assert!(events.due(1_005_000_000_000).is_none(), "a series waits");
        let event = events.due(1_400_000_000_000).expect("it is due");
        assert_eq!(event.series()["series"]["count"], 4);
        assert_eq!(event.namespace("default"), "default");
    }

    #[test]
    fn names_stay_the_same_over_a_restart() {
        let name = || {
            let mut events = Events::default();
            events.take(&turn(7, "CTR001:app", Vec::new()), "node-1");
            events.due(8_000_000_000).map(|event| event.name.clone())
        };
        assert_eq!(name(), name());
    }

    #[test]
    fn a_pod_that_no_api_server_can_have_makes_no_event() {
        for (namespace, name, is_told) in [
            ("shop", "crasher", true),
            ("a1", "web-5d9-x.example.0", true),
            ("a b", "crasher", false),
            ("shop/pods/other", "crasher", false),
            ("shop", "../../nodes/node-2", false),
            ("shop", "..", false),
            ("shop", "crasher?fieldManager=x", false),
            ("Shop", "crasher", false),
            ("shop.two", "crasher", false),
            ("-shop", "crasher", false),
            ("", "crasher", false),
            ("shop", "", false),
            ("shop", &"x".repeat(254), false),
        ] {
            let pod = Pod {
                namespace: namespace.into(),
                name: name.into(),
                ..crasher()
            };
            let mut events = Events::default();
            events.take(&turn(7, "CTR001:app", vec![pod]), "node-1");
            let n_of_pods = events.known.iter().filter(|it| it.pod.is_some()).count();
            assert_eq!(n_of_pods, usize::from(is_told), "{namespace}/{name}");
            assert_eq!(events.n_untold, u64::from(!is_told), "{namespace}/{name}");
        }
    }

    #[test]
    fn a_storm_of_findings_is_bounded() {
        let mut events = Events::default();
        for n in 0..10_000 {
            events.take(&turn(n, &format!("CTR001:{n}"), Vec::new()), "node-1");
        }
        assert_eq!(events.known.len(), MAX_KNOWN);
        assert_eq!(events.n_untold, 10_000 - MAX_KNOWN as u64);
    }

    #[test]
    fn a_note_fits() {
        let mut long = turn(1, "CTR001:app", vec![crasher()]);
        long.problem.title = "é".repeat(2_000);
        let mut events = Events::default();
        events.take(&long, "node-1");
        let body = events
            .due(2_000_000_000)
            .expect("it is due")
            .body("node-1", "default", "x");
        assert!(
            body["note"]
                .as_str()
                .is_some_and(|note| note.len() <= 1_024)
        );
    }
}
