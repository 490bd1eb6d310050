//! Facts about systemd units.

use super::{Fact, FactKind, Unit};

/// All of this area.
pub(super) static ALL: &[&Fact] = &[
    &UNITS,
    &UNITS_FAILED,
    &UNIT_STARTS,
    &UNIT_RESTARTS,
    &UNIT_SEEN,
    &UNIT_CHANGED,
    &UNIT_STARTED,
    &UNIT_STOPPED,
    &UNIT_FAILED,
    &UNIT_LOGGED,
    &UNIT_FILE,
    &UNIT_SHAPE,
];

/// Units that systemd holds in memory.
pub static UNITS: Fact = Fact {
    name: "units",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "units that systemd holds in memory, running or not",
};

/// Units in the state `failed`.
pub static UNITS_FAILED: Fact = Fact {
    name: "units_failed",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "units in the state failed",
};

/// Starts of a unit since the poll before, whoever caused them. Not told when there
/// were none.
pub static UNIT_STARTS: Fact = Fact {
    name: "unit_starts",
    unit: Unit::Count,
    kind: FactKind::Gauge,
    help: "starts of a unit since the poll before: by hand, timer, socket, dependency or restart",
};

/// systemd's own `NRestarts`, told when it changed.
pub static UNIT_RESTARTS: Fact = Fact {
    name: "unit_restarts",
    unit: Unit::Count,
    kind: FactKind::Counter,
    help: "automatic restarts of a service as systemd counts them (NRestarts); a manual start resets it",
};

/// What a unit is set to do, when it is first seen. Details: `enabled`, `preset`,
/// `load`, `active`, `sub`, `fragment`, `triggered_by`, `restart`, `restart_ns`,
/// `start_limit_interval_ns`, `start_limit_burst`; `result` of its last run, `main_pid` and
/// `state_monotonic_ns` (when it came into its state); those that do not apply are left
/// out. Of units without settings only failed ones are told.
pub static UNIT_SEEN: Fact = Fact {
    name: "unit_seen",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a unit was seen for the first time: its state and its settings",
};

/// A unit's settings are not what they were. Details as for [`UNIT_SEEN`], and the
/// `was_…` of each that changed.
pub static UNIT_CHANGED: Fact = Fact {
    name: "unit_changed",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a unit was enabled, disabled, masked or set up otherwise",
};

/// A unit began a run. Details: `by` (`restart` or `start`), `n` (more than one where
/// systemd's count says that starts went unseen), `invocation`, `main_pid`, `triggered_by`.
pub static UNIT_STARTED: Fact = Fact {
    name: "unit_started",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a unit began a run",
};

/// A run of a unit ended. Details: `result` (`unseen` where only the next start told of
/// it, left out where it may be that of the next run), `exit_code` (`exited`, `killed`, `dumped`), `exit_status`, `lifetime_ns`.
pub static UNIT_STOPPED: Fact = Fact {
    name: "unit_stopped",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a run of a unit ended",
};

/// A unit entered the state `failed`, or could not start because of another. Details:
/// `result`, `exit_code`, `exit_status`.
pub static UNIT_FAILED: Fact = Fact {
    name: "unit_failed",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a unit failed, or could not be started because what it depends on failed",
};

/// A unit wrote to the journal. Details: `n`, entries within a second. What they say is not
/// kept.
pub static UNIT_LOGGED: Fact = Fact {
    name: "unit_logged",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "a unit wrote to systemd's journal; what it wrote is not kept",
};

/// What the files of a unit say, of each that a boot starts or may start. Details: `state`,
/// `preset`, `package`, `file`, `reached_by`, `shape`; `restart`, `arithmetic`, `endless`,
/// `runs_per_day`, `prevented_by` of services that are restarted; `fails` or `skipped` where
/// it cannot start; `role` and `role_why` in the shape; `offender`, `offender_why`,
/// `offender_evidence`, `offender_veto`, `offender_risk`, `offender_action`,
/// `offender_triggers`, `offender_source` where a signature knows it.
pub static UNIT_FILE: Fact = Fact {
    name: "unit_file",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "what the files of a unit that a boot starts say: state, restarts, use in this deployment",
};

/// What this machine is for. Details: `shape` (empty if it is not known), `why`, `missing`.
pub static UNIT_SHAPE: Fact = Fact {
    name: "unit_shape",
    unit: Unit::None,
    kind: FactKind::Event,
    help: "the shape of the deployment, and the evidence for it",
};
