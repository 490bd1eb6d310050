//! Facts about processes that ended: badly, or as clients of a daemon.

use super::metric::Metric;
use super::show::{Mark, PROCESSES_FAILED};
use crate::payload;
use crate::subject::Subject;

payload! {
    /// A process exited.
    pub struct ProcessExit {
        /// the task that exited last
        pub pid: Option<u32>,
        /// the process
        pub tgid: Option<u32>,
        /// its name
        pub comm: Option<String>,
        /// its own exit status
        pub exit_code: Option<u32>,
        /// the signal that ended it
        pub signal: Option<u32>,
        /// whether it left a core dump
        pub core_dumped: Option<bool>,
        /// its user
        pub uid: Option<u32>,
        /// its cgroup
        pub cgroup: Option<String>,
        /// whether that path is only the end of a longer one
        pub cgroup_is_cut: Option<bool>,
        /// the kernel's number of the cgroup
        pub cgroup_id: Option<u64>,
        /// the kind of origin that the cgroup shows
        pub origin: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// how long it ran
        pub lifetime_ns: Option<u64>,
        /// whether the kernel killed it for lack of memory
        pub oom: Option<bool>,
        /// what it is for, where a signature knows it; filled in when judged
        pub role: Option<String>,
    }

    /// More processes failed between two polls than are recorded one by one. The time is
    /// that of the first.
    pub struct ProcessBurst {
        /// their name; `(others)` for all that are left
        pub comm: Option<String>,
        /// their exit status
        pub exit_code: Option<u32>,
        /// the signal that ended them
        pub signal: Option<u32>,
        /// how many
        pub n: u64,
    }
}

payload! {
    /// Processes of one parent that exited since the last poll, in a second in which very many
    /// did. Only the few that had most are recorded. The subject is the parent.
    pub struct ProcessMaker {
        /// the name of the parent
        pub comm: Option<String>,
        /// the name of the child that exited last
        pub child_comm: Option<String>,
        /// the cgroup of the children
        pub cgroup: Option<String>,
        /// the unit that the cgroup shows
        pub unit: Option<String>,
        /// the container that the cgroup shows
        pub container: Option<String>,
        /// how many exited
        pub n: u64,
        /// of these, how many had run for less than a second
        pub n_short: u64,
        /// all that exited meanwhile, whatever their parent
        pub n_all: u64,
        /// the time since the last poll
        pub interval_ns: u64,
    }
}

fn failed(_: &Subject, exit: &ProcessExit) -> Option<Mark> {
    let mut text = how(exit.comm.as_ref(), exit.signal, exit.exit_code);
    if let Some(place) = exit.unit.as_ref().or(exit.container.as_ref()) {
        text.push_str(&format!(", in {place}"));
    }
    Some(Mark::new(&PROCESSES_FAILED, text))
}

fn many_failed(_: &Subject, burst: &ProcessBurst) -> Option<Mark> {
    let text = how(burst.comm.as_ref(), burst.signal, burst.exit_code);
    Some(Mark::new(&PROCESSES_FAILED, text).times(burst.n))
}

fn how(comm: Option<&String>, signal: Option<u32>, exit_code: Option<u32>) -> String {
    let comm = comm.map_or("a process", String::as_str);
    match (signal, exit_code) {
        (Some(signal), _) => format!("{comm}: signal {signal}"),
        (None, Some(code)) => format!("{comm}: status {code}"),
        (None, None) => format!("{comm}: failed"),
    }
}

facts! {
    /// a process ended by a signal, with a status that is not 0, or for want of memory
    event PROCESS_FAILED = "process_failed" of ProcessExit,
        shown: marks!(ProcessExit, failed);
    /// more failed processes than are recorded one by one: how many of one name and status
    event PROCESS_FAILED_BURST = "process_failed_burst" of ProcessBurst,
        shown: marks!(ProcessBurst, many_failed);
    /// a program that asks a daemon for containers or units, such as docker, ended with status 0
    event CLIENT_ENDED = "client_ended" of ProcessExit;
    /// whose children exited in a second in which very many processes did
    event PROCESS_MAKER = "process_maker" of ProcessMaker;
    /// processes that ended with status 0 since the sensor began
    counter PROCESS_EXITS_NORMAL = "process_exits_normal" in Count,
        metric: Metric::counter("sexton_process_exits_normal_total");
    /// processes that ended otherwise than with status 0 since the sensor began
    counter PROCESS_EXITS_ABNORMAL = "process_exits_abnormal" in Count,
        metric: Metric::counter("sexton_process_exits_abnormal_total");
    /// processes the kernel chose to kill for want of memory since the sensor began, dead yet or
    /// not
    counter OOM_VICTIMS = "oom_victims" in Count,
        metric: Metric::counter("sexton_oom_victims_total");
}
