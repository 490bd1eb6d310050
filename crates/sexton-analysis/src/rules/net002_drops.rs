//! NET002: packets or connections are dropped, and more and more of them
//!
//! Means: the node has no room for what arrives: the receive ring of a network device is full, the
//! backlog of a core, the table of tracked connections, or the queue of a socket whose program
//! does not accept connections as fast as they come. Clients see retries of 1 s and more, and
//! time-outs. Or a link flaps.
//! Not this: a few drops in one burst, after a start or a scan of ports; packets of protocols
//! that the node does not speak; drops in other network namespaces, which are not seen.
//! By hand: `nstat -az TcpExtListenOverflows TcpExtListenDrops`, `ss -ltn` (Recv-Q greater than
//! Send-Q), `cat /proc/net/softnet_stat`, `ip -s -s link`, `conntrack -S`.
//! Next: for a listen queue, find out why the program does not accept (it hangs, or has too
//! few workers), then raise its backlog and `net.core.somaxconn`; for a ring, `ethtool -g`; for
//! tracked connections, LIM001.

use std::collections::BTreeMap;
use std::time::Duration;

use sexton_model::fact::network::{self as fact, LISTEN_QUEUE, ListenQueue};
use sexton_model::fact::nic::NIC_CARRIER_CHANGES;
use sexton_model::fact::{Fact, Measure};
use sexton_model::family::Family;
use sexton_model::finding::{Confidence, Episode, Evidence, Finding, Remedy, RemedyKind, Severity};
use sexton_model::fix::Offer;
use sexton_model::gap::Why;
use sexton_model::moment::Moment;
use sexton_model::record::Event;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::shell_word;

use crate::case::Case;
use crate::rule::{Cause, Findings, Rule, Threshold};
use crate::words::figures::{count, plural, time, times};
use crate::words::unit_name;

const CODE: &str = "NET002";

pub(super) static RULE: Rule = Rule {
    code: CODE,
    family: Family::NetworkDrops,
    title: "packets or connections are dropped, and more and more of them",
    sees: "dropped packets",
    needs: &["network"],
    uses: &["nics"],
    is_essential: true,
    least: Some(&WATCH),
    cause: Cause::WhenProgram,
    offer: Offer::NOTHING,
    thresholds: &[&WATCH, &TIMES, &PACKETS, &CONNECTIONS, &FLAPS],
    source: include_str!("net002_drops.rs"),
    judge,
};

static WATCH: Threshold = Threshold {
    rule: CODE,
    name: "watch_seconds",
    default: 9.0,
    range: (3.0, 3600.0),
    unit: Measure::Seconds,
    why: "counters are read every 3 s, and one that goes on growing shows in three steps: a shorter \
          watch cannot tell",
};

static TIMES: Threshold = Threshold {
    rule: CODE,
    name: "times",
    default: 3.0,
    range: (1.0, 1e6),
    unit: Measure::Count,
    why: "samples, 3 s apart, in which a counter grew. One burst ends within a sample or two; what \
          grows in three goes on",
};

static PACKETS: Threshold = Threshold {
    rule: CODE,
    name: "packets",
    default: 100.0,
    range: (1.0, 1e12),
    unit: Measure::Count,
    why: "packets dropped within a minute. Connections repeat a lost packet within milliseconds, so \
          fewer are not noticed",
};

static CONNECTIONS: Threshold = Threshold {
    rule: CODE,
    name: "connections",
    default: 10.0,
    range: (1.0, 1e9),
    unit: Measure::Count,
    why: "connections dropped within a minute. Each of them costs its client at least 1 s, which is \
          the first time-out of a TCP handshake (RFC 6298)",
};

static FLAPS: Threshold = Threshold {
    rule: CODE,
    name: "carrier_changes",
    default: 4.0,
    range: (1.0, 1e6),
    unit: Measure::Count,
    why: "changes of a link within ten minutes: a link that is set up or reconfigured goes down and \
          comes back once, which are two",
};

/// How a counter grew.
struct Growth {
    from: Moment,
    to: Moment,
    n: f64,
    steps: Vec<Step>,
    /// How far two samples are apart, where none was missed.
    beat: Duration,
}

/// Between two samples.
struct Step {
    from: Moment,
    to: Moment,
    n: f64,
}

