//! One who may be behind churn: the evidence for and against it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use sexton_model::fact::unit as unit_fact;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use super::{CODE, LEAST_BIRTHS, LEAST_LEFT, LEAST_LEFT_RATIO, least_span};
use crate::case::Case;
use crate::evidence::growth;
use crate::evidence::origins::Origin;
use crate::evidence::requesters::{Sign, Way, confidence};
use crate::evidence::trend::goes_on;
use crate::words::figures;
use crate::words::process;
use crate::words::unit_name::{self, journal, systemctl};

/// One who may be behind churn.
pub(super) struct Suspect<'a> {
    pub(super) subject: Subject,
    pub(super) signs: BTreeSet<Sign>,
    /// Births in the window.
    pub(super) n_creations: u64,
    pub(super) times: Vec<Moment>,
    /// Lives of containers that a runtime told of, the minutes before the window included.
    pub(super) n_lives: u64,
    pub(super) life_times: Vec<Moment>,
    /// Patterns of what it makes, and its part of the births of each.
    pub(super) patterns: BTreeMap<String, f64>,
    pub(super) images: BTreeSet<&'a str>,
    pub(super) containers: bool,
    /// Of the cgroups that were removed in the window: how many, and how many stayed.
    pub(super) n_removed: u64,
    pub(super) n_left: u64,
    /// Dying ones by the census, and whether they pile up.
    dying: u64,
    has_pile: bool,
    since: Option<Moment>,
    origins: BTreeSet<Subject>,
}

