//! LIM001: a limit of the kernel is near or reached
//!
//! Means: the kernel limits the number of open files, threads, PIDs, tracked connections,
//! neighbours, memory cgroups, tasks of a cgroup, open files of a process, inotify instances and
//! watches of a user, and local ports to one destination. Where the limit is reached, the next one is refused: fork
//! fails with EAGAIN, open with ENFILE, inotify_init with EMFILE, connect with EADDRNOTAVAIL,
//! packets of new connections are dropped. Programs report that badly or not at all.
//! Not this: a limit that the owner set tight and that is used as intended; raise the
//! threshold for such a node. A cgroup's limit of fewer than 64 tasks counts only once the kernel
//! has refused a task. A peak that is gone weighs less than a limit that is near now. Of all
//! processes, the one nearest to its limit of open files is named.
//! By hand: `cat /proc/sys/fs/file-nr /proc/loadavg`; `sysctl net.netfilter.nf_conntrack_count
//! net.netfilter.nf_conntrack_max`; `pids.current`, `pids.max` and `pids.events` of a cgroup.
//! Next: find what uses it up, and only then raise the limit (`LimitNOFILE=` of a unit's processes).

use sexton_model::fact::Measure;
use sexton_model::fact::limit::{LIMIT_HITS, LIMIT_MOST, LIMIT_USED, LIMIT_USED_RATIO};
use sexton_model::fact::memcg::MEMCG_LIVE;
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::moment::Moment;
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::limits::{self, Height, LEAST_TASKS};
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures;
use crate::words::unit_name::{self, systemctl};

const CODE: &str = "LIM001";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::LimitNear,
    title: "a limit of the kernel is near or reached",
    sees: "kernel limits",
    needs: &["limits"],
    uses: &["memcg"],
    is_essential: true,
    least: None,
    cause: Cause::Never,
    offer: Offer::NOTHING,
    thresholds: &[&NEAR, &FULL, &LEAST_TASKS],
    source: include_str!("lim001_limit_near.rs"),
    judge,
};

static NEAR: Threshold = Threshold {
    rule: CODE,
    name: "near",
    default: 0.9,
    range: (0.1, 1.0),
    unit: Measure::Ratio,
    why: "from this part of a limit on there is a warning: a tenth is what is left for a burst \
          or a deploy, and the kernel keeps no reserve",
};

static FULL: Threshold = Threshold {
    rule: CODE,
    name: "full",
    default: 0.98,
    range: (0.1, 1.0),
    unit: Measure::Ratio,
    why: "from this part of a limit on it is as good as reached: between two samples of 10 s a \
          fiftieth comes and goes unseen",
};

/// What a limit is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Node,
    Cgroup,
    User,
    Process,
    Destination,
}

/// What a limit counts, and what is refused when it is reached.
struct Known {
    /// The setting, which begins the name that the sensor gives the limit; behind it stands
    /// whose it is, unless it is the node's.
    setting: &'static str,
    scope: Scope,
    counts: &'static str,
    refused: &'static str,
    look: &'static str,
}

/// The name of the limit on live memory cgroups, and the limit: `MEM_CGROUP_ID_MAX`.
const MEMORY_CGROUP_IDS: &str = "memory cgroup ids";
const MOST_MEMORY_CGROUPS: f64 = 65_535.0;

