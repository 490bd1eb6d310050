//! Asks the privileged helper to act on open findings, where the configuration allows it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sexton_agent::{ActStatus, Agent, Judged, OnVerdict};
use sexton_host::clock;
use sexton_model::subject::Subject;
use sexton_remedy::request::{self, Answer, Outcome, Request};

use super::config::remedy::RemedyConfig;

/// How long the helper may take besides watching, and waiting for another fix that watches:
/// stopping a unit takes up to two minutes.
const LONGEST_ACT: Duration = Duration::from_secs(600);

/// When it is asked again after it could not act; twice as long each time, up to the least time
/// between two acts: each time it watches the node with every sensor.
const AGAIN: Duration = Duration::from_secs(300);

/// Between two requests: the helper of the one before has ended, and twelve start in a minute.
const BETWEEN: Duration = Duration::from_secs(5);

/// The thread that asks holds little.
const STACK_BYTES: usize = 256 << 10;

/// What came of a request.
type Came = (Subject, Request, Answer);

/// Joins the agent's verdicts and the helper.
pub struct Remedy {
    desk: Arc<Desk>,
    came: Receiver<Came>,
}

/// What the agent's loop and the thread that asks share.
struct Desk {
    config: Mutex<RemedyConfig>,
    /// When a finding may be asked for again.
    due: Mutex<BTreeMap<Request, Due>>,
    is_busy: AtomicBool,
    sender: Mutex<Sender<Came>>,
}

/// When a finding may be asked for again.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Instant,
    /// Requests in a row that came to nothing.
    n_vain: u32,
}

impl Due {
    /// After an answer, and what was known before it.
    fn after(outcome: Outcome, before: Option<Self>, every: Duration, now: Instant) -> Self {
        // One that was not asked for again for long is another matter.
        let before = before.filter(|before| now < before.at + every);
        let (pause, n_vain) = match outcome {
            Outcome::Done | Outcome::Planned => (every, 0),
            _ => {
                let n_vain = before.map_or(0, |before| before.n_vain);
                let pause = AGAIN.saturating_mul(1 << n_vain.min(10)).min(every);
                (pause, n_vain + 1)
            }
        };
        let at = now + pause;
        Self { at, n_vain }
    }
}

impl Remedy {
    /// Nothing is asked yet, and no thread runs.
    pub fn new(config: &RemedyConfig) -> Self {
        let (sender, came) = mpsc::channel();
        let desk = Desk {
            config: Mutex::new(config.clone()),
            due: Mutex::default(),
            is_busy: AtomicBool::new(false),
            sender: Mutex::new(sender),
        };
        Self {
            desk: Arc::new(desk),
            came,
        }
    }

    /// Other orders; what was asked for under the old ones may be asked for again.
    pub fn reload(&self, config: &RemedyConfig) {
        let mut old = lock(&self.desk.config);
        if *old != *config {
            old.clone_from(config);
            lock(&self.desk.due).clear();
        }
    }

    /// What the agent hands its verdicts to.
    pub fn on_verdict(&self) -> OnVerdict {
        let desk = Arc::clone(&self.desk);
        Box::new(move |judged| desk.take(judged))
    }

    /// Notes what came of requests.
    pub fn tell(&self, agent: &mut Agent) {
        while let Ok((subject, request, answer)) = self.came.try_recv() {
            let act = ActStatus {
                wall_ns: clock::wall_ns(),
                code: request.code,
                origin: request.origin,
                outcome: answer.outcome.name().to_owned(),
                acts: answer.acts,
                text: answer.text,
                undo_file: answer.undo_file,
            };
            agent.note_act(&subject, act);
        }
    }
}

impl Desk {
    fn take(self: &Arc<Self>, judged: &Judged<'_>) {
        let open = judged.lives.open().map(|life| &life.finding);
        let open = open.map(|finding| (finding.subject.clone(), finding.code));
        let wanted = self.wanted(open, Instant::now());
        if wanted.is_empty() || self.is_busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let desk = Arc::clone(self);
        let named = thread::Builder::new().name("remedy".into());
        let started = named
            .stack_size(STACK_BYTES)
            .spawn(move || desk.ask_all(wanted));
        if started.is_err() {
            self.is_busy.store(false, Ordering::Release);
        }
    }

