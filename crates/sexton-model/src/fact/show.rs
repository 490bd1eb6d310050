//! How the time line shows facts: the groups, the lanes of events, and what a fact says of
//! itself there. The page and the terminal view draw from this alone.

use std::borrow::Cow;

use crate::payload::Payload;
use crate::subject::Subject;

/// One millisecond.
pub const MS: u64 = 1_000_000;
/// One second.
pub const SECOND: u64 = 1000 * MS;

/// Where a lane belongs, in the order in which groups are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Whether cores were busy, and how long tasks waited for one.
    Cores,
    /// How much of a core the kernel had.
    Kernel,
    /// Memory cgroups.
    Memcg,
    /// Units and the cgroups they create.
    Units,
    /// Containers.
    Containers,
    /// Network polling.
    Network,
    /// Network devices.
    Nic,
    /// The kernel log, and processes that failed.
    Log,
    /// Pressure stall information.
    Pressure,
    /// Blind spots.
    Gaps,
}

impl Group {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Group; 10] = [
        Group::Cores,
        Group::Kernel,
        Group::Memcg,
        Group::Units,
        Group::Containers,
        Group::Network,
        Group::Nic,
        Group::Log,
        Group::Pressure,
        Group::Gaps,
    ];

    /// Its name in answers of the HTTP interface.
    pub fn id(self) -> &'static str {
        match self {
            Group::Cores => "cores",
            Group::Kernel => "kernel",
            Group::Memcg => "memcg",
            Group::Units => "units",
            Group::Containers => "containers",
            Group::Network => "network",
            Group::Nic => "nic",
            Group::Log => "log",
            Group::Pressure => "pressure",
            Group::Gaps => "gaps",
        }
    }

    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Cores => "Cores",
            Group::Kernel => "System time by core",
            Group::Memcg => "Memory cgroups",
            Group::Units => "Units",
            Group::Containers => "Containers",
            Group::Network => "Network polling",
            Group::Nic => "NICs",
            Group::Log => "Kernel log and exits",
            Group::Pressure => "Pressure",
            Group::Gaps => "Gaps",
        }
    }
}

/// How values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// As a color.
    Heat,
    /// As a line.
    Line,
}

/// Whose values make a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The node's.
    Node,
    /// Those of any subject: the largest counts.
    Any,
}

/// A lane of values, of one fact. A counter is shown by its growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// Its name in addresses and answers.
    pub id: &'static str,
    /// Where it belongs.
    pub group: Group,
    /// What stands beside it.
    pub label: &'static str,
    /// How it is drawn.
    pub draw: Draw,
    /// Whose values it shows.
    pub whose: Whose,
    /// The sensor without which it is empty.
    pub sensor: &'static str,
    /// The shortest time between two values that is kept apart.
    pub cell_ns: u64,
    /// A value is of the time since the one before, if that is no longer ago.
    pub cover_ns: u64,
    /// A value holds until the next one instead.
    pub holds: bool,
}

impl Series {
    /// A line of the node's values, told every few seconds.
    pub const fn line(
        id: &'static str,
        group: Group,
        label: &'static str,
        sensor: &'static str,
    ) -> Self {
        Self {
            id,
            group,
            label,
            draw: Draw::Line,
            whose: Whose::Node,
            sensor,
            cell_ns: SECOND,
            cover_ns: 30 * SECOND,
            holds: false,
        }
    }

    /// The same, drawn as a color.
    #[must_use]
    pub const fn as_heat(mut self) -> Self {
        self.draw = Draw::Heat;
        self
    }

    /// The largest value of any subject.
    #[must_use]
    pub const fn of_any(mut self) -> Self {
        self.whose = Whose::Any;
        self
    }

    /// Values so often, and the time that one covers at most.
    #[must_use]
    pub const fn every(mut self, cell_ns: u64, cover_ns: u64) -> Self {
        (self.cell_ns, self.cover_ns) = (cell_ns, cover_ns);
        self
    }

    /// A value holds until the next one, at most so long.
    #[must_use]
    pub const fn holding(mut self, cover_ns: u64) -> Self {
        (self.holds, self.cover_ns) = (true, cover_ns);
        self
    }
}