impl<'a> Suspect<'a> {
    pub(super) fn entry<'m>(
        suspects: &'m mut BTreeMap<Subject, Self>,
        subject: &Subject,
    ) -> &'m mut Self {
        suspects.entry(subject.clone()).or_insert_with(|| Self {
            subject: subject.clone(),
            signs: BTreeSet::new(),
            n_creations: 0,
            times: Vec::new(),
            n_lives: 0,
            life_times: Vec::new(),
            patterns: BTreeMap::new(),
            images: BTreeSet::new(),
            containers: false,
            n_removed: 0,
            n_left: 0,
            dying: 0,
            has_pile: false,
            since: None,
            origins: BTreeSet::new(),
        })
    }

    /// Takes what the census has of it.
    pub(super) fn take(&mut self, origin: &Origin<'_>, is_pile: bool, share: f64) {
        self.dying += (origin.dying as f64 * share).round() as u64;
        self.has_pile |= is_pile;
        self.origins.insert(origin.subject.clone());
        let since = growth::since(origin).filter(|_| origin.dying > 0);
        self.since = match (self.since, since) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Births went on until the end of the window.
    pub(super) fn churns(&self, case: &Case<'_>) -> bool {
        let mut times = self.times.clone();
        times.sort_unstable();
        // A burst that is told as one has as many births as it says.
        self.n_creations as f64 >= case.limit(&LEAST_BIRTHS)
            && goes_on(&times, case.now(), least_span(case))
    }

    /// It was seen at work.
    pub(super) fn is_active(&self, case: &Case<'_>) -> bool {
        self.churns(case) || self.n_lives > 0
    }

    /// What it removes stays.
    fn leaves(&self, case: &Case<'_>) -> bool {
        let ratio = self.n_left as f64 / self.n_removed.max(1) as f64;
        self.n_left as f64 >= case.limit(&LEAST_LEFT) && ratio >= case.limit(&LEAST_LEFT_RATIO)
    }

    /// It churns and that does harm, or its containers are a loop, or it left a pile.
    pub(super) fn is_guilty(&self, case: &Case<'_>) -> bool {
        let is_loop = self.n_lives > 0;
        is_loop || self.has_pile || (self.churns(case) && self.leaves(case))
    }

    pub(super) fn finding(&self, case: &Case<'_>) -> Finding {
        let n_left = self.dying.max(self.n_left);
        let is_active = self.is_active(case);
        let mut sure = confidence(&self.signs);
        if !is_active && self.n_creations == 0 {
            // Nothing was seen to be made; only what is left tells.
            sure = sure.at_most(Confidence::LIKELY);
        }
        let mut touched = vec![self.subject.clone()];
        touched.extend(
            self.patterns
                .keys()
                .map(|pattern| Subject::new(SubjectKind::Cgroup, pattern.as_str())),
        );
        touched.extend(self.origins.iter().cloned());
        touched.extend(
            self.images
                .iter()
                .map(|image| Subject::new(SubjectKind::Image, *image)),
        );
        touched.sort();
        touched.dedup();
        Finding {
            code: CODE,
            subject: self.subject.clone(),
            severity: Severity::Warning,
            confidence: sure,
            title: self.title(case, is_active),
            figure: match is_active {
                true => self.starts(case),
                false => format!("left {} dying", figures::count(n_left)),
            },
            since: self.since.or_else(|| self.life_times.iter().min().copied()),
            evidence: self.evidence(case),
            remedies: self.remedies(case),
            touched,
            episodes: self.episodes(),
        }
    }

    fn who(&self) -> String {
        let name = &self.subject.name;
        match self.subject.kind {
            SubjectKind::Image => format!("containers of {name}"),
            SubjectKind::Cgroup => format!("the creator of {name}"),
            _ => name.to_string(),
        }
    }

    fn what(&self) -> String {
        match (self.containers, self.images.first()) {
            (true, Some(image)) => format!("a new {image} container"),
            (true, None) => "a new container".into(),
            (false, _) => "a new cgroup".into(),
        }
    }

    fn title(&self, case: &Case<'_>, is_active: bool) -> String {
        let who = self.who();
        let asked = match self.signs.iter().next().map(|sign| sign.way) {
            Some(Way::Daemon) => " for an unknown client",
            _ => "",
        };
        let verb = if self.containers { "starts" } else { "creates" };
        let (n, span) = self.pace(case);
        let every = figures::every(n, span);
        match (is_active, self.subject.kind) {
            (true, SubjectKind::Unit) => {
                let looks = if self.is_quiet(case) {
                    " is \"active\" but"
                } else {
                    ""
                };
                format!("{who}{looks} {verb} {} {every}{asked}", self.what())
            }
            (true, SubjectKind::Image) => format!("{who} start {every}"),
            (true, _) => format!("{who} {verb} {} {every}", self.what()),
            (false, _) => {
                let made = match self.n_creations {
                    0 => "none created during the watch".to_owned(),
                    n => format!(
                        "{} created during the watch, none at its end",
                        figures::count(n)
                    ),
                };
                let made = match self.is_gone(case) {
                    true => "it no longer runs",
                    false => &made,
                };
                format!(
                    "{who} left {}; {made}",
                    figures::plural(self.dying, "dying memory cgroup")
                )
            }
        }
    }

    /// How many in what time: in the window, or of a slow loop over the minutes before.
    fn pace(&self, case: &Case<'_>) -> (u64, Duration) {
        let (n, times) = match self.churns(case) || self.n_lives == 0 {
            true => (self.n_creations, &self.times),
            false => (self.n_lives, &self.life_times),
        };
        let first = times.iter().min().copied().unwrap_or(case.now());
        (n, case.now().since(first))
    }

    /// `31 starts in 30 s`.
    fn starts(&self, case: &Case<'_>) -> String {
        let thing = match (self.containers, self.churns(case) || self.n_lives == 0) {
            (true, _) | (_, false) => "start",
            (false, true) => "cgroup",
        };
        let (n, span) = self.pace(case);
        format!("{} in {}", figures::plural(n, thing), figures::time(span))
    }

    /// systemd counts no restart of it.
    fn is_quiet(&self, case: &Case<'_>) -> bool {
        case.heard("units")
            && case
                .latest(&unit_fact::UNIT_RESTARTS, &self.subject)
                .unwrap_or(0.0)
                == 0.0
    }

    fn evidence(&self, case: &Case<'_>) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        let watched = case
            .window()
            .map_or(Duration::ZERO, |w| w.end().since(*w.start()));
        let left = self.dying.max(self.n_left) as f64;
        if self.n_creations > 0 {
            let text = format!(
                "{} created in {}",
                figures::plural(self.n_creations, "cgroup"),
                figures::time(watched)
            );
            evidence.push(
                Evidence::speaks_for("cgroups: creations", text)
                    .value(left.max(self.n_creations as f64)),
            );
        } else if case.heard("cgroups") {
            let text = format!(
                "no cgroup creation leads here in {}",
                figures::time(watched)
            );
            evidence.push(Evidence::against("cgroups: creations", text));
        } else {
            evidence.push(Evidence::missing("cgroups", case.why_silent("cgroups")));
        }
        if self.n_lives > 0 {
            let text = format!(
                "{} of its containers: {}",
                figures::plural(self.n_lives, "run"),
                self.starts(case)
            );
            evidence
                .push(Evidence::speaks_for("containers: events", text).value(self.n_lives as f64));
        }
        evidence.extend(self.signs.iter().flat_map(Sign::evidence));
        if self.n_removed > 0 {
            let text = format!(
                "the kernel still holds {} of the {} removed ones",
                figures::count(self.n_left),
                figures::count(self.n_removed)
            );
            let is_leak = self.leaves(case);
            evidence.push(match is_leak {
                true => Evidence::speaks_for("cgroups: removed, not released", text)
                    .value(self.n_left as f64),
                false => Evidence::against("cgroups: removed, not released", text),
            });
        }
        if self.dying > 0 {
            let text = format!(
                "{} of the same origin now",
                figures::plural(self.dying, "dying memory cgroup")
            );
            evidence.push(Evidence::speaks_for("memcg: census", text).value(self.dying as f64));
        }
        evidence.extend(self.of_systemd(case));
        evidence
    }

    /// What systemd's own counters say: in this trouble, nothing.
    fn of_systemd(&self, case: &Case<'_>) -> Vec<Evidence> {
        let has_count = self.subject.name.ends_with(".service");
        if self.subject.kind != SubjectKind::Unit || !has_count || self.is_template() {
            return Vec::new();
        }
        if unit_name::is_of_user(&self.subject.name) && !self.is_seen(case) {
            let text = "the restart counter of the user's systemd instance: no answer";
            return vec![Evidence::missing("units", text)];
        }
        if !case.heard("units") {
            return vec![Evidence::missing("units", case.why_silent("units"))];
        }
        let restarts = case
            .latest(&unit_fact::UNIT_RESTARTS, &self.subject)
            .unwrap_or(0.0);
        let text = format!("NRestarts is {restarts}: systemd does not see this loop");
        let mut evidence = vec![Evidence::speaks_for("units: NRestarts", text).value(restarts)];
        let starts = case.events(&unit_fact::UNIT_STARTED);
        let starts: Vec<_> = starts
            .filter(|event| *event.subject == self.subject)
            .collect();
        if let Some(last) = starts.last() {
            let by = last.says.triggered_by.as_ref();
            let by = by.map_or(String::new(), |by| format!(", by {by}"));
            let text = format!("systemd started it {}{by}", figures::times(starts.len()));
            evidence.push(Evidence::speaks_for("units: starts", text).value(starts.len() as f64));
        }
        evidence
    }

    fn is_template(&self) -> bool {
        self.subject.kind == SubjectKind::Unit && unit_name::is_template(&self.subject.name)
    }

    /// A manager has told of it.
    fn is_seen(&self, case: &Case<'_>) -> bool {
        let mut seen = case.of(&unit_fact::UNIT_SEEN).iter();
        seen.any(|record| record.subject == self.subject)
    }

    /// systemd knows of it, and it does not run.
    fn is_gone(&self, case: &Case<'_>) -> bool {
        if self.subject.kind != SubjectKind::Unit
            || self.is_template()
            || unit_name::is_of_user(&self.subject.name) && !self.is_seen(case)
            || !case.heard("units")
        {
            return false;
        }
        let seen = case.events(&unit_fact::UNIT_SEEN);
        let own = seen.filter(|event| *event.subject == self.subject);
        let state = own
            .filter_map(|event| event.says.active.as_deref())
            .next_back();
        let was_started = case
            .of(&unit_fact::UNIT_STARTED)
            .iter()
            .any(|record| record.subject == self.subject);
        !was_started && state.is_none_or(|state| state == "inactive" || state == "failed")
    }

    /// Timers, sockets and paths that start it, as systemd lists them.
    fn triggers<'c>(&self, case: &Case<'c>) -> Vec<&'c str> {
        let starts = case.events(&unit_fact::UNIT_STARTED);
        let mut own = starts.filter(|event| *event.subject == self.subject);
        let by = own.find_map(|event| event.says.triggered_by.as_deref());
        by.unwrap_or_default().split_whitespace().collect()
    }

    fn remedies(&self, case: &Case<'_>) -> Vec<Remedy> {
        let name = &*self.subject.name;
        match self.subject.kind {
            SubjectKind::Unit if self.is_gone(case) => vec![Remedy::command(
                RemedyKind::Look,
                "The unit is not running: read what it did",
                journal(name),
            )],
            SubjectKind::Unit if self.is_template() => {
                let all = unit_name::all_instances(name);
                vec![
                    Remedy::command(
                        RemedyKind::Stop,
                        "Stop the running instances",
                        systemctl("stop", &all),
                    ),
                    Remedy::command(
                        RemedyKind::Prevent,
                        "Prevent new instances",
                        systemctl("mask", name),
                    ),
                    Remedy::command(RemedyKind::Look, "Read what they log", journal(&all)),
                ]
            }
            SubjectKind::Unit => vec![
                Remedy::command(
                    RemedyKind::Stop,
                    "Stop the unit",
                    unit_name::stop(name, &self.triggers(case)),
                ),
                Remedy::command(
                    RemedyKind::Prevent,
                    "Disable the unit, here and in the image",
                    unit_name::disable(name, &self.triggers(case)),
                ),
                Remedy::command(RemedyKind::Look, "Read what it logs", journal(name)),
            ],
            SubjectKind::Image => vec![Remedy::advice(
                RemedyKind::Stop,
                format!(
                    "Remove or repair what starts containers of {name}: its pod or its restart policy"
                ),
            )],
            SubjectKind::Task => remedies_of_task(name, self.is_active(case)),
            _ => vec![Remedy::command(
                RemedyKind::Look,
                "Watch what creates them",
                "sudo sexton watch",
            )],
        }
    }

    fn episodes(&self) -> Vec<Episode> {
        let times = self.times.iter().chain(&self.life_times);
        let (first, last) = (times.clone().min(), times.max());
        first
            .zip(last)
            .map(|(from, to)| Episode {
                from: *from,
                to: *to,
                touched: vec![self.subject.clone()],
            })
            .into_iter()
            .collect()
    }
}

/// What to do about `leaker.sh[4711]`. The first process of a node is never to be paused, and
/// one that has stopped creating cgroups need not be.
fn remedies_of_task(name: &str, is_active: bool) -> Vec<Remedy> {
    let pid = name
        .rsplit_once('[')
        .map(|(_, pid)| pid.trim_end_matches(']'));
    let pid = pid.filter(|pid| pid.parse::<u32>().is_ok_and(|pid| pid > 1));
    let mut remedies = Vec::new();
    if let Some(pid) = pid {
        let pause = Remedy::command(
            RemedyKind::Stop,
            format!("Pause {name} (host PID)"),
            process::pause(pid),
        );
        remedies.extend(is_active.then(|| pause.of_process(pid)));
        let look = format!("ps -fp {pid}");
        let identify = Remedy::command(RemedyKind::Look, "Identify it", look);
        remedies.push(identify.of_process(pid));
    }
    if !is_active {
        return remedies;
    }
    remedies.push(Remedy::advice(
        RemedyKind::Stop,
        format!("Stop the process {name}, or what starts it"),
    ));
    remedies
}