impl Growth {
    fn of(case: &Case<'_>, fact: &'static Fact, subject: &Subject) -> Option<Self> {
        let mut before: Option<(Moment, f64)> = None;
        let mut steps: Vec<Step> = Vec::new();
        let mut beat = Duration::MAX;
        for (to, value) in case.samples(fact, subject) {
            // A counter that is less than before began anew.
            let grown = before.map(|(from, before)| (from, value - before));
            beat = grown.map_or(beat, |(from, _)| beat.min(to.since(from)));
            let step = grown.filter(|(_, n)| *n > 0.0);
            steps.extend(step.map(|(from, n)| Step { from, to, n }));
            before = Some((to, value));
        }
        Some(Self {
            from: steps.first()?.from,
            to: steps.last()?.to,
            n: steps.iter().map(|step| step.n).sum(),
            steps,
            beat,
        })
    }

    /// In how many samples, and by how much, it grew in each time of this length that ends with
    /// a sample.
    fn within(&self, length: Duration) -> impl Iterator<Item = (usize, f64)> {
        let (mut begin, mut n) = (0, 0.0);
        self.steps.iter().enumerate().map(move |(end, last)| {
            n += last.n;
            while last.to.since(self.steps[begin].from) > length && begin < end {
                n -= self.steps[begin].n;
                begin += 1;
            }
            (end - begin + 1, n)
        })
    }

    fn is_grave(&self, case: &Case<'_>, least: &'static Threshold) -> bool {
        let (n_least, least) = (case.limit(&TIMES), case.limit(least));
        // An agent may be told to look less often than that.
        let length = MINUTE.max(self.beat.mul_f64(n_least));
        let mut minutes = self.within(length);
        minutes.any(|(n_times, n)| n_times as f64 >= n_least && n >= least)
    }

    /// Changes of a link that was not only set up.
    fn is_flapping(&self, case: &Case<'_>) -> bool {
        let least = case.limit(&FLAPS);
        self.within(TEN_MINUTES).any(|(_, n)| n >= least)
    }

