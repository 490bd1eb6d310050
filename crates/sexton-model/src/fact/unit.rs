//! Facts about systemd units.

use super::metric::{Label, MAX_NAMES, Metric};
use super::show::{Mark, UNITS_RESTARTED, UNITS_STARTED};
use crate::old;
use crate::payload::{Field, Fields, Value, ValueKind, stored};
use crate::subject::Subject;
use crate::{choice, payload};

/// A time that systemd may leave open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// A number of nanoseconds.
    Ns(u64),
    /// No end.
    Infinity,
}

impl Field for Span {
    const KIND: ValueKind = ValueKind::Text;

    fn put(&self) -> Option<Value> {
        Some(match self {
            Span::Ns(ns) => Value::Count(*ns),
            Span::Infinity => Value::Text("infinity".into()),
        })
    }

    fn take(stored: Option<&Value>) -> Option<Self> {
        match stored? {
            Value::Text(text) if text == "infinity" => Some(Span::Infinity),
            value => u64::take(Some(value)).map(Span::Ns),
        }
    }
}

choice! {
    /// What began a run of a unit.
    pub enum StartedBy {
        /// systemd restarted it by itself.
        Restart = "restart",
        /// Anything else: by hand, timer, socket or dependency.
        Start = "start",
    }
}

payload! {
    /// A unit as it was first seen, or after its settings changed.
    @from_old(settings_from_old)
    pub struct UnitSeen {
        /// the state of its file: `enabled`, `static` and so on
        pub enabled: Option<String>,
        /// what the presets say
        pub preset: Option<String>,
        /// its file
        pub fragment: Option<String>,
        /// the units that start it
        pub triggered_by: Option<String>,
        /// `Restart=`
        pub restart: Option<String>,
        /// `RestartSec=`
        pub restart_ns: Option<Span>,
        /// `StartLimitIntervalSec=`
        pub start_limit_interval_ns: Option<Span>,
        /// `StartLimitBurst=`
        pub start_limit_burst: Option<u64>,
        /// `Type=`
        pub service_type: Option<String>,
        /// whether its file was loaded
        pub load: Option<String>,
        /// its state
        pub active: Option<String>,
        /// its state in more detail
        pub sub: Option<String>,
        /// the result of its last run
        pub result: Option<String>,
        /// its main process
        pub main_pid: Option<u64>,
        /// when it came into its state
        pub state_monotonic_ns: Option<u64>,
        /// the settings that changed, as they were
        pub was: Vec<Setting>,
    }

    /// One setting and its value.
    pub struct Setting {
        /// its name
        pub name: String,
        /// its value; empty if there was none
        pub value: String,
    }

    /// A unit began a run.
    pub struct UnitStarted {
        /// what began it
        pub by: Option<StartedBy>,
        /// more than one if systemd's count says that starts went unseen
        pub n: Option<u64>,
        /// systemd's id of the run
        pub invocation: Option<String>,
        /// its main process
        pub main_pid: Option<u64>,
        /// the units that start it
        pub triggered_by: Option<String>,
    }

    /// A run of a unit ended, or the unit failed.
    pub struct UnitStopped {
        /// systemd's result; `unseen` if only the next start showed the end
        pub result: Option<String>,
        /// `exited`, `killed` or `dumped`
        pub exit_code: Option<String>,
        /// exit status, or the number of the signal
        pub exit_status: Option<String>,
        /// how long the run was
        pub lifetime_ns: Option<u64>,
    }

    /// A unit wrote to the journal.
    pub struct UnitLogged {
        /// entries within a second
        pub n: u64,
    }

    /// What the journal says of a unit when a run of it failed or a restart was planned.
    pub struct UnitLastLines {
        /// its last lines, the newest last, each cut to 200 characters
        pub lines: Vec<String>,
        /// `exited`, `killed` or `dumped`
        pub exit_code: Option<String>,
        /// exit status, or the number of the signal
        pub exit_status: Option<String>,
    }

    /// What the files of a unit say that a boot starts or may start. Recordings hold what was
    /// read; what the deployment profile and signatures say of the unit is filled in when it is
    /// judged. Older recordings hold that too.
    @from_old(file_from_old)
    pub struct UnitFile {
        /// the state of its file
        pub state: Option<String>,
        /// what the presets say
        pub preset: Option<String>,
        /// the package that owns it
        pub package: Option<String>,
        /// its path
        pub file: Option<String>,
        /// the units from the default target to it
        pub reached_by: Vec<String>,
        /// `Wants=`, also by links
        pub wants: Vec<String>,
        /// `Requires=`, also by links
        pub requires: Vec<String>,
        /// `Requisite=`
        pub requisite: Vec<String>,
        /// `BindsTo=`
        pub binds_to: Vec<String>,
        /// `Upholds=`, also by links
        pub upholds: Vec<String>,
        /// the unit that this socket, timer or path starts
        pub triggers: Vec<String>,
        /// the deployment profile of the node; filled in when judged
        pub shape: Option<String>,
        /// whether that profile needs it; filled in when judged
        pub role: Option<String>,
        /// the profile that says so: that of the node, or `base` of every system
        pub role_shape: Option<String>,
        /// why
        pub role_why: Option<String>,
        /// `Restart=`, of services that are restarted on failure
        pub restart: Option<String>,
        /// how often it may restart, worked out
        pub arithmetic: Option<String>,
        /// whether its start limit never ends a restart loop
        pub endless: Option<bool>,
        /// restarts a day at most
        pub runs_per_day: Option<u64>,
        /// settings that prevent a restart
        pub prevented_by: Vec<String>,
        /// starts a day by a timer or the like
        pub starts_per_day: Option<f64>,
        /// what starts it so often
        pub starts_by: Option<String>,
        /// why it cannot start
        pub fails: Option<String>,
        /// why systemd skips it
        pub skipped: Option<String>,
        /// the signature that knows it; filled in when judged, as all that follows
        pub offender: Option<String>,
        /// what that signature says of it
        pub offender_why: Option<String>,
        /// evidence that it has no use here
        pub offender_evidence: Vec<String>,
        /// evidence that it is in use
        pub offender_veto: Option<String>,
        /// the risk of turning it off
        pub offender_risk: Option<String>,
        /// what to do with it
        pub offender_action: Option<String>,
        /// whether the signature could not see enough
        pub offender_unsure: Option<bool>,
        /// what the signature asks for and the recording does not say
        pub offender_unknown: Option<String>,
        /// units that start it, to be turned off too
        pub offender_triggers: Vec<String>,
        /// where this is documented
        pub offender_source: Option<String>,
    }

    /// What this node is for.
    @from_old(shape_from_old)
    pub struct UnitShape {
        /// the unit that a boot starts with; older recordings lack it, and hold what follows
        pub start: Option<String>,
        /// the deployment profile, if it is known: given, or filled in when judged
        pub shape: Option<String>,
        /// the evidence for it
        pub why: Option<String>,
        /// units that the profile needs and that are missing; filled in when judged
        pub missing: Vec<String>,
    }

    /// What signatures of units ask of a node, beside the units that are on.
    pub struct UnitContext {
        /// units that are off, and other names of units
        pub units: Vec<UnitState>,
        /// packages that are installed, by name
        pub packages: Vec<String>,
        /// filesystems that a boot mounts
        pub mounts: Vec<BootMount>,
        /// what signatures asked of files, and the answers
        pub answers: Vec<Answer>,
        /// what lies in some folders
        pub folders: Vec<Folder>,
    }

    /// A unit and the state of its file.
    pub struct UnitState {
        /// its name
        pub name: String,
        /// the state of its file
        pub state: String,
        /// the unit that this is another name of
        pub alias_of: Option<String>,
    }

    /// A filesystem that a boot mounts.
    pub struct BootMount {
        /// its type
        pub kind: String,
        /// its options, parted by commas
        pub options: String,
    }

    /// What a signature asked of files, and whether it is so.
    pub struct Answer {
        /// what was asked: `path /etc/multipath.conf`
        pub asked: String,
        /// whether it is so
        pub holds: bool,
    }

    /// A folder and the names in it.
    pub struct Folder {
        /// its path
        pub path: String,
        /// the names of what lies in it
        pub names: Vec<String>,
    }
}