    /// The open findings that may be acted on and are due.
    fn wanted(
        &self,
        open: impl Iterator<Item = (Subject, &'static str)>,
        now: Instant,
    ) -> Vec<(Subject, Request)> {
        let config = lock(&self.config);
        let due = lock(&self.due);
        let requests = open.filter_map(|(subject, code)| {
            let request = Request {
                code: code.to_owned(),
                origin: subject.name.to_string(),
            };
            config.orders.of(&request.code, &request.origin)?;
            let is_due = due.get(&request).is_none_or(|due| due.at <= now);
            is_due.then_some((subject, request))
        });
        requests.collect()
    }

    fn ask_all(&self, wanted: Vec<(Subject, Request)>) {
        for (n, (subject, request)) in wanted.into_iter().enumerate() {
            // The helper serves one at a time, and systemd stops a socket that starts it too often.
            if n > 0 {
                thread::sleep(BETWEEN);
            }
            let (socket, within, every) = {
                let config = lock(&self.config);
                let within = config.watch * 2 + LONGEST_ACT;
                (config.socket.clone(), within, config.orders.every)
            };
            let asked = request::ask(&socket, &request, within);
            let answer = asked.unwrap_or_else(|error| {
                let text = format!(
                    "cannot ask the helper at {}: {error}; systemctl enable --now \
                     sexton-remedy.socket",
                    socket.display()
                );
                Answer::without_act(Outcome::Failed, text)
            });
            {
                let mut due = lock(&self.due);
                let before = due.get(&request).copied();
                let next = Due::after(answer.outcome, before, every, Instant::now());
                due.insert(request.clone(), next);
            }
            // The agent that would hear it is about to end.
            let _ = lock(&self.sender).send((subject, request, answer));
        }
        self.is_busy.store(false, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use sexton_model::fix::Act;
    use sexton_model::subject::SubjectKind;
    use sexton_remedy::orders::{Allow, Orders};

    use super::*;

    fn config(enabled: bool) -> RemedyConfig {
        let allow = Allow {
            code: "UNIT001".into(),
            origin: "a.service".into(),
            act: Act::Stop,
        };
        RemedyConfig {
            orders: Orders {
                enabled,
                allow: vec![allow],
                ..Orders::default()
            },
            socket: "/nowhere/remedy.sock".into(),
            ..RemedyConfig::default()
        }
    }

    fn open() -> Vec<(Subject, &'static str)> {
        let unit = |name: &str| Subject::new(SubjectKind::Unit, name);
        vec![
            (unit("a.service"), "UNIT001"),
            (unit("a.service"), "UNIT003"),
            (unit("b.service"), "UNIT001"),
        ]
    }

    #[test]
    fn only_what_is_named_is_asked_for_and_not_all_the_time() {
        let remedy = Remedy::new(&config(false));
        let now = Instant::now();
        let wanted = |now| remedy.desk.wanted(open().into_iter(), now);
        assert_eq!(wanted(now), [], "it is off");
        remedy.reload(&config(true));
        let first = wanted(now);
        assert_eq!(first.len(), 1);
        assert_eq!(first[0].1.origin, "a.service");
        remedy.desk.ask_all(first);
        let (_, request, answer) = remedy.came.try_recv().expect("an answer");
        assert_eq!(request.code, "UNIT001");
        assert_eq!(answer.outcome, Outcome::Failed);
        assert!(
            answer.text.contains("sexton-remedy.socket"),
            "{}",
            answer.text
        );
        assert_eq!(wanted(Instant::now()), [], "it was just asked for");
        assert_eq!(wanted(Instant::now() + AGAIN).len(), 1);
        let mut other = config(true);
        other.orders.dry_run = false;
        remedy.reload(&other);
        assert_eq!(wanted(Instant::now()).len(), 1, "the orders have changed");
    }

    #[test]
    fn what_comes_to_nothing_is_asked_for_ever_less_often() {
        let every = Duration::from_secs(3600);
        let began = Instant::now();
        let mut due = None;
        let mut ask = |outcome, now| {
            let next = Due::after(outcome, due, every, now);
            due = Some(next);
            (next.at - now).as_secs()
        };
        let mut now = began;
        let mut pauses = Vec::new();
        for _ in 0..6 {
            let pause = ask(Outcome::Unconfirmed, now);
            pauses.push(pause);
            now += Duration::from_secs(pause);
        }
        assert_eq!(pauses, [300, 600, 1200, 2400, 3600, 3600]);
        now += every;
        assert_eq!(ask(Outcome::Unconfirmed, now), 300, "long after");
        assert_eq!(ask(Outcome::Done, now), 3600);
        assert_eq!(ask(Outcome::Failed, now), 300);
    }
}
