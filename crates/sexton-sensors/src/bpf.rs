//! What sensors with a BPF program share: saying why it cannot be loaded, and what to
//! type to change that.

use sexton_bpf::LoadError;
use sexton_host::capabilities::Capabilities;
use sexton_host::{Host, machine};
use sexton_model::fact::sexton::{SEXTON_STEP_DOWN, StepDown};
use sexton_model::gap::{Gap, Why};
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::{Subject, SubjectKind};

/// Capabilities that loading a program needs.
const NEEDS: [&str; 2] = ["CAP_BPF", "CAP_PERFMON"];

/// What to do where the kernel does not describe its types.
pub(crate) const NO_TYPES: &str = "give a BTF file made for this very kernel (--btf FILE), or use \
                                   a kernel built with CONFIG_DEBUG_INFO_BTF=y";

/// Why the program of a sensor could not be loaded. `command` is what to run as root.
pub(crate) fn gap(sensor: &'static str, host: &Host, error: &LoadError, command: &str) -> Gap {
    let why = match error {
        LoadError::Denied(_) => Why::Denied,
        LoadError::Overrun { .. } => Why::Overrun,
        LoadError::NoTypeInformation
        | LoadError::NoSharedMemory
        | LoadError::Rejected { .. }
        | LoadError::NoMemoryController => Why::Unsupported,
    };
    let gap = Gap::new(sensor, why, error.to_string());
    match remedy(host, error, command) {
        Some(remedy) => gap.with_remedy(remedy),
        None => gap,
    }
}

/// The gap that a program leaves before it is tried: no running node, no privileges.
pub(crate) fn refusal(sensor: &'static str, host: &Host) -> Option<Gap> {
    if !host.is_live() {
        return Some(not_running(sensor));
    }
    let missing = Capabilities::of_self(host).ok()?.missing(&NEEDS);
    (!missing.is_empty()).then(|| {
        let text = format!("needs {}", missing.join(" and "));
        Gap::new(sensor, Why::Denied, text).with_remedy("run as root: sudo sexton record")
    })
}

/// The cores that a program has to have room for, if one may be loaded here at all.
pub(crate) fn possible_cores(sensor: &'static str, host: &Host) -> Result<u32, Gap> {
    match refusal(sensor, host) {
        Some(gap) => Err(gap),
        None => machine::possible_cpus(host)
            .map_err(|error| Gap::new(sensor, error.why(), error.chain())),
    }
}

/// A gap as `sexton doctor` shows it.
pub(crate) fn blind(what: &str, gap: Gap) -> Sight {
    let sight = Sight::blind(what, gap.text);
    match gap.remedy {
        Some(remedy) => sight.with_remedy(remedy),
        None => sight,
    }
}

/// Something that is seen another way, because there is no BPF program: how, and why not.
pub(crate) fn instead(what: &str, shows: &str, why_not: &Gap) -> Sight {
    let because = format!("{shows}, instead of BPF: {}", why_not.text);
    let sight = Sight::blind(what, because).partly();
    match &why_not.remedy {
        Some(remedy) => sight.with_remedy(remedy.clone()),
        None => sight,
    }
}

/// What cannot be seen in any other way.
pub(crate) fn not_without(what: &str, gap: Gap) -> Gap {
    Gap {
        text: format!("no {what} without BPF: {}", gap.text),
        ..gap
    }
}

/// The same for a recording: what is seen, by which means, and why not by BPF. The reason is the
/// same text for all sensors, so that a verdict says it once.
pub(crate) fn tell_step_down(what: &str, by: &str, why_not: &Gap, out: &mut Sink) {
    let sensor = Subject::new(SubjectKind::Sensor, why_not.sensor.clone());
    let step = StepDown {
        what: what.to_owned(),
        by: by.to_owned(),
    };
    out.event(out.now(), &sensor, &SEXTON_STEP_DOWN, step);
    out.gap(&Subject::node(), why_not.clone());
}

/// A gap for a host whose kernel cannot be asked.
pub(crate) fn not_running(sensor: &'static str) -> Gap {
    Gap::new(
        sensor,
        Why::Unsupported,
        "this is not a running node, so its kernel cannot be asked",
    )
}

/// Tells of events that a program wrote and nobody can read.
pub(crate) fn tell_malformed(sensor: &'static str, n: u64, out: &mut Sink) {
    if n > 0 {
        let text = format!("{n} events of the BPF program made no sense");
        out.gap(&Subject::node(), Gap::new(sensor, Why::Bug, text));
    }
}

/// Whether a program can be loaded here. `shows` is what it lets us see.
pub(crate) fn examine(
    host: &Host,
    what: &str,
    shows: &str,
    load: impl FnOnce() -> Result<(), LoadError>,
) -> Sight {
    const COMMAND: &str = "sudo sexton doctor";
    if let Ok(held) = Capabilities::of_self(host)
        && let missing = held.missing(&NEEDS)
        && !missing.is_empty()
    {
        return Sight::blind(what, format!("needs {}", missing.join(" and ")))
            .with_remedy(format!("run as root: {COMMAND}"));
    }
    let Err(error) = load() else {
        return Sight::sees(what, shows);
    };
    let sight = Sight::blind(what, error.to_string());
    match remedy(host, &error, COMMAND) {
        Some(remedy) => sight.with_remedy(remedy),
        None => sight,
    }
}

fn remedy(host: &Host, error: &LoadError, command: &str) -> Option<String> {
    match error {
        LoadError::Denied(_) => Some(match Capabilities::of_self(host) {
            Ok(held) if held.missing(&NEEDS).is_empty() => {
                "allow the bpf() system call: seccomp, LSM or the memlock limit (ulimit -l) stops it".into()
            }
            _ => format!("run as root: {command}"),
        }),
        LoadError::NoTypeInformation => Some(NO_TYPES.into()),
        // The kernel lacks what the program needs, and nothing to type changes that.
        LoadError::NoSharedMemory
        | LoadError::Rejected { .. }
        | LoadError::NoMemoryController
        | LoadError::Overrun { .. } => None,
    }
}