/// Older recordings have `type`, and a `was_…` for each setting that changed.
fn settings_from_old(fields: &Fields) -> Fields {
    let mut now = Fields::new();
    let mut was = Vec::new();
    for (name, value) in fields {
        if let Some(setting) = name.strip_prefix("was_") {
            let setting = if setting == "type" {
                "service_type"
            } else {
                setting
            };
            let setting = Value::Text(setting.to_owned());
            let change = vec![("name".into(), setting), ("value".into(), value.clone())];
            was.push(Value::Group(change));
        } else if name == "type" {
            now.push(("service_type".into(), value.clone()));
        } else {
            now.push((name.clone(), value.clone()));
        }
    }
    if !was.is_empty() {
        now.push(("was".into(), Value::List(was)));
    }
    now
}

fn file_from_old(fields: &Fields) -> Fields {
    let lists = [
        ("reached_by", " > "),
        ("prevented_by", " "),
        ("offender_evidence", "; "),
        ("offender_triggers", " "),
    ];
    let mut fields = old::lists(fields, &lists);
    // The profile was known by its title alone, which is the reason's text.
    let why = stored(&fields, "role_why").and_then(Value::as_text);
    if stored(&fields, "role_shape").is_none()
        && why.is_some_and(|why| why.contains("Linux system"))
    {
        fields.push(("role_shape".into(), Value::Text("base".into())));
    }
    fields
}

