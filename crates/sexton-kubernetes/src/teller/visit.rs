//! What the thread does: wait for something to tell, tell it, and wait longer after each failure.
//! Conditions and events wait apart: an event that is refused holds up no condition, and, as it
//! is dropped, no other event.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::{Desk, Log, Settings, wall_ns};
use crate::cleanup::path;
use crate::client::{Client, MERGE, STRATEGIC_MERGE};
use crate::conditions::Board;
use crate::error::KubernetesError;
use crate::events::Events;
use crate::pods;
use crate::text::stable_hash;

/// Requests of one visit at most; the rest follows at the next.
const MAX_REQUESTS: usize = 16;

/// The step of the doubling wait that is no longer doubled.
const MAX_DOUBLINGS: u32 = 16;

/// How often a request that is under way looks whether the end has come.
const STOP_EVERY: Duration = Duration::from_millis(200);

pub(super) struct Visitor {
    client: Client,
    settings: Settings,
    desk: Arc<Desk>,
    log: Log,
    board: Board,
    events: Events,
    /// Whether our conditions on the API server are known, and those without an owner among them.
    is_resumed: bool,
    orphans: Vec<String>,
    /// Where events of a node go.
    of_node: &'static str,
    told: Option<Instant>,
    of_conditions: Patience,
    of_events: Patience,
    n_requests: u64,
    n_failed: u64,
}

/// How long one kind of thing waits, and why.
#[derive(Default)]
struct Patience {
    n_failures: u32,
    wait_until: Option<Instant>,
    trouble: Option<String>,
}

impl Patience {
    fn is_over(&self) -> bool {
        self.wait_until.is_none_or(|until| until <= Instant::now())
    }

    /// Waits after a failure; whether its trouble is another one than before.
    fn begins(&mut self, wait: Duration, trouble: &str) -> bool {
        self.n_failures = (self.n_failures + 1).min(MAX_DOUBLINGS);
        self.wait_until = Some(Instant::now() + wait);
        let is_new = self.trouble.as_deref() != Some(trouble);
        self.trouble = Some(trouble.to_owned());
        is_new
    }

    /// Not before the wait is over.
    fn after(&self, wanted: Instant) -> Instant {
        self.wait_until.map_or(wanted, |until| wanted.max(until))
    }
}

/// What became of an event.
enum Told {
    /// None is due.
    Nothing,
    /// The API server has it.
    Event,
    /// The API server will never take it.
    Refused(KubernetesError),
}

impl Visitor {
    pub(super) fn new(settings: Settings, desk: Arc<Desk>, log: Log) -> Self {
        Self {
            client: Client::new(settings.access.clone(), settings.version),
            board: Board::new(settings.pace.hold, &settings.runbooks, wall_ns()),
            events: Events::default(),
            settings,
            desk,
            log,
            is_resumed: false,
            orphans: Vec::new(),
            of_node: "default",
            told: None,
            of_conditions: Patience::default(),
            of_events: Patience::default(),
            n_requests: 0,
            n_failed: 0,
        }
    }

    pub(super) async fn work(mut self) {
        let desk = Arc::clone(&self.desk);
        loop {
            if !self.take() {
                return;
            }
            let due = self.due();
            if due <= Instant::now() {
                // A stop does not wait for a slow server.
                if unless_stopped(&desk, self.visit()).await.is_none() {
                    return;
                }
                self.publish();
                continue;
            }
            // Whether it was the bell or the time: it is looked at again.
            let _ = timeout_at(due, desk.bell.notified()).await;
        }
    }

    /// Takes what lies there; false when the end has come.
    fn take(&mut self) -> bool {
        let mut inbox = self.desk.lock();
        let (verdict, turns) = (inbox.verdict.take(), std::mem::take(&mut inbox.turns));
        let is_stopped = inbox.is_stopped;
        drop(inbox);
        for turn in &turns {
            self.events.take(turn, &self.settings.node);
        }
        if let Some(verdict) = verdict {
            // A verdict counts only once it is known what was told before.
            match self.is_resumed {
                true => self.board.take(&verdict),
                false => self.keep_for_later(verdict),
            }
        }
        !is_stopped
    }

    /// Puts a verdict back, unless a newer one came.
    fn keep_for_later(&mut self, verdict: crate::verdict::Verdict) {
        let mut inbox = self.desk.lock();
        inbox.verdict.get_or_insert(verdict);
    }

