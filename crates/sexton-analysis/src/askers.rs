//! Who is behind births of cgroups and containers, whoever did the forking.
//!
//! Several signs lead there, and each says how strong it is: the path of the cgroup; the
//! process inside a scope that systemd made; the ancestry of the creator; the program that
//! asked for a container and ended with it, or was at work each time; the image and the name
//! of a container; starts of a unit, or what it writes to the journal, in step with the births. Daemons that do what
//! they are asked are named only when nobody else can be.

mod clients;
mod instances;
mod process;
mod steps;
mod ways;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sexton_model::fact::unit as fact;
use sexton_model::moment::Moment;
use sexton_model::origin::{Origin as PathOrigin, Part, Role};
use sexton_model::subject::{Subject, SubjectKind};

use crate::births::{Birth, Births};
use crate::case::Case;
use crate::known;
use crate::lives::{self, Life};
use crate::origins::Origin;
use crate::unit_name;

use clients::Clients;
use steps::{Step, Steps};
pub(crate) use ways::{Sign, Way, confidence};

/// Births that lead to one subject.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) subject: Subject,
    pub(crate) signs: BTreeSet<Sign>,
    pub(crate) births: Vec<Birth<'a>>,
    /// Of the births that are containers.
    pub(crate) images: BTreeSet<&'a str>,
}

impl Asked<'_> {
    /// How many were born.
    pub(crate) fn n(&self) -> u64 {
        self.births.iter().map(|birth| birth.n).sum()
    }

    /// Patterns of their paths.
    pub(crate) fn patterns(&self) -> BTreeSet<&str> {
        self.births
            .iter()
            .map(|birth| birth.pattern.as_str())
            .collect()
    }
}

/// Who is behind something, and what leads there.
type Found = (Subject, Vec<Sign>);

/// What is known of the node to tell askers by.
#[derive(Debug)]
pub(crate) struct Askers<'a> {
    lives: Vec<Life<'a>>,
    clients: Clients<'a>,
    images: HashMap<String, &'a str>,
    /// Units there are, and the state they were seen in; `None` when no systemd was heard.
    units: Option<BTreeMap<&'a str, &'a str>>,
    steps: Steps<'a>,
    /// Whether all were heard who could tell who asked a daemon. Otherwise it is not accused:
    /// that nobody can be named is then our blindness.
    may_accuse_daemons: bool,
}

