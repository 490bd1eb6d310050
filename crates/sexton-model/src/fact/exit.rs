//! Facts about processes that ended: badly, or as clients of a daemon.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &PROCESS_FAILED,
    &PROCESS_FAILED_BURST,
    &CLIENT_ENDED,
    &PROCESS_EXITS_NORMAL,
    &PROCESS_EXITS_ABNORMAL,
    &OOM_VICTIMS,
];

/// A process ended otherwise than with status 0.
///
/// Details: `pid` (the task that ended last), `tgid`, `comm`, `exit_code` or `signal` and
/// `core_dumped`, `uid`, `cgroup`, `cgroup_is_cut`, `cgroup_id`, `origin`, `unit`, `container`,
/// `lifetime_ns`, `oom`, `role` (when a signature knows it). What does not apply is left
/// out.
pub static PROCESS_FAILED: Fact = Fact {
    name: "process_failed",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a process ended by a signal, with a status that is not 0, or for want of memory",
};

/// More processes failed between two polls than are told one by one.
///
/// Details: `comm`, `exit_code` or `signal`, `n`. The moment is that of the first.
pub static PROCESS_FAILED_BURST: Fact = Fact {
    name: "process_failed_burst",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "too many failed processes to tell one by one: how many of one name and status",
};

/// A program that asks a daemon for containers or units ended with status 0.
///
/// Details: those of [`PROCESS_FAILED`].
pub static CLIENT_ENDED: Fact = Fact {
    name: "client_ended",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a program that asks a daemon for containers or units, such as docker, ended with status 0",
};

/// Processes that ended with status 0.
pub static PROCESS_EXITS_NORMAL: Fact = Fact {
    name: "process_exits_normal",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "processes that ended with status 0 since the sensor began",
};

/// Processes that ended otherwise.
pub static PROCESS_EXITS_ABNORMAL: Fact = Fact {
    name: "process_exits_abnormal",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "processes that ended otherwise than with status 0 since the sensor began",
};

/// Processes that the kernel chose to kill for want of memory.
pub static OOM_VICTIMS: Fact = Fact {
    name: "oom_victims",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "processes the kernel chose to kill for want of memory since the sensor began, dead yet or not",
};
