//! Tells when containers start and end, of which image, and how long they lived.
//!
//! Source: the Docker API of Docker and Podman, containerd's own services, and CRI of
//! CRI-O, each on its own socket: what happened in the last ten minutes as far as it was
//! kept, the list of containers, then events as they come. `sexton-runtimes` follows all
//! daemons on one thread of its own; a poll only takes what it heard, so a stuck daemon
//! stops nothing.
//! A daemon that is not running is not asked: on a socket of systemd, that would start it.
//! Blind to: daemons on other sockets; what a runtime forgets: Docker keeps 256 events,
//! and none over a restart, containerd keeps none at all. There the births of cgroups
//! tell lifetimes, without exit codes.
//! Overhead: `docs/overhead.md#containers`.

pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;
mod tracker;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_model::fact::container as fact;
use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_runtimes::{Daemon, Next, OVERLAP_NS, Pace, Reactor, Runtime, Session, Told, Trouble};

use crate::{Sensor, SensorSpec};
use tracker::{Churn, Now, Tracker};

pub(crate) const NAME: &str = "containers";

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: NAME,
    watches: "containers: starts, exits, lifetimes; births and young ones of each image",
    emits: &[
        &fact::CONTAINER_STARTED.fact,
        &fact::CONTAINER_EXITED.fact,
        &fact::CONTAINER_RUNNING,
        &fact::CONTAINER_YOUNG,
        &fact::CONTAINER_BIRTHS,
    ],
    every: Duration::from_secs(5),
    deadline: Duration::from_secs(2),
    examine: sexton_runtimes::examine,
    open,
};

const PACE: Pace = Pace {
    answer: Duration::from_secs(5),
    tick: Duration::from_secs(1),
    silence: Duration::from_secs(30),
};

/// How far back a daemon is asked at first, so that a loop shows at once. Events of that
/// time are marked, and no sample counts them.
const LOOK_BACK_NS: u64 = 600_000_000_000;

/// How often sockets are looked for, and a gap that lasts is told again.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The pause after a session that failed or could not be; twice that after the next, up
/// to a minute.
const PAUSE: Duration = Duration::from_secs(5);

/// Images that are told of in one poll; more is an attack or an accident, and a gap.
const IMAGES_LIMIT: usize = 64;

/// The sensor.
struct Containers {
    pace: Pace,
    wall_ns: fn() -> u64,
    opened_wall_ns: u64,
    reactor: Reactor,
    places: Vec<Place>,
    /// When sockets are looked for again.
    next_look: Moment,
    /// Images whose last sample was not zero.
    told_images: BTreeSet<String>,
}

/// A socket, and what is known from behind it.
struct Place {
    runtime: &'static Runtime,
    socket: PathBuf,
    tracker: Tracker,
    session: Option<Session>,
    /// Whether this session has told what there is.
    is_listed: bool,
    is_late: bool,
    next_try: Moment,
    pause: Duration,
}

fn open(host: &Host) -> Result<Box<dyn Sensor>, Gap> {
    if !host.is_live() {
        let text = "this is not a running node, so no container runtime can be asked";
        return Err(Gap::new(NAME, Why::Unsupported, text));
    }
    Ok(Box::new(Containers::new(PACE, clock::wall_ns)))
}

impl Sensor for Containers {
    fn poll(&mut self, host: &Host, out: &mut Sink) {
        let now = Now {
            at: out.now(),
            wall_ns: (self.wall_ns)(),
        };
        let is_look = now.at >= self.next_look;
        if is_look {
            self.next_look = now.at.after(LOOK_EVERY);
            self.look(host, out);
        }
        for place in &mut self.places {
            if let Some(since) = place.follow(host, self.opened_wall_ns, now, out) {
                place.begin(&mut self.reactor, self.pace, since, now, out);
            }
            place.drain(self.pace, now, out);
        }
        if self.places.iter().any(|place| place.is_listed) {
            self.tell_samples(now, out);
        } else if is_look && self.places.iter().all(|place| place.session.is_none()) {
            out.gap(&Subject::node(), nobody_answers());
        }
    }
}

impl Containers {
    fn new(pace: Pace, wall_ns: fn() -> u64) -> Self {
        Self {
            pace,
            wall_ns,
            opened_wall_ns: wall_ns(),
            reactor: Reactor::default(),
            places: Vec::new(),
            next_look: Moment::default(),
            told_images: BTreeSet::new(),
        }
    }

    /// Looks for sockets that were not there before.
    fn look(&mut self, host: &Host, out: &mut Sink) {
        for (runtime, socket) in sexton_runtimes::sockets(host) {
            match socket {
                Ok(socket) if self.places.iter().all(|place| place.socket != socket) => {
                    let place = Place::new(runtime, socket, self.opened_wall_ns);
                    self.places.push(place);
                }
                Ok(_) => {}
                Err(error) => {
                    let gap = Gap::new(NAME, error.why(), error.chain());
                    out.gap(&Subject::node(), gap);
                }
            }
        }
    }

    fn tell_samples(&mut self, now: Now, out: &mut Sink) {
        let mut images = BTreeMap::new();
        let mut n_running = 0;
        for place in self.places.iter_mut().filter(|place| place.is_listed) {
            n_running += place.tracker.n_running();
            place.tracker.churn(now, &mut images);
        }
        out.sample(&Subject::node(), &fact::CONTAINER_RUNNING, n_running as f64);
        if images.len() > IMAGES_LIMIT {
            out.gap(&Subject::node(), too_many_images(&mut images));
        }
        // So that a series goes back to zero instead of staying where it was.
        let over: Vec<String> = std::mem::take(&mut self.told_images).into_iter().collect();
        self.told_images = images.keys().cloned().collect();
        for image in over {
            images.entry(image).or_default();
        }
        for (image, churn) in images {
            let subject = Subject::new(SubjectKind::Image, image);
            out.sample(&subject, &fact::CONTAINER_YOUNG, churn.n_young as f64);
            out.sample(&subject, &fact::CONTAINER_BIRTHS, churn.n_births as f64);
        }
    }
}

