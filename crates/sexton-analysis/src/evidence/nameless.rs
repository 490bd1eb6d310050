//! A pile of dying cgroups that could be counted and not named: where it lies, and what it
//! grows in step with.
//!
//! Where no census names the dying ones, three things still lead to who makes them: the one
//! parent directory that has memory of dead children, cgroups that were removed under our eyes
//! and never released, and a count that grows as containers end or a unit starts.

use sexton_model::fact::memcg::{MEMCG_DYING, MEMCG_READS, MemcgReads};
use sexton_model::finding::{Confidence, Evidence};
use sexton_model::moment::Moment;
use sexton_model::subject::Subject;

use crate::case::Case;
use crate::evidence::creations::Creations;
use crate::evidence::origins::Origin;
use crate::evidence::read_cost::SLOW_TIMES;
use crate::evidence::trend::Trend;
use crate::words::figures::{count, time_ns};

/// Fewer in the window tell nothing.
const LEAST: f64 = 3.0;

/// A count that grows by this for each thing that happens goes in step with it: a container
/// leaves one cgroup, or one more for what is in it; some are released at once.
const PER_EACH: (f64, f64) = (0.5, 3.0);

/// What each dying one uses at least: one page pins it, often no more.
const BYTES_EACH: f64 = 2048.0;

/// A pile without names.
#[derive(Debug)]
pub(crate) struct Nameless<'a> {
    points: Vec<(Moment, f64)>,
    /// The directory that they lie below, and how that is known.
    pub(crate) parent: Option<Parent<'a>>,
}

/// The directory above most of them.
#[derive(Debug, Clone)]
pub(crate) struct Parent<'a> {
    pub(crate) path: &'a str,
    pub(crate) confidence: Confidence,
    pub(crate) evidence: Evidence,
}

impl<'a> Nameless<'a> {
    /// `None` when a census names them, or none could be counted.
    pub(crate) fn of(case: &Case<'a>) -> Option<Self> {
        let points: Vec<_> = case.samples(&MEMCG_DYING, &Subject::node()).collect();
        let is_named = case.origins().iter().any(|one| one.parent().is_none());
        let (_, dying) = *points.last().filter(|_| !is_named)?;
        if let Some(origin) = case.origins().first() {
            let parent = Some(origin).filter(|origin| origin.dying as f64 >= 0.5 * dying);
            let parent = parent.and_then(seen_parent);
            return Some(Self { points, parent });
        }
        let reads = case.events(&MEMCG_READS).rev();
        let parents: Vec<Parent<'a>> = reads
            .filter_map(|event| parent(case, event.says, dying))
            .collect();
        let parent = parents.into_iter().max_by_key(|parent| parent.confidence);
        Some(Self { points, parent })
    }

    /// By how many they became more in the window.
    pub(crate) fn grown(&self) -> f64 {
        let first = self.points.first().map_or(0.0, |point| point.1);
        let last = self.points.last().map_or(0.0, |point| point.1);
        (last - first).max(0.0)
    }

    /// Whether something happened between the first count and the last.
    pub(crate) fn is_within(&self, at: Moment) -> bool {
        let (first, last) = (self.points.first(), self.points.last());
        first.is_some_and(|first| first.0 <= at) && last.is_some_and(|last| at <= last.0)
    }

    /// Whether the count grew as something happened `n` times between the first count and
    /// the last.
    pub(crate) fn in_step(&self, n: usize, what: &str) -> Option<Evidence> {
        let grown = self.grown();
        let each = grown / n as f64;
        let is_enough = n as f64 >= LEAST && grown >= LEAST;
        (is_enough && PER_EACH.0 <= each && each <= PER_EACH.1).then(|| {
            let text = format!(
                "while {what} {} times, dying ones became {} more",
                count(n as u64),
                count(grown as u64)
            );
            Evidence::speaks_for("memcg: count", text).value(each)
        })
    }

    /// Patterns of cgroups that were removed in the window and are held still, as many as the
    /// pile grew by for the most part, with how many are held.
    pub(crate) fn patterns(&self, creations: &Creations<'_>) -> Vec<(String, u64)> {
        let all = creations.creations.iter();
        let mut patterns: Vec<&str> = all.map(|creation| creation.pattern.as_str()).collect();
        patterns.sort_unstable();
        patterns.dedup();
        let held = patterns
            .into_iter()
            .filter(|pattern| self.may_hold(pattern))
            .map(|pattern| (pattern.to_owned(), creations.fate(pattern).n_left));
        held.filter(|(_, n)| *n as f64 >= LEAST.max(0.5 * self.grown()))
            .collect()
    }