impl<'a> Askers<'a> {
    pub(crate) fn new(case: &Case<'a>, origins: &[Origin<'a>]) -> Self {
        let mut units: BTreeMap<&'a str, &'a str> = BTreeMap::new();
        for record in case.of(&fact::UNIT_SEEN) {
            let state = record.detail("active").unwrap_or_default();
            units.insert(&record.subject.name, state);
        }
        for record in case.of(&fact::UNIT_STARTED) {
            units.insert(&record.subject.name, "active");
        }
        let images = origins.iter();
        let lives: Vec<Life<'a>> = lives::by_image(case).into_values().flatten().collect();
        Self {
            clients: Clients::of(case, &lives),
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
    pub(crate) fn of_births(&self, births: &Births<'a>) -> Vec<Asked<'a>> {
        let mut asked: BTreeMap<Subject, Asked<'a>> = BTreeMap::new();
        let mut unclaimed: BTreeMap<&str, Vec<Birth<'a>>> = BTreeMap::new();
        let mut by_daemon: Vec<(&Birth<'a>, Found)> = Vec::new();
        let alike = self.alike(&births.births);
        for (birth, found) in self.followed(births, &alike) {
            match found {
                Some(found) if is_by_daemon(&found) => by_daemon.push((birth, found)),
                Some((subject, signs)) => self.add(&mut asked, subject, signs, birth.clone()),
                None => unclaimed
                    .entry(&birth.pattern)
                    .or_default()
                    .push(birth.clone()),
            }
        }
        for (birth, found) in self.of_untold(&asked, by_daemon) {
            if self.may_accuse_daemons || !is_by_daemon(&found) {
                self.add(&mut asked, found.0, found.1, birth.clone());
            }
        }
        for (pattern, births) in unclaimed {
            let (subject, sign) = process::behind(pattern, &births);
            let is_daemon = sign.way == Way::Daemon;
            let (subject, signs) = match (is_daemon, claimants(&asked, pattern).as_slice()) {
                (false, _) => (subject, vec![sign]),
                // Of the last ones the runtime has not told yet: they are as those before.
                (true, [one]) => one.clone(),
                (true, []) => match alike.asker_of(pattern) {
                    Some((subject, sign)) => (subject, vec![sign]),
                    None if self.may_accuse_daemons => (subject, vec![sign]),
                    None => continue,
                },
                (true, _) => continue,
            };
            for birth in births {
                self.add(&mut asked, subject.clone(), signs.clone(), birth);
            }
        }
        asked.into_values().collect()
    }

    /// Of the last containers the runtime has not told yet: if one alone is behind those before
    /// them, it is not the daemon.
    fn of_untold<'b>(
        &self,
        asked: &BTreeMap<Subject, Asked<'a>>,
        by_daemon: Vec<(&'b Birth<'a>, Found)>,
    ) -> Vec<(&'b Birth<'a>, Found)> {
        let last_told = self.lives.iter().filter_map(|life| life.started).max();
        let followed = by_daemon.into_iter().map(|(birth, found)| {
            let is_untold = birth.container.is_some() && last_told < Some(birth.at);
            match claimants(asked, &birth.pattern).as_slice() {
                [one] if is_untold => (birth, one.clone()),
                _ => (birth, found),
            }
        });
        followed.collect()
    }

    /// Who is behind each birth. The cgroup of a pod, and of what only holds its namespaces, is
    /// made for the containers in it: whoever is behind those is behind it.
    fn followed<'b>(
        &self,
        births: &'b Births<'a>,
        alike: &Alike<'a, 'b>,
    ) -> Vec<(&'b Birth<'a>, Option<Found>)> {
        let own = births
            .births
            .iter()
            .filter(|birth| !is_start_of_unit(birth));
        let mut all: Vec<(&Birth<'a>, Option<Found>)> = own
            .map(|birth| (birth, self.of_birth(birth, alike)))
            .collect();
        let mut of_pods: BTreeMap<String, Found> = BTreeMap::new();
        for (birth, found) in &all {
            let is_work = birth.container.is_some() && !self.is_pause(birth);
            let is_named = |found: &&Found| !is_by_daemon(found);
            let pod = pod_of(birth.path).filter(|_| is_work);
            if let Some((pod, found)) = pod.zip(found.as_ref().filter(is_named)) {
                of_pods.entry(pod).or_insert_with(|| found.clone());
            }
        }
        for (birth, found) in &mut all {
            let is_work = birth.container.is_some() && !self.is_pause(birth);
            let of_pod = pod_of(birth.path).filter(|_| !is_work);
            if let Some(of_pod) = of_pod.and_then(|pod| of_pods.get(&pod)) {
                *found = Some(of_pod.clone());
            }
        }
        all
    }

    /// Whether it only holds the namespaces of a pod.
    fn is_pause(&self, birth: &Birth<'_>) -> bool {
        let image = self.image(birth).map(known::plain_image);
        image.is_some_and(|image| image.rsplit('/').next() == Some("pause"))
    }

    fn add(
        &self,
        asked: &mut BTreeMap<Subject, Asked<'a>>,
        subject: Subject,
        signs: Vec<Sign>,
        birth: Birth<'a>,
    ) {
        let image = self.image(&birth);
        let one = asked.entry(subject.clone()).or_insert_with(|| Asked {
            subject,
            signs: BTreeSet::new(),
            births: Vec::new(),
            images: BTreeSet::new(),
        });
        one.signs.extend(signs);
        one.images.extend(image);
        one.births.push(birth);
    }

    fn of_birth(&self, birth: &Birth<'a>, alike: &Alike<'a, '_>) -> Option<Found> {
        let unit_subject = |unit: &str| Subject::new(SubjectKind::Unit, unit);
        let unit = birth.unit.as_deref();
        if let Some(unit) = unit.filter(|unit| !known::is_between(unit)) {
            if is_below(birth.path, unit) {
                return Some((unit_subject(unit), vec![Sign::path(unit)]));
            }
            if unit_name::is_of_user(unit) {
                return Some((unit_subject(unit), vec![Sign::own(unit)]));
            }
        }
        if let Some((unit, comm)) = alike.scopes.get(birth.pattern.as_str()) {
            return Some((unit_subject(unit), vec![Sign::scope(unit, comm)]));
        }
        if let Some(found) = self.of_instances(&birth.pattern) {
            return Some(found);
        }
        if birth.container.is_some() {
            let lives: Vec<&Life<'a>> = self.life(birth).into_iter().collect();
            let found = self.of_containers(self.image(birth), &lives);
            if found.is_some() {
                return found;
            }
        }
        match birth.creator_unit.as_deref() {
            Some(unit) if !known::is_between(unit) => {
                Some((unit_subject(unit), vec![Sign::ancestry(birth, unit)]))
            }
            Some(daemon) => Some(match alike.asker_of(&birth.pattern) {
                Some((subject, sign)) => (subject, vec![sign]),
                None => (unit_subject(daemon), vec![Sign::daemon(birth, daemon)]),
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
    pub(crate) fn of_containers(&self, image: Option<&str>, lives: &[&Life<'a>]) -> Option<Found> {
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
    fn named_like(&self, image: Option<&str>, lives: &[&Life<'a>]) -> BTreeSet<&'a str> {
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
    fn alike<'b>(&self, births: &'b [Birth<'a>]) -> Alike<'a, 'b> {
        let mut times: BTreeMap<&'b str, Vec<Moment>> = BTreeMap::new();
        // A client of a container that has ended is known by its status.
        let mut open: BTreeMap<&'b str, Vec<Moment>> = BTreeMap::new();
        for birth in births {
            times.entry(&birth.pattern).or_default().push(birth.at);
            let life = self.life(birth);
            let is_open = life.is_none_or(|life| life.exit_code.is_none());
            if is_open && process::is_by_daemon(birth) {
                open.entry(&birth.pattern).or_default().push(birth.at);
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
            scopes: scopes(births),
            at_work: at_work.collect(),
            in_step: in_step.collect(),
        }
    }

    fn life(&self, birth: &Birth<'_>) -> Option<&Life<'a>> {
        let id = birth.container?;
        let is_it = |life: &&Life<'a>| life.id.starts_with(id) || id.starts_with(life.id);
        self.lives.iter().rfind(is_it)
    }

    fn image(&self, birth: &Birth<'_>) -> Option<&'a str> {
        birth.container?;
        let told = self.life(birth).map(|life| life.image);
        told.or_else(|| self.images.get(&birth.pattern).copied())
    }
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
    fn asker_of(&self, pattern: &str) -> Option<(Subject, Sign)> {
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
fn claimants(asked: &BTreeMap<Subject, Asked<'_>>, pattern: &str) -> Vec<Found> {
    let own = asked
        .values()
        .filter(|one| one.patterns().contains(pattern));
    own.map(|one| (one.subject.clone(), one.signs.iter().cloned().collect()))
        .collect()
}

/// Whether a path lies below the directory of a unit.
fn is_below(path: &str, unit: &str) -> bool {
    let unit = unit_name::own(unit);
    path.rsplit_once('/')
        .is_some_and(|(above, _)| above.split('/').any(|part| part == unit))
}

/// The path of the pod that a path is, or lies in.
fn pod_of(path: &str) -> Option<String> {
    let origin = PathOrigin::of(path.as_bytes());
    let is_pod = |part: &Part<'_>| matches!(part.role, Role::Pod(_));
    let last = origin.parts().iter().rposition(is_pod)?;
    let parts: Vec<&str> = path.split('/').take(last + 1).collect();
    Some(parts.join("/"))
}

/// Whether systemd made the directory of a unit that has a name of its own: it was started.
/// Scopes and units with a number are made for somebody.
/// Those of a user's own manager may be told by nobody else: not each can be asked.
pub(crate) fn is_start_of_unit(birth: &Birth<'_>) -> bool {
    let last = birth.pattern.rsplit('/').next().unwrap_or_default();
    let is_systemd = birth
        .makers
        .first()
        .is_some_and(|maker| maker.comm == "systemd");
    let unit = birth.unit.as_deref();
    let is_unit = unit.is_some_and(|unit| !is_below(birth.path, unit));
    let is_of_user = unit.is_some_and(unit_name::is_of_user) && !last.ends_with(".scope");
    let is_slice = last.ends_with(".slice");
    is_systemd && ((is_unit && !is_of_user && !last.contains('<')) || is_slice)
}

/// Who asked for the scopes of each pattern: what is known of one holds for all alike.
fn scopes<'a, 'b>(births: &'b [Birth<'a>]) -> HashMap<&'b str, (&'a str, &'a str)> {
    let mut counts: BTreeMap<(&'b str, (&'a str, &'a str)), u64> = BTreeMap::new();
    for birth in births {
        if let Some(asker) = birth.asker {
            *counts.entry((&birth.pattern, asker)).or_default() += 1;
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