fn shape_from_old(fields: &Fields) -> Fields {
    old::lists(fields, &[("missing", "; ")])
}

fn started(unit: &Subject, run: &UnitStarted) -> Option<Mark> {
    let mark = if run.by == Some(StartedBy::Restart) {
        Mark::new(&UNITS_RESTARTED, format!("{} restarted", unit.name)).of_kind("restart")
    } else {
        Mark::new(&UNITS_STARTED, format!("{} started", unit.name)).of_kind("start")
    };
    Some(mark.times(run.n.unwrap_or(1)))
}

fn failed(unit: &Subject, run: &UnitStopped) -> Option<Mark> {
    let result = run.result.as_deref().unwrap_or("result unknown");
    Some(Mark::new(
        &UNITS_RESTARTED,
        format!("{} failed: {result}", unit.name),
    ))
}

facts! {
    /// units that systemd holds in memory, running or not
    gauge UNITS = "units" in Count,
        metric: Metric::gauge("sexton_units");
    /// units in the state failed
    gauge UNITS_FAILED = "units_failed" in Count,
        metric: Metric::gauge("sexton_units_failed");
    /// starts of a unit since the poll before: by hand, timer, socket, dependency or restart
    gauge UNIT_STARTS = "unit_starts" in Count;
    /// automatic restarts of a service as systemd counts them (NRestarts); a manual start resets
    /// it
    counter UNIT_RESTARTS = "unit_restarts" in Count;
    /// a unit was seen for the first time: its state and its settings
    event UNIT_SEEN = "unit_seen" of UnitSeen;
    /// a unit was enabled, disabled, masked or set up otherwise
    event UNIT_CHANGED = "unit_changed" of UnitSeen;
    /// a unit began a run
    event UNIT_STARTED = "unit_started" of UnitStarted,
        shown: marks!(UnitStarted, started),
        metric: Metric::counter("sexton_unit_starts_total")
            .of("n")
            .by(&[Label::subject("unit"), Label::field("by")], MAX_NAMES);
    /// a run of a unit ended
    event UNIT_STOPPED = "unit_stopped" of UnitStopped;
    /// a unit failed, or could not be started because what it depends on failed
    event UNIT_FAILED = "unit_failed" of UnitStopped,
        shown: marks!(UnitStopped, failed),
        metric: Metric::counter("sexton_unit_failures_total")
            .by(&[Label::subject("unit")], MAX_NAMES);
    /// a unit wrote to systemd's journal; what it wrote is not kept
    event UNIT_LOGGED = "unit_logged" of UnitLogged;
    /// a unit failed or is about to be restarted: how it ended by the journal, and the last three
    /// lines that it wrote there
    event UNIT_LAST_LINES = "unit_last_lines" of UnitLastLines;
    /// what the files of a unit say that a boot starts: state, restarts, use in this deployment
    event UNIT_FILE = "unit_file" of UnitFile;
    /// what the node is for: its deployment profile, and the evidence for it
    event UNIT_SHAPE = "unit_shape" of UnitShape;
    /// what signatures of units ask of a node, beside the units that are on: in parts, whose
    /// subject is their number
    event UNIT_CONTEXT = "unit_context" of UnitContext;
}