/// A lane of events.
#[derive(Debug, PartialEq, Eq)]
pub struct Lane {
    /// Its name in addresses and answers.
    pub id: &'static str,
    /// Where it belongs.
    pub group: Group,
    /// What stands beside it.
    pub label: &'static str,
    /// The sensors without which it is empty.
    pub sensors: &'static [&'static str],
    /// What it shows, in one line.
    pub about: &'static str,
}

/// An event on the time line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// The lane that shows it.
    pub lane: &'static Lane,
    /// What sort of event, where that is more than the name of the fact.
    pub kind: Option<Cow<'static, str>>,
    /// In one line.
    pub text: String,
    /// How many at once.
    pub n: u64,
}

impl Mark {
    /// One event.
    pub fn new(lane: &'static Lane, text: String) -> Self {
        Self {
            lane,
            kind: None,
            text,
            n: 1,
        }
    }

    /// Several at once.
    #[must_use]
    pub fn times(mut self, n: u64) -> Self {
        self.n = n.max(1);
        self
    }

    /// An event of this sort.
    #[must_use]
    pub fn of_kind(mut self, kind: impl Into<Cow<'static, str>>) -> Self {
        self.kind = Some(kind.into());
        self
    }
}

/// How the time line shows a fact.
#[derive(Debug, Clone, Copy)]
pub enum Show {
    /// It does not.
    Not,
    /// As a lane of values.
    Series(Series),
    /// As a part of each core's lane.
    Core(CoreTime),
    /// A counter whose growth is an event: the lane, and what it counts.
    Growth(&'static Lane, &'static str),
    /// Each event where its payload says.
    Marks(fn(&Subject, &dyn Payload) -> Option<Mark>),
}

/// What a mode of a core counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreTime {
    /// The kernel's.
    Kernel,
    /// Nothing to do.
    Idle,
}

macro_rules! lanes {
    ($( $name:ident = $id:literal in $group:ident, $label:literal, $sensors:expr, $about:literal; )+) => {
        $(
            #[doc = $about]
            pub static $name: Lane = Lane {
                id: $id,
                group: Group::$group,
                label: $label,
                sensors: &$sensors,
                about: $about,
            };
        )+
        /// All lanes of events, in the order in which they are shown.
        pub static LANES: &[&Lane] = &[ $( &$name, )+ ];
    };
}

lanes! {
    UNITS_RESTARTED = "units.restarts" in Units, "units restarted or failed", ["units"],
        "starts that systemd itself caused, and failures";
    UNITS_STARTED = "units.starts" in Units, "other starts of units", ["units"],
        "starts by hand, timer, socket or dependency";
    CGROUPS_CREATED = "units.churn" in Units, "cgroups created", ["cgroups"],
        "each cgroup that was created, and by whom";
    CONTAINERS_STARTED = "containers.births" in Containers, "containers started", ["containers"],
        "each start of a container, as its runtime reports it";
    CONTAINERS_EXITED = "containers.exits" in Containers, "containers exited", ["containers"],
        "each exit of a container, as its runtime reports it";
    NAPI_PENDING = "network.pending" in Network, "NAPI polls found pending", ["napi"],
        "looks that found a NAPI poll pending for over half a second, and who occupied the core";
    NAPI_DELAYED = "network.starved" in Network, "NAPI polls delayed", ["napi"],
        "NAPI polls that ran over half a second late, and who occupied the core";
    NETWORK = "network.drops" in Network, "packets dropped", ["network"],
        "packets and connections that the node dropped for lack of room";
    NICS = "nic.events" in Nic, "NIC events", ["klog", "nics"],
        "resets, timeouts and links, from the kernel log and the driver's counters";
    KERNEL_LOG = "log.kernel" in Log, "kernel log", ["klog"],
        "lines of the kernel log, those of NICs left out";
    PROCESSES_FAILED = "log.exits" in Log, "processes failed", ["exits"],
        "processes that exited by a signal or with a status other than 0";
    BLIND_SPOTS = "gaps" in Gaps, "not seen", [],
        "what sensors could not see";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact;

    #[test]
    fn lanes_have_names_of_their_own() {
        let series = fact::all().filter_map(|fact| match &fact.show {
            Show::Series(series) => Some(series.id),
            _ => None,
        });
        let mut ids: Vec<&str> = LANES.iter().map(|lane| lane.id).chain(series).collect();
        let n = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), n);
        assert!(Group::ALL.is_sorted());
    }
}