    /// When the next visit is due.
    fn due(&mut self) -> Instant {
        let now = Instant::now();
        let pace = self.settings.pace;
        let wanted = match self.told {
            None => now,
            Some(told) if self.board.is_changed() => told + pace.least_between,
            Some(told) => told + pace.heartbeat,
        };
        let wall = wall_ns();
        let event = match (self.events.due(wall).is_some(), self.events.next_ns()) {
            (true, _) => Some(now),
            (false, Some(next)) => Some(now + Duration::from_nanos(next.saturating_sub(wall))),
            (false, None) => None,
        };
        // While conditions wait, the API server is away or wants to be left alone.
        let event = event.map(|event| self.of_events.after(event));
        let wanted = event.map_or(wanted, |event| wanted.min(event));
        self.of_conditions.after(wanted)
    }

    async fn visit(&mut self) {
        let told = self.tell_conditions().await;
        let is_well = told.is_ok();
        self.note_conditions(told);
        if is_well && self.of_events.is_over() {
            self.tell_events().await;
        }
    }

    async fn tell_conditions(&mut self) -> Result<(), KubernetesError> {
        let node = path(&self.settings.node);
        if !self.is_resumed {
            self.n_requests += 1;
            let known = self.client.get(&node).await?;
            self.orphans = self.board.resume(&known);
            self.is_resumed = true;
        }
        self.take();
        let pace = self.settings.pace;
        let is_due = |told: Instant| {
            let rested = told.elapsed();
            rested >= pace.heartbeat || self.board.is_changed() && rested >= pace.least_between
        };
        if self.told.is_none_or(is_due) {
            let patch = self.board.patch(wall_ns(), &self.orphans);
            self.n_requests += 1;
            self.client
                .patch(&format!("{node}/status"), STRATEGIC_MERGE, &patch)
                .await?;
            self.board.told();
            self.orphans.clear();
            self.told = Some(Instant::now());
        }
        Ok(())
    }

    /// Tells events that are due, until one fails.
    async fn tell_events(&mut self) {
        for _ in 0..MAX_REQUESTS {
            let (error, is_dropped) = match self.tell_event().await {
                Ok(Told::Nothing) => return,
                Ok(Told::Event) => {
                    self.events_go_well();
                    continue;
                }
                Ok(Told::Refused(error)) => (error, true),
                Err(error) => (error, false),
            };
            return self.note_event(&error, is_dropped);
        }
    }

    /// Tells one event, if one is due. One that the API server will never take is dropped.
    async fn tell_event(&mut self) -> Result<Told, KubernetesError> {
        let now = wall_ns();
        if self.events.due(now).is_none() {
            return Ok(Told::Nothing);
        }
        match self.send_event(now).await {
            Err(error) if is_final(&error) => {
                if let Some(event) = self.events.due(now) {
                    event.is_refused(now);
                    self.events.n_untold += 1;
                }
                Ok(Told::Refused(error))
            }
            sent => sent.map(|()| Told::Event),
        }
    }

    async fn send_event(&mut self, now: u64) -> Result<(), KubernetesError> {
        let client = self.client.clone();
        let Some(event) = self.events.due(now) else {
            return Ok(());
        };
        let list = format!(
            "/apis/events.k8s.io/v1/namespaces/{}/events",
            event.namespace(self.of_node)
        );
        let one = format!("{list}/{}", event.name);
        if event.is_created {
            self.n_requests += 1;
            match client.patch(&one, MERGE, &event.series()).await {
                Err(error) if error.status() == Some(404) => event.is_lost(),
                done => done.map(|_| event.told(now))?,
            }
            return Ok(());
        }
        let about = match &event.pod {
            Some(pod) => {
                self.n_requests += 1;
                let place = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
                // A pod that is gone, or may not be read, is named by what the runtime said.
                let known = client.get(&place).await.ok();
                let known = known.filter(|it| it["metadata"]["uid"].as_str() == Some(&pod.uid));
                pods::describe(pod, known.as_ref())
            }
            None => String::new(),
        };
        self.n_requests += 1;
        let body = event.body(&self.settings.node, self.of_node, &about);
        match client.post(&list, &body).await {
            // An agent before this one told it: this is a repeat.
            Err(error) if error.status() == Some(409) => {
                self.n_requests += 1;
                let there = client.get(&one).await?;
                event.was_there(count_of(&there));
            }
            // Older API servers (1.20) want a node's events there.
            Err(error)
                if error.status() == Some(422)
                    && event.pod.is_none()
                    && self.of_node == "default" =>
            {
                self.of_node = "kube-system";
            }
            // The namespace is going away, and its pods with it.
            Err(error) if error.status() == Some(404) => event.told(now),
            Err(error) if is_of_namespace_that_ends(&error) => event.told(now),
            done => done.map(|_| event.told(now))?,
        }
        Ok(())
    }