/// The limits of the node, by the names that the sensor gives them.
static KNOWN: &[Known] = &[
    Known {
        setting: "fs.file-max",
        scope: Scope::Node,
        counts: "open files",
        refused: "no process can open a file or a socket (ENFILE)",
        look: "sudo sh -c 'for p in /proc/[0-9]*; do echo $(ls $p/fd | wc -l) $p $(cat $p/comm); \
               done 2>/dev/null | sort -rn | head'",
    },
    Known {
        setting: "kernel.threads-max",
        scope: Scope::Node,
        counts: "threads",
        refused: "no process can start a thread or a process (EAGAIN)",
        look: "ps -eo nlwp,pid,comm --sort=-nlwp | head",
    },
    Known {
        setting: "kernel.pid_max",
        scope: Scope::Node,
        counts: "PIDs",
        refused: "no process can start a thread or a process (EAGAIN)",
        look: "ps -eo nlwp,pid,comm --sort=-nlwp | head",
    },
    Known {
        setting: "net.netfilter.nf_conntrack_max",
        scope: Scope::Node,
        counts: "tracked connections",
        refused: "packets of new connections are dropped",
        look: "sudo conntrack -S",
    },
    Known {
        setting: "net.ipv4.neigh.default.gc_thresh3",
        scope: Scope::Node,
        counts: "IPv4 neighbours",
        refused: "packets to new neighbours are dropped",
        look: "ip -s -4 neigh show | wc -l",
    },
    Known {
        setting: "net.ipv6.neigh.default.gc_thresh3",
        scope: Scope::Node,
        counts: "IPv6 neighbours",
        refused: "packets to new neighbours are dropped",
        look: "ip -s -6 neigh show | wc -l",
    },
    Known {
        setting: MEMORY_CGROUP_IDS,
        scope: Scope::Node,
        counts: "memory cgroups",
        refused: "no container or unit can start (ENOSPC or ENOMEM)",
        look: "sudo sexton zombies",
    },
    Known {
        setting: limits::OF_TASKS,
        scope: Scope::Cgroup,
        counts: "tasks",
        refused: "nothing in it can start a thread or a process (EAGAIN)",
        look: "systemd-cgtop --order=tasks",
    },
    Known {
        setting: "fs.inotify.max_user_instances",
        scope: Scope::User,
        counts: "inotify instances",
        refused: "no process of the user can watch files (EMFILE, \"too many open files\")",
        look: INOTIFY,
    },
    Known {
        setting: "fs.inotify.max_user_watches",
        scope: Scope::User,
        counts: "inotify watches",
        refused: "no process of the user can watch one more file (ENOSPC)",
        look: INOTIFY,
    },
    Known {
        setting: "RLIMIT_NOFILE",
        scope: Scope::Process,
        counts: "open files",
        refused: "it cannot open one more file or socket (EMFILE, \"too many open files\")",
        look: "",
    },
    Known {
        setting: LOCAL_PORTS,
        scope: Scope::Destination,
        counts: "local ports",
        refused: "no process can connect there (EADDRNOTAVAIL)",
        look: "ss -Htanp | awk '{print $1, $5, $6}' | sort | uniq -c | sort -rn | head",
    },
];

/// Processes by their inotify instances.
const INOTIFY: &str = "sudo find /proc/[0-9]*/fd -lname anon_inode:inotify 2>/dev/null | \
                       cut -d/ -f3 | sort | uniq -c | sort -rn | head";

const LOCAL_PORTS: &str = "net.ipv4.ip_local_port_range";

/// A limit and the samples of it.
struct Limit<'a> {
    subject: &'a Subject,
    known: &'static Known,
    /// Whose it is: the cgroup's path, the user's number, the address; empty for the node's.
    whose: &'a str,
    /// The highest since it came near and stayed there; of a limit that is not near any more the
    /// highest of all.
    worst: (Moment, f64),
    is_near_now: bool,
    used: f64,
    most: f64,
    /// How often it was reached while it was watched, and when that was last seen.
    hits: Option<(Moment, f64)>,
    /// How often since it was set, by the kernel's count.
    refused: f64,
    /// When it came near.
    first_near: Option<Moment>,
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    for subject in case.by_subject(&LIMIT_USED_RATIO).into_keys() {
        let Some(limit) = Limit::of(case, subject) else {
            continue;
        };
        if let Some(severity) = limit.severity(case) {
            out.found(limit.finding(case, severity));
        }
    }
    let ids = Subject::new(SubjectKind::Limit, MEMORY_CGROUP_IDS);
    if case.samples(&LIMIT_USED_RATIO, &ids).next().is_none() {
        of_census(case, &ids, out);
    }
}

/// On cgroup v1 no file counts the live memory cgroups, but a census does. A dying one gives its
/// id back.
fn of_census(case: &Case<'_>, ids: &Subject, out: &mut Findings) {
    let node = Subject::node();
    let samples: Vec<(Moment, f64)> = case.samples(&MEMCG_LIVE, &node).collect();
    let ratios = samples.iter();
    let ratios: Vec<(Moment, f64)> = ratios
        .map(|(at, used)| (*at, used / MOST_MEMORY_CGROUPS))
        .collect();
    let known = KNOWN
        .iter()
        .find(|known| known.setting == MEMORY_CGROUP_IDS);
    let (Some(height), Some(known)) = (Height::of(&ratios, case.limit(&NEAR)), known) else {
        return;
    };
    let limit = Limit {
        subject: ids,
        known,
        whose: "",
        worst: height.worst,
        is_near_now: height.is_near_now,
        used: (height.worst.1 * MOST_MEMORY_CGROUPS).round(),
        most: MOST_MEMORY_CGROUPS,
        hits: None,
        refused: 0.0,
        first_near: height.first_near,
    };
    if let Some(severity) = limit.severity(case) {
        out.found(limit.finding(case, severity));
    }
}

