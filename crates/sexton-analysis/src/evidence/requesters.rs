//! Who is behind births of cgroups and containers, whoever did the forking.
//!
//! Several signs lead there, and each says how strong it is: the path of the cgroup; the
//! process inside a scope that systemd made; the ancestry of the creator; the program that
//! asked for a container and ended with it, or was at work each time; the image and the name
//! of a container; starts of a unit, or what it writes to the journal, in step with the births. Daemons that do what
//! they are asked are named only when nobody else can be.

mod clients;
mod instances;
mod paths;
mod process;
mod steps;
mod ways;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sexton_model::fact::unit as fact;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::container_runs::ContainerRun;
use crate::evidence::creations::{Creation, Creations};
use crate::evidence::known;
use crate::words::unit_name;

use clients::Clients;
pub(crate) use paths::is_start_of_unit;
use paths::{is_below, pod_of};
use steps::{Step, Steps};
pub(crate) use ways::{Sign, Way, confidence};

/// Births that lead to one subject.
#[derive(Debug)]
pub(crate) struct Requested<'a> {
    pub(crate) subject: Subject,
    pub(crate) signs: BTreeSet<Sign>,
    pub(crate) creations: Vec<Creation<'a>>,
    /// Of the creations that are containers.
    pub(crate) images: BTreeSet<&'a str>,
    /// How many of each pattern.
    n_by_pattern: BTreeMap<String, u64>,
}

impl Requested<'_> {
    /// How many were born.
    pub(crate) fn n(&self) -> u64 {
        self.creations.iter().map(|creation| creation.n).sum()
    }

    /// Patterns of their paths, and how many there are of each.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (&str, u64)> {
        let patterns = self.n_by_pattern.iter();
        patterns.map(|(pattern, n)| (pattern.as_str(), *n))
    }

    /// Whether some are of this pattern.
    pub(crate) fn has(&self, pattern: &str) -> bool {
        self.n_by_pattern.contains_key(pattern)
    }
}

/// Who is behind something, and what leads there.
type Found = (Subject, Vec<Sign>);

/// What is known of the node to tell requesters by.
#[derive(Debug)]
pub(crate) struct Requesters<'a> {
    lives: Vec<ContainerRun<'a>>,
    /// Where the last run of each container is among them, by its id.
    last_of_id: BTreeMap<&'a str, usize>,
    clients: Clients<'a>,
    images: HashMap<String, &'a str>,
    /// Units there are, and the state they were seen in; `None` when no systemd was heard.
    units: Option<BTreeMap<&'a str, &'a str>>,
    steps: Steps<'a>,
    /// Whether all were heard who could tell who asked a daemon. Otherwise it is not accused:
    /// that nobody can be named is then our blindness.
    may_accuse_daemons: bool,
}

impl<'a> Requesters<'a> {
    pub(crate) fn new(case: &Case<'a>) -> Self {
        let mut units: BTreeMap<&'a str, &'a str> = BTreeMap::new();
        for event in case.events(&fact::UNIT_SEEN) {
            let state = event.says.active.as_deref().unwrap_or_default();
            units.insert(&event.subject.name, state);
        }
        for record in case.of(&fact::UNIT_STARTED) {
            units.insert(&record.subject.name, "active");
        }
        let images = case.origins().iter();
        let lives = case.container_runs().values().flatten();
        let lives: Vec<ContainerRun<'a>> = lives.cloned().collect();
        Self {
            clients: Clients::of(case, &lives),
            last_of_id: last_of_id(&lives),
            lives,
            images: images
                .filter_map(|origin| Some((origin.pattern.clone(), origin.image?)))
                .collect(),
            units: (!units.is_empty()).then_some(units),
            steps: Steps::of(case),
            may_accuse_daemons: ["containers", "exits", "memcg", "units"]
                .iter()
                .all(|sensor| case.heard(sensor)),
        }
    }