    /// The directory that most of those which the pile grew by were removed from, under our eyes.
    pub(crate) fn grows_below<'c>(&self, creations: &'c Creations<'_>) -> Option<&'c str> {
        let held = self.patterns(creations).into_iter();
        let (pattern, _) = held.max_by(|a, b| (a.1, &b.0).cmp(&(b.1, &a.0)))?;
        let alike = creations.creations.iter();
        let alike = alike.filter(|creation| creation.pattern == pattern);
        let mut parents = alike.map(|creation| Some(creation.path.rsplit_once('/')?.0));
        let parent = parents.next()??;
        // Of several there is no one directory.
        let is_only = parents.all(|other| other == Some(parent));
        (is_only && !parent.is_empty()).then_some(parent)
    }

    /// How fast the counts of the node grow, if they surely do.
    pub(crate) fn trend(&self) -> Option<Trend> {
        Trend::of(&self.points).filter(|trend| trend.least() > 0.0)
    }

    /// Whether a path may be that of one of them: it lies below the parent, if that is known.
    fn may_hold(&self, path: &str) -> bool {
        self.parent.as_ref().is_none_or(|parent| {
            let below = path.strip_prefix(parent.path.trim_end_matches('/'));
            below.is_some_and(|below| below.starts_with('/'))
        })
    }
}

/// The parent that a census without names tells.
fn seen_parent<'a>(origin: &Origin<'a>) -> Option<Parent<'a>> {
    let path = origin.parent()?;
    let (source, text) = match origin.pages {
        Some(pages) => {
            let n = count(pages.iter().sum());
            let text = format!("{n} pages of removed cgroups are charged to {path}");
            ("memcg: page owners", text)
        }
        None => {
            let text = format!("the kernel counts {} below {path}", count(origin.dying));
            ("memcg: cgroup.stat", text)
        }
    };
    Some(Parent {
        path,
        confidence: Confidence::CERTAIN,
        evidence: Evidence::speaks_for(source, text),
    })
}

/// The parent that timed reads were taken at, if most of the dying ones lie below it.
fn parent<'a>(case: &Case<'_>, reads: &'a MemcgReads, dying: f64) -> Option<Parent<'a>> {
    let path = reads.ancestor.as_deref()?;
    let number = |n: Option<u64>| n.map(|n| n as f64);
    let known = |confidence, source: &'static str, text| Parent {
        path,
        confidence,
        evidence: Evidence::speaks_for(source, text),
    };
    if let Some(n) = number(reads.ancestor_dying).filter(|n| *n >= 0.5 * dying) {
        let text = format!("the kernel counts {} below {path}", count(n as u64));
        return Some(known(Confidence::CERTAIN, "memcg: cgroup.stat", text));
    }
    let times = [
        number(reads.ancestor_ns),
        number(reads.root_ns),
        number(reads.leaf_ns),
    ];
    if let [Some(here), Some(root), Some(leaf)] = times
        && here >= 0.5 * root
        && here >= case.limit(&SLOW_TIMES) * leaf
    {
        let text = format!(
            "a read at {path} takes as long as at the root, {} and {}, so most of them lie there",
            time_ns(here),
            time_ns(root)
        );
        return Some(known(Confidence::CERTAIN, "memcg: timed reads", text));
    }
    // Beside others that have memory of dead ones nothing tells where the many are: a few with
    // much cache use more than many with a page each.
    number(reads.n_ancestors).filter(|n| *n <= 1.0)?;
    let bytes = number(reads.ancestor_bytes).filter(|bytes| *bytes >= BYTES_EACH * dying)?;
    let text = format!(
        "only {path} uses memory beyond the living, {} KiB: that of dead ones",
        count(bytes as u64 >> 10)
    );
    Some(known(Confidence::LIKELY, "memcg: counters", text))
}

#[cfg(test)]
mod tests {
    use sexton_model::diagnosis::Diagnosis;
    use sexton_model::fact::memcg;
    use sexton_model::record::Sink;
    use sexton_model::subject::SubjectKind;

    use crate::testing::{Churn, Watch, at, creations, lives};

    use super::*;

    const IMAGE: &str = "amazon/amazon-ecs-agent:latest";