impl<'a> Limit<'a> {
    fn of(case: &Case<'_>, subject: &'a Subject) -> Option<Self> {
        let name: &str = &subject.name;
        let (known, whose) = KNOWN.iter().find_map(|known| {
            let rest = name.strip_prefix(known.setting)?;
            match known.scope {
                Scope::Node => rest.is_empty().then_some((known, rest)),
                Scope::Cgroup => Some((known, rest.strip_prefix(' ')?)),
                Scope::User => Some((known, rest.strip_prefix(" user ")?)),
                Scope::Process => Some((known, rest.strip_prefix(" pid ")?)),
                Scope::Destination => Some((known, rest.strip_prefix(" to ")?)),
            }
        })?;
        let samples: Vec<_> = case.samples(&LIMIT_USED_RATIO, subject).collect();
        let height = Height::of(&samples, case.limit(&NEAR))?;
        let at_worst = |fact| {
            let mut samples = case.samples(fact, subject);
            samples
                .find(|(at, _)| *at == height.worst.0)
                .map(|(_, value)| value)
        };
        Some(Self {
            subject,
            known,
            whose,
            worst: height.worst,
            is_near_now: height.is_near_now,
            used: at_worst(&LIMIT_USED)?,
            most: at_worst(&LIMIT_MOST)?,
            hits: hits(case, subject),
            refused: case.latest(&LIMIT_HITS, subject).unwrap_or(0.0),
            first_near: height.first_near,
        })
    }

    fn severity(&self, case: &Case<'_>) -> Option<Severity> {
        let ratio = self.worst.1;
        let is_near = ratio >= case.limit(&NEAR);
        if self.known.scope == Scope::Process && is_near {
            // It is in trouble, the node is not.
            return Some(match self.is_near_now {
                true => Severity::Warning,
                false => Severity::Note,
            });
        }
        let least = case.limit(&LEAST_TASKS);
        match self.hits {
            Some(_) => Some(Severity::Serious),
            None if limits::is_as_meant(&self.subject.name, self.most, self.refused, least) => None,
            None if !is_near => None,
            None => {
                let is_full = ratio >= case.limit(&FULL);
                Some(match (is_full, self.is_near_now) {
                    (true, true) => Severity::Serious,
                    (true, false) | (false, true) => Severity::Warning,
                    (false, false) => Severity::Note,
                })
            }
        }
    }