impl Place {
    fn new(runtime: &'static Runtime, socket: PathBuf, opened_wall_ns: u64) -> Self {
        Self {
            runtime,
            socket,
            tracker: Tracker::new(runtime.name, opened_wall_ns),
            session: None,
            is_listed: false,
            is_late: false,
            next_try: Moment::default(),
            pause: PAUSE,
        }
    }

    /// Since when a new session is to tell, if one is due and there is a daemon to have it with.
    fn follow(&mut self, host: &Host, opened_ns: u64, now: Now, out: &mut Sink) -> Option<u64> {
        if self.session.is_some() || now.at < self.next_try {
            return None;
        }
        match sexton_runtimes::daemon(host, self.runtime) {
            Daemon::Runs => Some(match self.tracker.last_wall_ns() {
                0 => opened_ns.saturating_sub(LOOK_BACK_NS),
                // The clock may have been set back since.
                last => last.min(now.wall_ns).saturating_sub(OVERLAP_NS),
            }),
            Daemon::Rests(why, text) => {
                self.wait(now);
                self.tell_gap(why, &text, out);
                None
            }
        }
    }

    fn begin(&mut self, reactor: &mut Reactor, pace: Pace, since: u64, now: Now, out: &mut Sink) {
        let (speaks, socket) = (self.runtime.speaks, self.socket.clone());
        match Session::begin(reactor, speaks, socket, since, now.wall_ns, pace) {
            Ok(session) => {
                self.session = Some(session);
                self.is_late = false;
            }
            Err(trouble) => self.part(&trouble, now, out),
        }
    }

    /// Takes what the session has told so far, and never waits for more.
    fn drain(&mut self, pace: Pace, now: Now, out: &mut Sink) {
        let Some(mut session) = self.session.take() else {
            return;
        };
        let mut garbled = Vec::new();
        let trouble = loop {
            match session.next() {
                Next::Told(Told::Garbled(why)) => garbled.push(why),
                Next::Told(told) => self.take(told, now, out),
                Next::Nothing => break None,
                Next::Ended(trouble) => break Some(trouble),
            }
        };
        self.tell_losses(session.take_lost(), &garbled, out);
        if self.is_listed {
            self.tracker.settle(now, out);
        }
        match trouble {
            Some(trouble) => self.part(&trouble, now, out),
            None => {
                // Several questions may follow each other, each within its limit.
                let is_late = session.waits() > pace.answer * 2;
                if is_late && !self.is_late {
                    let text = format!("it has owed an answer for {:.1?}", session.waits());
                    self.tell_gap(Why::Overrun, &text, out);
                }
                self.is_late = is_late;
                self.session = Some(session);
            }
        }
    }

    fn take(&mut self, told: Told, now: Now, out: &mut Sink) {
        match told {
            Told::Past(past) => {
                for happening in past {
                    self.tracker.take(happening, now, out);
                }
            }
            Told::Live(happening) => self.tracker.take(*happening, now, out),
            Told::Listed(list) => {
                self.tracker.list(list, now, out);
                self.is_listed = true;
                self.pause = PAUSE;
            }
            Told::Garbled(_) => {}
        }
    }

    fn tell_losses(&self, n_lost: u64, garbled: &[String], out: &mut Sink) {
        if n_lost > 0 {
            let text = format!("{n_lost} events came faster than they could be taken");
            self.tell_gap(Why::Lost(n_lost), &text, out);
        }
        if let Some(first) = garbled.first() {
            let n = garbled.len();
            let text = format!("{n} events make no sense, the first: {first}");
            self.tell_gap(Why::Malformed, &text, out);
        }
    }

    /// Ends the session. What ran is kept: the next one tells what became of it.
    fn part(&mut self, trouble: &Trouble, now: Now, out: &mut Sink) {
        self.is_listed = false;
        self.wait(now);
        self.tell_gap(trouble.why(), &trouble.chain(), out);
    }

    fn wait(&mut self, now: Now) {
        self.next_try = now.at.after(self.pause);
        self.pause = (self.pause * 2).min(LOOK_EVERY);
    }

    fn tell_gap(&self, why: Why, text: &str, out: &mut Sink) {
        let text = format!(
            "{} at {} is not heard: {text}",
            self.runtime.name,
            self.socket.display()
        );
        let is_denied = why == Why::Denied;
        let gap = Gap::new(NAME, why, text);
        out.gap(
            &Subject::node(),
            if is_denied {
                gap.with_remedy(sexton_runtimes::REMEDY)
            } else {
                gap
            },
        );
    }
}

/// Keeps the images with the most births and young ones, and says how many it dropped.
fn too_many_images(images: &mut BTreeMap<String, Churn>) -> Gap {
    let mut all: Vec<(String, Churn)> = std::mem::take(images).into_iter().collect();
    all.sort_by_key(|(_, churn)| std::cmp::Reverse((churn.n_births, churn.n_young)));
    let n = (all.len() - IMAGES_LIMIT) as u64;
    all.truncate(IMAGES_LIMIT);
    images.extend(all);
    let text = format!("{n} images with fewer births than {IMAGES_LIMIT} others are not told");
    Gap::new(NAME, Why::Lost(n), text)
}

fn nobody_answers() -> Gap {
    let text = "no container runtime answers here (Docker, Podman, containerd and CRI-O are asked); lifetimes come \
                from births of cgroups alone, by the `cgroups` sensor, without exit codes";
    Gap::new(NAME, Why::Unsupported, text)
}