    /// Counts of a node where nothing names the dying ones, and what a read costs there.
    fn counted(first: f64, each: f64, reads: MemcgReads) -> Watch {
        let mut watch = Watch::new(1000, 40);
        for census in 0..4_u32 {
            let mut out = Sink::new("memcg", at(1001 + 12 * u64::from(census)));
            let dying = first + each * f64::from(census);
            out.sample(&Subject::node(), &memcg::MEMCG_LIVE, 240.0);
            out.sample(&Subject::node(), &memcg::MEMCG_DYING, dying);
            watch.add(out);
        }
        let mut out = Sink::new("memcg", at(1002));
        out.event(at(1002), &Subject::node(), &MEMCG_READS, reads);
        watch.add(out);
        watch
    }

    /// Twelve containers that end while the pile is watched.
    fn with_containers(mut watch: Watch) -> Watch {
        watch.add(lives(1037, 3, 12, 1, IMAGE, "ecs-agent", "1"));
        watch
    }

    fn nowhere() -> MemcgReads {
        MemcgReads {
            file: "memory.stat".to_owned(),
            root_ns: Some(50_000),
            ..MemcgReads::default()
        }
    }

    fn docker() -> MemcgReads {
        MemcgReads {
            file: "memory.stat".to_owned(),
            ancestor: Some("/docker".to_owned()),
            ancestor_bytes: Some(200_000_000),
            n_ancestors: Some(1),
            ancestor_ns: Some(60_000),
            leaf_ns: Some(50_000),
            ..MemcgReads::default()
        }
    }

    #[track_caller]
    fn check(diagnosis: &Diagnosis, cause: &str, effect: &str, expected: Option<u8>) {
        let mut links = diagnosis.links.iter();
        let link = links.find(|one| one.cause.as_str() == cause && one.effect.as_str() == effect);
        let sure = link.map(|link| link.confidence);
        assert_eq!(
            sure,
            expected.map(Confidence::percent),
            "{:#?}",
            diagnosis.links
        );
    }

    #[test]
    fn a_pile_that_grows_as_containers_end_is_theirs() {
        let cause = format!("CTR001:{IMAGE}");
        let grows = with_containers(counted(30_000.0, 4.0, nowhere())).diagnose();
        check(&grows, &cause, "MCG001:node", Some(75));
        let placed = with_containers(counted(30_000.0, 4.0, docker())).diagnose();
        check(&placed, &cause, "MCG001:/docker", Some(85));
        // It stands, or grows by far more than they can leave.
        let stands = with_containers(counted(30_000.0, 0.0, nowhere())).diagnose();
        check(&stands, &cause, "MCG001:node", None);
        let more = with_containers(counted(30_000.0, 400.0, nowhere())).diagnose();
        check(&more, &cause, "MCG001:node", None);
        // Containers are made there, and it is not known to grow by them.
        let place = with_containers(counted(30_000.0, 0.0, docker())).diagnose();
        check(&place, &cause, "MCG001:/docker", Some(50));
    }

    /// The first census looks for owners of pages, and finds one parent; later ones only count.
    fn owned(watch: Watch, dying: u64) -> Watch {
        owned_by("/docker", watch, dying)
    }

    fn owned_by(parent: &str, mut watch: Watch, dying: u64) -> Watch {
        let mut out = Sink::new("memcg", at(1001));
        let gone = format!("{parent}/<gone>");
        let says = memcg::MemcgOrigin {
            pattern: Some(gone.clone()),
            example: Some(gone.clone()),
            dying: Some(dying),
            file: Some(dying),
            ..memcg::MemcgOrigin::default()
        };
        let subject = Subject::new(SubjectKind::Cgroup, gone);
        out.event(at(1001), &subject, &memcg::MEMCG_ORIGIN, says);
        watch.add(out);
        watch
    }

    #[test]
    fn counts_after_page_owners_were_looked_for_do_not_end_a_pile() {
        let stands = owned(counted(30_000.0, 0.0, nowhere()), 30_000).diagnose();
        let ids: Vec<String> = stands.findings.iter().map(|f| f.id().to_string()).collect();
        assert!(ids.contains(&"MCG001:/docker/<gone>".to_owned()), "{ids:?}");
        // Few, and more in each count.
        let grows = owned(counted(40.0, 4.0, nowhere()), 40).diagnose();
        let found = grows.findings.iter().find(|found| found.code == "MCG001");
        let found = found.expect("a pile");
        assert_eq!(found.subject.name.as_ref() as &str, "/docker/<gone>");
        assert_eq!(found.title, "52 dying memory cgroups, +1,200/h");
        // None is left.
        let over = owned(counted(40.0, -40.0 / 3.0, nowhere()), 40).diagnose();
        assert!(over.findings.is_empty(), "{:?}", over.findings);
    }