    /// After a success all is as before; after a failure the next visit waits.
    fn note_conditions(&mut self, result: Result<(), KubernetesError>) {
        let Err(error) = result else {
            let server = self.settings.access.server();
            if std::mem::take(&mut self.of_conditions).trouble.is_some() {
                let text = format!("kubernetes: the API server {server} is reached again");
                (self.log)(false, &text);
            }
            return;
        };
        self.n_failed += 1;
        let wait = self.wait_after(&error, self.of_conditions.n_failures);
        let text = format!("{}{}", error.chain(), remedy(&error));
        // One line for each kind of trouble, not for each try.
        if self.of_conditions.begins(wait, &text) {
            let line = format!("kubernetes: {text}; conditions wait");
            (self.log)(true, &line);
        }
    }

    fn note_event(&mut self, error: &KubernetesError, is_dropped: bool) {
        self.n_failed += 1;
        let wait = self.wait_after(error, self.of_events.n_failures);
        let what = match is_dropped {
            true => "this event is dropped, the next ones wait",
            false => "events wait",
        };
        let text = format!("{}{}; {what}", error.chain(), remedy(error));
        if self.of_events.begins(wait, &text) {
            let line = format!("kubernetes: {text}; conditions go on");
            (self.log)(true, &line);
        }
    }

    fn events_go_well(&mut self) {
        if std::mem::take(&mut self.of_events).trouble.is_some() {
            (self.log)(false, "kubernetes: events are taken again");
        }
    }

    /// How long to wait: as the API server says, or twice as long as before. Nodes differ by up
    /// to a quarter, so that they do not come back together.
    fn wait_after(&self, error: &KubernetesError, n_failures: u32) -> Duration {
        let pace = self.settings.pace;
        let doubled = pace
            .first_wait
            .saturating_mul(1 << n_failures.min(MAX_DOUBLINGS));
        let wait = doubled.min(pace.longest_wait);
        let wait = wait.max(error.retry_after().unwrap_or_default());
        let quarter = stable_hash(&format!("{}{}", self.settings.node, self.n_requests)) % 256;
        wait + wait.mul_f64(quarter as f64 / 1_024.0)
    }

    fn publish(&self) {
        let mut inbox = self.desk.lock();
        inbox.stats.n_requests = self.n_requests;
        inbox.stats.n_failed = self.n_failed;
        inbox.stats.n_dropped = self.events.n_untold;
        // An event that was dropped is no trouble any more once the next may be told.
        let of_events = self.of_events.trouble.as_ref();
        let of_events = of_events.filter(|_| !self.of_events.is_over());
        let trouble = self.of_conditions.trouble.as_ref().or(of_events);
        inbox.stats.trouble = trouble.cloned();
    }
}

/// What to do about it, where that is known.
fn remedy(error: &KubernetesError) -> &'static str {
    match error.status() {
        Some(401) => "; the token is refused: it is read again at each try",
        Some(403) => "; apply deploy/kubernetes/base/rbac.yaml",
        Some(404) => "; check [kubernetes] node",
        _ => "",
    }
}

/// How often an event happened, as the API server has it.
fn count_of(event: &Value) -> u64 {
    event["series"]["count"].as_u64().unwrap_or(1)
}

/// Whether the same request can only be refused again: it is wrong (400, 422), or not allowed
/// (403). A token that is refused is read anew, and what comes too often, too early or at the
/// same time as another's is tried again.
fn is_final(error: &KubernetesError) -> bool {
    let is_refusal = |status| (400..500).contains(&status);
    let is_passing = |status| matches!(status, 401 | 408 | 409 | 425 | 429);
    error
        .status()
        .is_some_and(|status| is_refusal(status) && !is_passing(status))
}

fn is_of_namespace_that_ends(error: &KubernetesError) -> bool {
    let said = error.to_string();
    error.status() == Some(403) && said.contains("because it is being terminated")
}

/// What comes of this work, or nothing if the end comes first.
async fn unless_stopped<T>(desk: &Desk, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    loop {
        match timeout(STOP_EVERY, work.as_mut()).await {
            Ok(done) => return Some(done),
            Err(_) if desk.lock().is_stopped => return None,
            Err(_) => {}
        }
    }
}
