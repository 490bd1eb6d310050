//! One who may be behind churn: what speaks for and against it.

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
                true => self.pace(case),
                false => format!("{} left", figures::count(n_left)),
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
            SubjectKind::Cgroup => format!("whoever makes {name}"),
            _ => name.to_string(),
        }
    }

    fn what(&self) -> String {
        match (self.containers, self.images.first()) {
            (true, Some(image)) => format!("containers of {image}"),
            (true, None) => "containers".into(),
            (false, _) => "cgroups".into(),
        }
    }

    fn title(&self, case: &Case<'_>, is_active: bool) -> String {
        let who = self.who();
        let dying = match self.dying {
            0 => String::new(),
            n => format!("; {} of them are dying", figures::count(n)),
        };
        let asked = match self.signs.iter().next().map(|sign| sign.way) {
            Some(Way::Daemon) => " for somebody who could not be named",
            _ => "",
        };
        match (is_active, self.subject.kind) {
            (true, SubjectKind::Unit) => {
                let looks = if self.is_quiet(case) {
                    " looks healthy but"
                } else {
                    ""
                };
                format!(
                    "{who}{looks} makes {} again and again{asked}: {}{dying}",
                    self.what(),
                    self.pace(case)
                )
            }
            (true, _) => format!(
                "{who} makes {} again and again: {}{dying}",
                self.what(),
                self.pace(case)
            ),
            (false, _) => {
                let made = match self.n_creations {
                    0 => "none was made while sexton watched".to_owned(),
                    n => format!(
                        "{} were made while sexton watched, none any more at the end",
                        figures::count(n)
                    ),
                };
                let made = match self.is_gone(case) {
                    true => "it does not run any more",
                    false => &made,
                };
                format!(
                    "{who} has left {} dying cgroups behind; {made}",
                    figures::count(self.dying)
                )
            }
        }
    }

    /// `31 in 30 s`, or of a slow loop over the minutes before.
    fn pace(&self, case: &Case<'_>) -> String {
        let (n, times) = match self.churns(case) || self.n_lives == 0 {
            true => (self.n_creations, &self.times),
            false => (self.n_lives, &self.life_times),
        };
        let first = times.iter().min().copied().unwrap_or(case.now());
        format!(
            "{} in {}",
            figures::count(n),
            figures::time(case.now().since(first))
        )
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
                "{} cgroups were made in {}",
                figures::count(self.n_creations),
                figures::time(watched)
            );
            evidence.push(
                Evidence::speaks_for("cgroups: births", text)
                    .value(left.max(self.n_creations as f64)),
            );
        } else if case.heard("cgroups") {
            let text = format!(
                "no birth of a cgroup led here in {}",
                figures::time(watched)
            );
            evidence.push(Evidence::against("cgroups: births", text));
        } else {
            evidence.push(Evidence::missing("cgroups", case.why_silent("cgroups")));
        }
        if self.n_lives > 0 {
            let text = format!(
                "{} lives of its containers, {}",
                self.n_lives,
                self.pace(case)
            );
            evidence
                .push(Evidence::speaks_for("containers: events", text).value(self.n_lives as f64));
        }
        evidence.extend(self.signs.iter().flat_map(Sign::evidence));
        if self.n_removed > 0 {
            let text = format!(
                "of {} that were removed the kernel still holds {}",
                figures::count(self.n_removed),
                figures::count(self.n_left)
            );
            let is_leak = self.leaves(case);
            evidence.push(match is_leak {
                true => Evidence::speaks_for("cgroups: removals without release", text)
                    .value(self.n_left as f64),
                false => Evidence::against("cgroups: removals without release", text),
            });
        }
        if self.dying > 0 {
            let text = format!(
                "{} dying ones of the same kind are there now",
                figures::count(self.dying)
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
            let text = "what the user's own systemd counts: it did not tell";
            return vec![Evidence::missing("units", text)];
        }
        if !case.heard("units") {
            return vec![Evidence::missing("units", case.why_silent("units"))];
        }
        let restarts = case
            .latest(&unit_fact::UNIT_RESTARTS, &self.subject)
            .unwrap_or(0.0);
        let text =
            format!("systemd counts {restarts} restarts of it: its own counters do not tell");
        let mut evidence = vec![Evidence::speaks_for("units: NRestarts", text).value(restarts)];
        let starts = case.events(&unit_fact::UNIT_STARTED);
        let starts: Vec<_> = starts
            .filter(|event| *event.subject == self.subject)
            .collect();
        if let Some(last) = starts.last() {
            let by = last.says.triggered_by.as_ref();
            let by = by.map_or(String::new(), |by| format!(", by {by}"));
            let text = format!("systemd started it {} times{by}", starts.len());
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
                "it does not run: there is nothing to stop; see what it did",
                journal(name),
            )],
            SubjectKind::Unit if self.is_template() => {
                let all = unit_name::all_instances(name);
                vec![
                    Remedy::command(
                        RemedyKind::Stop,
                        "end those that run now",
                        systemctl("stop", &all),
                    ),
                    Remedy::command(
                        RemedyKind::Prevent,
                        "keep any more from starting",
                        systemctl("mask", name),
                    ),
                    Remedy::command(RemedyKind::Look, "see what they do", journal(&all)),
                ]
            }
            SubjectKind::Unit => vec![
                Remedy::command(
                    RemedyKind::Stop,
                    "end the churn now",
                    unit_name::stop(name, &self.triggers(case)),
                ),
                Remedy::command(
                    RemedyKind::Prevent,
                    "keep it from starting here, on this node and in the image",
                    unit_name::disable(name, &self.triggers(case)),
                ),
                Remedy::command(RemedyKind::Look, "see what it does", journal(name)),
            ],
            SubjectKind::Image => vec![Remedy::advice(
                RemedyKind::Stop,
                format!(
                    "remove or mend what runs containers of {name}: its pod or its restart policy"
                ),
            )],
            SubjectKind::Task => remedies_of_task(name),
            _ => vec![Remedy::command(
                RemedyKind::Look,
                "see who makes them",
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

/// What to do about `leaker.sh[4711]`. The first process of a node is never to be paused.
fn remedies_of_task(name: &str) -> Vec<Remedy> {
    let pid = name
        .rsplit_once('[')
        .map(|(_, pid)| pid.trim_end_matches(']'));
    let pid = pid.filter(|pid| pid.parse::<u32>().is_ok_and(|pid| pid > 1));
    let mut remedies = Vec::new();
    if let Some(pid) = pid {
        remedies.push(Remedy::command(
            RemedyKind::Stop,
            format!("pause {name}, by its number outside of containers; -CONT lets it go on"),
            format!("sudo kill -STOP {pid}"),
        ));
        let look = format!("ps -fp {pid}");
        remedies.push(Remedy::command(RemedyKind::Look, "see what it is", look));
    }
    remedies.push(Remedy::advice(
        RemedyKind::Stop,
        format!("end the process {name}, or what started it"),
    ));
    remedies
}