    /// All births by who is behind them. Starts of a unit's own cgroup are left out: those
    /// are told by systemd itself.
    pub(crate) fn of_creations(&self, creations: &Creations<'a>) -> Vec<Requested<'a>> {
        let mut asked: BTreeMap<Subject, Requested<'a>> = BTreeMap::new();
        let mut unclaimed: BTreeMap<&str, Vec<Creation<'a>>> = BTreeMap::new();
        let mut by_daemon: Vec<(&Creation<'a>, Found)> = Vec::new();
        let alike = self.alike(&creations.creations);
        for (creation, found) in self.followed(creations, &alike) {
            match found {
                Some(found) if is_by_daemon(&found) => by_daemon.push((creation, found)),
                Some((subject, signs)) => self.add(&mut asked, subject, signs, creation.clone()),
                None => unclaimed
                    .entry(&creation.pattern)
                    .or_default()
                    .push(creation.clone()),
            }
        }
        for (creation, found) in self.of_untold(&asked, by_daemon) {
            if self.may_accuse_daemons || !is_by_daemon(&found) {
                self.add(&mut asked, found.0, found.1, creation.clone());
            }
        }
        for (pattern, creations) in unclaimed {
            let (subject, sign) = process::behind(pattern, &creations);
            let is_daemon = sign.way == Way::Daemon;
            let (subject, signs) = match (is_daemon, claimants(&asked, pattern).as_slice()) {
                (false, _) => (subject, vec![sign]),
                // Of the last ones the runtime has not told yet: they are as those before.
                (true, [one]) => one.clone(),
                (true, []) => match alike.requester_of(pattern) {
                    Some((subject, sign)) => (subject, vec![sign]),
                    None if self.may_accuse_daemons => (subject, vec![sign]),
                    None => continue,
                },
                (true, _) => continue,
            };
            for creation in creations {
                self.add(&mut asked, subject.clone(), signs.clone(), creation);
            }
        }
        asked.into_values().collect()
    }

    /// Of the last containers the runtime has not told yet: if one alone is behind those before
    /// them, it is not the daemon.
    fn of_untold<'b>(
        &self,
        asked: &BTreeMap<Subject, Requested<'a>>,
        by_daemon: Vec<(&'b Creation<'a>, Found)>,
    ) -> Vec<(&'b Creation<'a>, Found)> {
        let last_told = self.lives.iter().filter_map(|life| life.started).max();
        let followed = by_daemon.into_iter().map(|(creation, found)| {
            let is_untold = creation.container.is_some() && last_told < Some(creation.at);
            match claimants(asked, &creation.pattern).as_slice() {
                [one] if is_untold => (creation, one.clone()),
                _ => (creation, found),
            }
        });
        followed.collect()
    }

    /// Who is behind each birth. The cgroup of a pod, and of what only holds its namespaces, is
    /// made for the containers in it: whoever is behind those is behind it.
    fn followed<'b>(
        &self,
        creations: &'b Creations<'a>,
        alike: &Alike<'a, 'b>,
    ) -> Vec<(&'b Creation<'a>, Option<Found>)> {
        let own = creations
            .creations
            .iter()
            .filter(|creation| !is_start_of_unit(creation));
        let mut all: Vec<(&Creation<'a>, Option<Found>)> = own
            .map(|creation| (creation, self.of_creation(creation, alike)))
            .collect();
        let mut of_pods: BTreeMap<String, Found> = BTreeMap::new();
        for (creation, found) in &all {
            let is_work = creation.container.is_some() && !self.is_pause(creation);
            let is_named = |found: &&Found| !is_by_daemon(found);
            let pod = pod_of(creation.path).filter(|_| is_work);
            if let Some((pod, found)) = pod.zip(found.as_ref().filter(is_named)) {
                of_pods.entry(pod).or_insert_with(|| found.clone());
            }
        }
        for (creation, found) in &mut all {
            let is_work = creation.container.is_some() && !self.is_pause(creation);
            let of_pod = pod_of(creation.path).filter(|_| !is_work);
            if let Some(of_pod) = of_pod.and_then(|pod| of_pods.get(&pod)) {
                *found = Some(of_pod.clone());
            }
        }
        all
    }

    /// Whether it only holds the namespaces of a pod.
    fn is_pause(&self, creation: &Creation<'_>) -> bool {
        let image = self.image(creation).map(known::plain_image);
        image.is_some_and(|image| image.rsplit('/').next() == Some("pause"))
    }

    fn add(
        &self,
        asked: &mut BTreeMap<Subject, Requested<'a>>,
        subject: Subject,
        signs: Vec<Sign>,
        creation: Creation<'a>,
    ) {
        let image = self.image(&creation);
        let one = asked.entry(subject.clone()).or_insert_with(|| Requested {
            subject,
            signs: BTreeSet::new(),
            creations: Vec::new(),
            images: BTreeSet::new(),
            n_by_pattern: BTreeMap::new(),
        });
        one.signs.extend(signs);
        one.images.extend(image);
        *one.n_by_pattern
            .entry(creation.pattern.clone())
            .or_default() += creation.n;
        one.creations.push(creation);
    }

    fn of_creation(&self, creation: &Creation<'a>, alike: &Alike<'a, '_>) -> Option<Found> {
        let unit_subject = |unit: &str| Subject::new(SubjectKind::Unit, unit);
        let unit = creation.unit.as_deref();
        if let Some(unit) = unit.filter(|unit| !known::is_between(unit)) {
            if is_below(creation.path, unit) {
                return Some((unit_subject(unit), vec![Sign::path(unit)]));
            }
            if unit_name::is_of_user(unit) {
                return Some((unit_subject(unit), vec![Sign::own(unit)]));
            }
        }
        if let Some((unit, comm)) = alike.scopes.get(creation.pattern.as_str()) {
            return Some((unit_subject(unit), vec![Sign::scope(unit, comm)]));
        }
        if let Some(found) = self.of_instances(&creation.pattern) {
            return Some(found);
        }
        if creation.container.is_some() {
            let lives: Vec<&ContainerRun<'a>> = self.life(creation).into_iter().collect();
            let found = self.of_containers(self.image(creation), &lives);
            if found.is_some() {
                return found;
            }
        }
        match creation.creator_unit.as_deref() {
            Some(unit) if !known::is_between(unit) => {
                Some((unit_subject(unit), vec![Sign::ancestry(creation, unit)]))
            }
            Some(daemon) => Some(match alike.requester_of(&creation.pattern) {
                Some((subject, sign)) => (subject, vec![sign]),
                None => (unit_subject(daemon), vec![Sign::daemon(creation, daemon)]),
            }),
            None => None,
        }
    }

    /// Who is behind instances of a template: the socket that starts them, or the template.
    pub(crate) fn of_instances(&self, pattern: &str) -> Option<Found> {
        let template = instances::template(pattern)?;
        let is_there = |socket: &String| {
            let units = self.units.as_ref();
            units.is_some_and(|units| units.contains_key(socket.as_str())) && self.may_be(socket)
        };
        let socket = instances::socket(&template).filter(is_there);
        let sign = Sign::instances(&template, socket.as_deref());
        let unit = socket.unwrap_or(template);
        Some((Subject::new(SubjectKind::Unit, unit), vec![sign]))
    }

    /// Who is behind containers, by client, image, name and starts in step.
    pub(crate) fn of_containers(
        &self,
        image: Option<&str>,
        lives: &[&ContainerRun<'a>],
    ) -> Option<Found> {
        let name = lives.iter().find_map(|life| life.name);
        let mut found: BTreeMap<&str, Vec<Sign>> = BTreeMap::new();
        if let Some(known) = known::by_container(image, name)
            && self.may_be(&known.unit)
        {
            let sign = Sign::signature(
                known,
                image.or(name).unwrap_or_default(),
                self.units.is_some(),
            );
            found.entry(&known.unit).or_default().push(sign);
        }
        for unit in self.named_like(image, lives) {
            let what = name.or(image).unwrap_or_default();
            found.entry(unit).or_default().push(Sign::name(unit, what));
        }
        if let Some((unit, comm)) = self.clients.behind(image, lives) {
            found
                .entry(unit)
                .or_default()
                .push(Sign::client(unit, comm));
        }
        let times: Vec<Moment> = lives.iter().filter_map(|life| life.started).collect();
        for (unit, step) in self.steps.with(&times) {
            if self.may_be(unit) {
                found
                    .entry(unit)
                    .or_default()
                    .push(Sign::in_step(unit, step));
            }
        }
        let best = found
            .into_iter()
            .max_by_key(|(unit, signs)| (confidence(signs), std::cmp::Reverse(*unit)));
        if let Some((unit, signs)) = best {
            return Some((Subject::new(SubjectKind::Unit, unit), signs));
        }
        let pod = lives.iter().find_map(|life| life.pod.as_ref())?;
        let image = lives.first()?.image;
        Some((
            Subject::new(SubjectKind::Image, image),
            vec![Sign::pod(pod)],
        ))
    }

    /// Whether a unit can be behind anything: it is there and runs, or nobody could say.
    fn may_be(&self, unit: &str) -> bool {
        let Some(units) = &self.units else {
            return true;
        };
        let state = units.get(unit).copied();
        state.is_some_and(|state| state != "inactive" && state != "failed")
    }

    /// Units that are there and whose name is that of a container, its image or project,
    /// plain or as tools that write units for containers make it.
    fn named_like(&self, image: Option<&str>, lives: &[&ContainerRun<'a>]) -> BTreeSet<&'a str> {
        const FORMS: [(&str, &str); 6] = [
            ("", ""),
            ("docker-", ""),
            ("podman-", ""),
            ("container-", ""),
            ("docker-compose@", ""),
            ("", "-container"),
        ];
        let names = lives
            .iter()
            .flat_map(|life| [life.name, life.project])
            .flatten();
        let stem = image.map(|image| {
            known::plain_image(image)
                .rsplit('/')
                .next()
                .unwrap_or_default()
        });
        let mut found = BTreeSet::new();
        for name in names.chain(stem).filter(|name| name.len() > 2) {
            for (before, after) in FORMS {
                let unit = format!("{before}{name}{after}.service");
                let units = self.units.as_ref();
                let known = units.and_then(|units| units.get_key_value(unit.as_str()));
                found.extend(
                    known
                        .map(|(unit, _)| *unit)
                        .filter(|unit| self.may_be(unit)),
                );
            }
        }
        found.retain(|unit| !known::is_between(unit));
        found
    }

    /// What is known of births that are alike, by their pattern.
    fn alike<'b>(&self, creations: &'b [Creation<'a>]) -> Alike<'a, 'b> {
        let mut times: BTreeMap<&'b str, Vec<Moment>> = BTreeMap::new();
        // A client of a container that has ended is known by its status.
        let mut open: BTreeMap<&'b str, Vec<Moment>> = BTreeMap::new();
        for creation in creations {
            times
                .entry(&creation.pattern)
                .or_default()
                .push(creation.at);
            let life = self.life(creation);
            let is_open = life.is_none_or(|life| life.exit_code.is_none());
            if is_open && process::is_by_daemon(creation) {
                open.entry(&creation.pattern).or_default().push(creation.at);
            }
        }
        // Most of them, or it holds for none.
        open.retain(|pattern, open| 2 * open.len() > times[pattern].len());
        let in_step = times
            .into_iter()
            .filter_map(|(pattern, times)| Some((pattern, *self.steps.with(&times).first()?)));
        let at_work = open
            .into_iter()
            .filter_map(|(pattern, times)| Some((pattern, self.clients.at_work(&times)?)));
        Alike {
            scopes: scopes(creations),
            at_work: at_work.collect(),
            in_step: in_step.collect(),
        }
    }

    /// The last run of the container of a creation. Either id may be a short form of the other.
    fn life(&self, creation: &Creation<'_>) -> Option<&ContainerRun<'a>> {
        let id = creation.container?;
        let longer = self.last_of_id.range(id..);
        let longer = longer.take_while(|(known, _)| known.starts_with(id));
        let shorter =
            (SHORT_ID..id.len()).filter_map(|n| self.last_of_id.get_key_value(id.get(..n)?));
        let last = longer.chain(shorter).map(|(_, at)| *at).max()?;
        self.lives.get(last)
    }

    fn image(&self, creation: &Creation<'_>) -> Option<&'a str> {
        creation.container?;
        let told = self.life(creation).map(|life| life.image);
        told.or_else(|| self.images.get(&creation.pattern).copied())
    }
}

/// No id is cut to less: Docker shows twelve characters.
const SHORT_ID: usize = 12;

fn last_of_id<'a>(lives: &[ContainerRun<'a>]) -> BTreeMap<&'a str, usize> {
    let lives = lives.iter().enumerate();
    lives.map(|(at, life)| (life.id, at)).collect()
}

/// Who asked for births that are alike, by their pattern.
#[derive(Debug)]
struct Alike<'a, 'b> {
    /// Of scopes: the unit and the process inside.
    scopes: HashMap<&'b str, (&'a str, &'a str)>,
    /// The unit whose client was at work, and the client.
    at_work: BTreeMap<&'b str, (&'a str, &'a str)>,
    /// The unit that did something in step.
    in_step: BTreeMap<&'b str, (&'a str, Step)>,
}

impl Alike<'_, '_> {
    /// Who had a daemon make them.
    fn requester_of(&self, pattern: &str) -> Option<(Subject, Sign)> {
        let unit_subject = |unit: &str| Subject::new(SubjectKind::Unit, unit);
        let at_work = self.at_work.get(pattern);
        let at_work = at_work.map(|(unit, comm)| (unit_subject(unit), Sign::at_work(unit, comm)));
        let in_step = || {
            let (unit, step) = self.in_step.get(pattern)?;
            Some((unit_subject(unit), Sign::in_step(unit, *step)))
        };
        at_work.or_else(in_step)
    }
}

/// Whether only a daemon is known, which did what it was asked to.
fn is_by_daemon((_, signs): &Found) -> bool {
    signs.iter().any(|sign| sign.way == Way::Daemon)
}

/// Who is behind births of this pattern, as far as that is known.
fn claimants(asked: &BTreeMap<Subject, Requested<'_>>, pattern: &str) -> Vec<Found> {
    let own = asked.values().filter(|one| one.has(pattern));
    own.map(|one| (one.subject.clone(), one.signs.iter().cloned().collect()))
        .collect()
}

/// Who asked for the scopes of each pattern: what is known of one holds for all alike.
fn scopes<'a, 'b>(creations: &'b [Creation<'a>]) -> HashMap<&'b str, (&'a str, &'a str)> {
    let mut counts: BTreeMap<(&'b str, (&'a str, &'a str)), u64> = BTreeMap::new();
    for creation in creations {
        if let Some(asker) = creation.asker {
            *counts.entry((&creation.pattern, asker)).or_default() += 1;
        }
    }
    let mut most: HashMap<&'b str, ((&'a str, &'a str), u64)> = HashMap::new();
    for ((pattern, asker), n) in counts {
        let best = most.entry(pattern).or_insert((asker, n));
        if n > best.1 {
            *best = (asker, n);
        }
    }
    most.into_iter()
        .map(|(pattern, (asker, _))| (pattern, asker))
        .collect()
}