    fn total(&self) -> String {
        let length = self.to.since(self.from);
        format!("{} in {}", count(self.n as u64), time(length))
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const TEN_MINUTES: Duration = Duration::from_secs(600);

/// Why counters that did not grow, or not enough, say nothing.
fn unread(case: &Case<'_>) -> Option<String> {
    let node = Subject::node();
    let least = case.limit(&TIMES) as usize + 1;
    let counters = [
        &fact::NETWORK_BACKLOG_DROPS,
        &fact::NETWORK_LISTEN_OVERFLOWS,
    ];
    counters.into_iter().find_map(|fact| {
        let n = case.samples(fact, &node).count();
        let failed = || {
            case.gaps().iter().find(|(_, about, gap)| {
                gap.sensor == "network" && **about == node && !matches!(gap.why, Why::Unsupported)
            })
        };
        match n {
            0 => failed().map(|(_, _, gap)| gap.text.clone()),
            n if n < least => Some(format!(
                "its counters were read {}, it takes {} to show",
                times(n),
                times(least)
            )),
            _ => None,
        }
    })
}

fn judge(case: &Case<'_>, out: &mut Findings) {
    let n_found = out.findings.len();
    find(case, out);
    if let Some(why) = unread(case).filter(|_| out.findings.len() == n_found) {
        out.not_judged(CODE, why);
    }
}

fn find(case: &Case<'_>, out: &mut Findings) {
    let node = Subject::node();
    for kind in &NODE_WIDE {
        let growth = Growth::of(case, kind.fact, &node);
        if let Some(growth) = growth.filter(|growth| growth.is_grave(case, &PACKETS)) {
            out.found(kind.finding(case, &growth));
        }
    }
    let overflows = Growth::of(case, &fact::NETWORK_LISTEN_OVERFLOWS, &node);
    if let Some(growth) = overflows.filter(|growth| growth.is_grave(case, &CONNECTIONS)) {
        out.found(overflow(case, &growth));
    }
    for device in case.by_subject(&fact::NIC_RING_DROPS).into_keys() {
        let growth = Growth::of(case, &fact::NIC_RING_DROPS, device);
        if let Some(growth) = growth.filter(|growth| growth.is_grave(case, &PACKETS)) {
            out.found(ring(device, &growth));
        }
    }
    for device in case.by_subject(&NIC_CARRIER_CHANGES).into_keys() {
        let growth = Growth::of(case, &NIC_CARRIER_CHANGES, device);
        if let Some(growth) = growth.filter(|growth| growth.is_flapping(case)) {
            out.found(flaps(device, &growth));
        }
    }
}

/// A finding that lacks only what is special to it.
fn found(subject: Subject, title: String, growth: &Growth, evidence: Vec<Evidence>) -> Finding {
    Finding {
        code: CODE,
        severity: Severity::Warning,
        confidence: Confidence::CERTAIN,
        title,
        figure: format!("{} dropped", growth.total()),
        since: Some(growth.from),
        evidence,
        remedies: Vec::new(),
        touched: vec![subject.clone()],
        episodes: vec![Episode {
            from: growth.from,
            to: growth.to,
            touched: vec![subject.clone()],
        }],
        subject,
    }
}

fn grew(source: &'static str, what: &str, growth: &Growth) -> Evidence {
    let text = format!(
        "{what} grew by {}, in {} samples",
        growth.total(),
        count(growth.steps.len() as u64)
    );
    Evidence::speaks_for(source, text)
        .value(growth.n)
        .at(growth.to)
}

/// What is dropped for the node as a whole.
struct NodeWide {
    fact: &'static Fact,
    subject: &'static str,
    source: &'static str,
    counter: &'static str,
    title: &'static str,
    remedy: &'static str,
    command: &'static str,
}

static NODE_WIDE: [NodeWide; 2] = [
    NodeWide {
        fact: &fact::NETWORK_BACKLOG_DROPS,
        subject: "net.core.netdev_max_backlog",
        source: "network: /proc/net/softnet_stat",
        counter: "dropped",
        title: "the kernel drops received packets: the backlog of a core is full",
        remedy: "Double the backlog until the next boot, and find what keeps the core busy",
        command: "sudo sysctl -w net.core.netdev_max_backlog=2000",
    },
    NodeWide {
        fact: &fact::NETWORK_CONNTRACK_DROPS,
        subject: "net.netfilter.nf_conntrack_max",
        source: "network: /proc/net/stat/nf_conntrack",
        counter: "drop, early_drop and insert_failed",
        title: "connection tracking drops packets of new connections",
        remedy: "See whether the table is full or entries clash",
        command: "sudo conntrack -S",
    },
];

impl NodeWide {
    fn finding(&self, case: &Case<'_>, growth: &Growth) -> Finding {
        let subject = Subject::new(SubjectKind::Limit, self.subject);
        let mut evidence = vec![grew(self.source, self.counter, growth)];
        let squeezes = Growth::of(case, &fact::NETWORK_SQUEEZES, &Subject::node());
        let is_backlog = std::ptr::eq(self.fact, &fact::NETWORK_BACKLOG_DROPS);
        evidence.extend(
            squeezes
                .filter(|_| is_backlog)
                .map(|squeezes| grew(self.source, "time_squeeze", &squeezes)),
        );
        let title = format!("{}: {}", self.title, growth.total());
        let mut finding = found(subject, title, growth, evidence);
        finding.remedies = vec![Remedy::command(RemedyKind::Look, self.remedy, self.command)];
        finding
    }
}

fn ring(device: &Subject, growth: &Growth) -> Finding {
    let title = format!(
        "{} drops received packets: its ring is full: {}",
        device.name,
        growth.total()
    );
    let source = "network: rx_missed_errors, rx_fifo_errors";
    let evidence = vec![grew(source, "the count of missed packets", growth)];
    let mut finding = found(device.clone(), title, growth, evidence);
    let name = shell_word(&device.name);
    finding.remedies = vec![
        Remedy::command(
            RemedyKind::Look,
            "See how large the ring is and may be; ethtool -G sets it",
            format!("ethtool -g {name}"),
        ),
        Remedy::command(
            RemedyKind::Look,
            "See which core takes its interrupts, and what keeps that core busy",
            format!("grep {name} /proc/interrupts"),
        ),
    ];
    finding
}

fn flaps(device: &Subject, growth: &Growth) -> Finding {
    let title = format!(
        "the link of {} goes down and comes back: {} changes in {}",
        device.name,
        count(growth.n as u64),
        time(growth.to.since(growth.from))
    );
    let evidence = vec![grew(
        "nics: carrier_changes",
        "the count of changes",
        growth,
    )];
    let mut finding = found(device.clone(), title, growth, evidence);
    finding.figure = format!("{} changes of the link", count(growth.n as u64));
    finding.remedies = vec![
        Remedy::advice(
            RemedyKind::Stop,
            "Replace the cable or the transceiver, or look at the switch's port",
        ),
        Remedy::command(
            RemedyKind::Look,
            "See what the kernel says of the link",
            format!("journalctl -k -g {}", shell_word(&device.name)),
        ),
    ];
    finding
}

/// The socket whose queue was full most often while connections were dropped.
fn fullest<'a>(case: &Case<'a>, growth: &Growth) -> Option<(Event<'a, ListenQueue>, usize)> {
    let told = case.events(&LISTEN_QUEUE);
    let told = told.filter(|event| event.at >= growth.from && event.says.full);
    let mut times: BTreeMap<&str, (Event<'a, ListenQueue>, usize)> = BTreeMap::new();
    for event in told {
        let seen = times.entry(&event.says.address).or_insert((event, 0));
        *seen = (event, seen.1 + 1);
    }
    times.into_values().max_by_key(|(_, n)| *n)
}

fn overflow(case: &Case<'_>, growth: &Growth) -> Finding {
    const SOURCE: &str = "network: /proc/net/netstat";
    let mut evidence = vec![grew(SOURCE, "ListenOverflows", growth)];
    let Some((event, n)) = fullest(case, growth) else {
        evidence.push(Evidence::missing(
            "network: sock_diag",
            "whose queue it is was not seen: no queue was full when it was looked at",
        ));
        let title = format!(
            "new connections are dropped because a listen queue is full: {}",
            growth.total()
        );
        let subject = Subject::new(SubjectKind::Limit, "net.core.somaxconn");
        let mut finding = found(subject, title, growth, evidence);
        finding.remedies = vec![see_queues()];
        return finding;
    };
    let says = event.says;
    let text = format!(
        "{} connections waited at {} (backlog {}) in {}",
        count(says.queued),
        says.address,
        count(says.backlog),
        plural(n as u64, "look")
    );
    evidence.push(Evidence::speaks_for("network: sock_diag", text).at(event.at));
    let who = called(says);
    let title = format!(
        "{who} does not accept connections at {} fast enough: {} dropped",
        says.address,
        growth.total()
    );
    let touched = touched(says);
    let subject = touched.first().cloned();
    let subject = subject.unwrap_or_else(|| Subject::new(SubjectKind::Limit, &*says.address));
    let mut finding = found(subject, title, growth, evidence);
    finding.remedies = remedies(says);
    finding.touched.extend(touched);
    finding.touched.dedup();
    finding
}

fn see_queues() -> Remedy {
    Remedy::command(
        RemedyKind::Look,
        "See which queues are full: Recv-Q greater than Send-Q",
        "ss -ltnp",
    )
}

fn unit_of(says: &ListenQueue) -> Option<String> {
    let of_path = says.cgroup.as_deref().and_then(unit_name::of_path);
    let unit = of_path.or_else(|| says.unit.clone());
    unit.filter(|unit| unit.ends_with(".service"))
}

/// `web.service (nginx)`, `nginx (pid 812)`, `a program`.
fn called(says: &ListenQueue) -> String {
    let comm = says.comm.as_deref().unwrap_or("a process");
    let short = |id: &str| id.get(..12).unwrap_or(id).to_owned();
    match (&says.container, unit_of(says), says.pid) {
        (Some(id), _, _) => format!("container {} ({comm})", short(id)),
        (None, Some(unit), _) => format!("{unit} ({comm})"),
        (None, None, Some(pid)) => format!("{comm} (pid {pid})"),
        (None, None, None) => "a program".into(),
    }
}

fn remedies(says: &ListenQueue) -> Vec<Remedy> {
    let mut all = Vec::new();
    all.extend(says.pid.map(|pid| {
        Remedy::command(
            RemedyKind::Look,
            "See what its threads wait for",
            format!("ps -L -o tid,stat,wchan:32,comm -p {pid}"),
        )
    }));
    all.push(see_queues());
    let text = "Give it more workers; then raise the backlog that it listens with, and \
                net.core.somaxconn";
    all.push(Remedy::advice(RemedyKind::Prevent, text));
    all
}

fn touched(says: &ListenQueue) -> Vec<Subject> {
    let named = [
        (SubjectKind::Container, says.container.clone()),
        (SubjectKind::Unit, unit_of(says)),
        (SubjectKind::Process, says.pid.map(|pid| pid.to_string())),
    ];
    let named = named.into_iter();
    named
        .filter_map(|(kind, name)| Some(Subject::new(kind, name?)))
        .collect()
}

#[cfg(test)]
mod tests;