    fn cgroup(&self) -> Option<&'a str> {
        (self.known.scope == Scope::Cgroup).then_some(self.whose)
    }

    /// The number and the name of a process.
    fn process(&self) -> Option<(u32, &'a str)> {
        let (pid, comm) = self.whose.split_once(' ')?;
        let pid = pid.parse().ok()?;
        (self.known.scope == Scope::Process).then_some((pid, comm))
    }

    /// Whose it is: a unit, or a cgroup by its path; a user; a process; the node.
    fn owner(&self) -> String {
        match self.known.scope {
            Scope::Node | Scope::Destination => "the node".to_owned(),
            Scope::User if self.whose == "0" => "root".to_owned(),
            Scope::User => format!("user {}", self.whose),
            Scope::Process => match self.process() {
                Some((pid, comm)) => format!("{comm} (pid {pid})"),
                None => format!("process {}", self.whose),
            },
            Scope::Cgroup => {
                unit_name::of_path(self.whose).unwrap_or_else(|| format!("cgroup {}", self.whose))
            }
        }
    }

    /// What it counts, and for which destination.
    fn counts(&self) -> String {
        let counts = self.known.counts;
        match self.known.scope {
            Scope::Destination => format!("{counts} in use to {}", self.whose),
            Scope::Cgroup if self.most == 1.0 => "task".to_owned(),
            _ => counts.to_owned(),
        }
    }

    fn title(&self, case: &Case<'_>) -> String {
        let (used, most) = (
            figures::count(self.used as u64),
            figures::count(self.most as u64),
        );
        let counts = self.counts();
        let owner = self.owner();
        match self.hits {
            Some((_, n)) => format!(
                "{owner} has reached its limit of {most} {counts}: refused {} during the watch",
                figures::times(n as usize)
            ),
            None if self.is_near_now => format!("{owner} has {used} {counts} of at most {most}"),
            None => format!(
                "{owner} had {used} {counts} of at most {most}, {}",
                figures::before(case.now(), self.worst.0)
            ),
        }
    }

    fn finding(&self, case: &Case<'_>, severity: Severity) -> Finding {
        Finding {
            code: CODE,
            subject: self.subject.clone(),
            severity,
            confidence: Confidence::CERTAIN,
            title: self.title(case),
            figure: format!(
                "{} of {}",
                figures::percent(self.worst.1),
                figures::count(self.most as u64)
            ),
            since: self.first_near.or(self.hits.map(|(at, _)| at)),
            evidence: self.evidence(case),
            remedies: self.remedies(),
            touched: self.touched(),
            episodes: Vec::new(),
        }
    }

    fn evidence(&self, case: &Case<'_>) -> Vec<Evidence> {
        let setting = self.known.setting;
        let source = format!("limits: {}", self.subject.name);
        let used = format!(
            "{} {} of {} ({}) at the highest, {}",
            figures::count(self.used as u64),
            self.counts(),
            figures::count(self.most as u64),
            figures::percent(self.worst.1),
            figures::before(case.now(), self.worst.0)
        );
        let used = match self.worst.1 >= case.limit(&NEAR) {
            true => Evidence::speaks_for(&source, used),
            // Reached in between, by the kernel's own count.
            false => Evidence::against(&source, used),
        };
        let mut all = vec![used.value(self.worst.1).at(self.worst.0)];
        if let Some((at, n)) = self.hits {
            let text = format!("{setting} refused {} more", figures::count(n as u64));
            all.push(Evidence::speaks_for(&source, text).value(n).at(at));
        }
        all.push(Evidence::speaks_for(
            &source,
            format!("when it is reached, {}", self.known.refused),
        ));
        all
    }

    fn remedies(&self) -> Vec<Remedy> {
        let look = match self.process() {
            Some((pid, _)) => format!(
                "sudo ls -l /proc/{pid}/fd | sed 's/.*-> //' | sort | uniq -c | sort -rn | head"
            ),
            None => self.known.look.to_owned(),
        };
        let text = format!("Find what uses up the {}", self.known.counts);
        let look = Remedy::command(RemedyKind::Look, text, look);
        let mut remedies = vec![match self.process() {
            Some((pid, _)) => look.of_process(pid),
            None => look,
        }];
        let twice = (self.most as u64).saturating_mul(2);
        remedies.extend(match (self.cgroup(), self.known.setting) {
            (None, _) if self.known.scope == Scope::Process => self.process().map(|(pid, comm)| {
                Remedy::command(
                    RemedyKind::Stop,
                    format!("Raise the limit of {comm} until it restarts, if the use is meant"),
                    format!("sudo prlimit --pid {pid} --nofile={twice}"),
                )
                .of_process(pid)
            }),
            (Some(cgroup), _) => unit_name::of_path(cgroup).map(|unit| {
                let set = systemctl("set-property --runtime", &unit);
                Remedy::command(
                    RemedyKind::Stop,
                    "Raise the limit until the next boot, if the use is meant",
                    format!("{set} TasksMax={twice}"),
                )
            }),
            (None, MEMORY_CGROUP_IDS) => Some(Remedy::advice(
                RemedyKind::Stop,
                "Remove cgroups that are empty; this limit cannot be raised",
            )),
            (None, LOCAL_PORTS) => Some(Remedy::command(
                RemedyKind::Stop,
                "Take more ports until the next boot, if the connections are meant",
                format!("sudo sysctl -w {LOCAL_PORTS}='1024 65535'"),
            )),
            (None, setting) => Some(Remedy::command(
                RemedyKind::Stop,
                "Raise the limit until the next boot, if the use is meant",
                format!("sudo sysctl -w {setting}={twice}"),
            )),
        });
        remedies
    }

    fn touched(&self) -> Vec<Subject> {
        let mut touched = vec![self.subject.clone()];
        let process = self.process().map(|(pid, _)| pid.to_string());
        touched.extend(process.map(|pid| Subject::new(SubjectKind::Process, pid)));
        if let Some(cgroup) = self.cgroup() {
            touched.push(Subject::new(SubjectKind::Cgroup, cgroup));
            let unit = unit_name::of_path(cgroup);
            touched.extend(unit.map(|unit| Subject::new(SubjectKind::Unit, unit)));
        }
        touched
    }
}

/// How much the count of refusals grew, and when it last did.
fn hits(case: &Case<'_>, subject: &Subject) -> Option<(Moment, f64)> {
    let mut before: Option<f64> = None;
    let (mut sum, mut last) = (0.0, None);
    for (at, n) in case.samples(&LIMIT_HITS, subject) {
        // A counter that is less than before began anew.
        if let Some(grown) = before.map(|before| n - before).filter(|grown| *grown > 0.0) {
            sum += grown;
            last = Some(at);
        }
        before = Some(n);
    }
    last.map(|at| (at, sum))
}

#[cfg(test)]
mod tests;