    /// Each of two parents may have nearly all of them, or one.
    #[test]
    fn a_pile_of_several_parents_is_found_as_one() {
        let both = owned(counted(60_000.0, 4.0, nowhere()), 1);
        let both = with_containers(owned_by("/system.slice", both, 1)).diagnose();
        let cause = format!("CTR001:{IMAGE}");
        check(&both, &cause, "MCG001:node", Some(75));
    }

    /// Thirty-six jobs, which leave a cgroup each below a directory.
    fn with_jobs(mut watch: Watch, is_released: bool) -> Diagnosis {
        let churn = |i: u64| Churn {
            path: format!("/jobs/job-{i}"),
            creator: ("jobber", 77),
            ancestry: "systemd[1]",
            unit: Some("jobber.service"),
            is_released,
        };
        watch.add(creations(1003, (0..36).map(churn)));
        watch.diagnose()
    }

    /// Few, of several parents: those that are removed under our eyes and stay tell which grows.
    #[test]
    fn few_that_become_more_are_of_the_directory_that_they_are_removed_from() {
        let several = |first, each| {
            let both = owned(counted(first, each, nowhere()), 1);
            owned_by("/system.slice", both, 1)
        };
        let found = |diagnosis: &Diagnosis| {
            let mut findings = diagnosis.findings.iter();
            let found = findings.find(|found| found.code == "MCG001");
            found.map(|found| (found.id().to_string(), found.title.clone()))
        };
        let grows = with_jobs(several(40.0, 8.0), false);
        let title = "64 dying memory cgroups, +2,400/h; new ones come from /jobs";
        let expected = ("MCG001:/jobs".to_owned(), title.to_owned());
        assert_eq!(found(&grows), Some(expected));
        check(&grows, "UNIT002:jobber.service", "MCG001:/jobs", Some(90));
        // They are released; they are fewer than a boot leaves; or others become more.
        assert_eq!(found(&with_jobs(several(40.0, 8.0), true)), None);
        assert_eq!(found(&with_jobs(several(2.0, 8.0), false)), None);
        assert_eq!(found(&with_jobs(several(40.0, 80.0), false)), None);
        assert_eq!(found(&with_jobs(several(40.0, 0.0), false)), None);
    }

    #[test]
    fn a_pile_below_the_parent_that_owns_the_pages_is_joined_to_its_containers() {
        let cause = format!("CTR001:{IMAGE}");
        let effect = "MCG001:/docker/<gone>";
        let grows = owned(counted(30_000.0, 4.0, nowhere()), 30_000);
        check(&with_containers(grows).diagnose(), &cause, effect, Some(85));
        let stands = owned(counted(30_000.0, 0.0, nowhere()), 30_000);
        check(
            &with_containers(stands).diagnose(),
            &cause,
            effect,
            Some(50),
        );
    }

    #[test]
    fn births_below_the_parent_that_owns_the_pages_lead_to_their_maker() {
        let churn = |path: &'static str| {
            move |i: u64| Churn {
                path: format!("{path}/job-{i}"),
                creator: ("jobber", 77),
                ancestry: "systemd[1]",
                unit: Some("jobber.service"),
                is_released: false,
            }
        };
        let judge = |path| {
            let mut watch = owned(counted(30_000.0, 8.0, nowhere()), 30_000);
            watch.add(creations(1003, (0..36).map(churn(path))));
            watch.diagnose()
        };
        let (cause, effect) = ("UNIT002:jobber.service", "MCG001:/docker/<gone>");
        check(&judge("/docker"), cause, effect, Some(90));
        // They are held too, but no page of the pile is theirs.
        check(&judge("/elsewhere"), cause, effect, None);
    }

    #[test]
    fn cgroups_that_were_removed_and_are_held_tell_whose_the_pile_is() {
        let diagnosis = with_jobs(counted(30_000.0, 8.0, nowhere()), false);
        check(
            &diagnosis,
            "UNIT002:jobber.service",
            "MCG001:node",
            Some(90),
        );
    }
}
