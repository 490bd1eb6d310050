use std::io;
use std::sync::Arc;

use crate::loaded::Program;
use crate::types;

/// Why a BPF program could not be loaded or run here.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel does not describe its own types, so offsets are unknown.
    #[error("this kernel has no type information ({BTF} is missing)")]
    NoTypeInformation,
    /// The kernel knows no memory that programs and we share, which all of ours need.
    #[error("this kernel's BPF shares no memory with programs, as Linux does since 5.5")]
    NoSharedMemory,
    /// The caller may not use BPF.
    #[error("loading a BPF program was refused: needs CAP_BPF and CAP_PERFMON, or root")]
    Denied(#[source] libbpf_rs::Error),
    /// The kernel knows BPF but not something this program needs.
    #[error("this kernel does not take the BPF program `{program}`: {detail}")]
    Rejected {
        /// Name of the program's stem.
        program: &'static str,
        /// The last thing libbpf or the kernel's verifier said.
        detail: String,
        /// The error that ended the attempt.
        #[source]
        source: Arc<libbpf_rs::Error>,
    },
    /// No memory controller answers on this kernel.
    #[error("the memory controller is not there: no root memory cgroup was found")]
    NoMemoryController,
    /// The time that was allowed ran out.
    #[error("the walk did not end within {limit_ms} ms; {visited} memory cgroups were seen")]
    Overrun {
        /// The time that was allowed.
        limit_ms: u128,
        /// How far it came.
        visited: u64,
    },
}

const BTF: &str = types::OF_THE_KERNEL;

impl LoadError {
    /// Sorts an error of libbpf by what the user can do about it.
    pub(crate) fn of(program: Program, source: libbpf_rs::Error, said: &str) -> Self {
        if program.needs_types && !types::are_known() {
            return Self::NoTypeInformation;
        }
        // The verifier says EACCES as well; it speaks, a missing privilege does not.
        let verified = said.contains("PROG LOAD LOG");
        if !verified && source.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            return Self::Denied(source);
        }
        let detail = last_words(said).unwrap_or("no reason given").to_owned();
        Self::Rejected {
            program: program.name,
            detail,
            source: Arc::new(source),
        }
    }

    /// The same error for the next attempt, if that would end the same way: the kernel has
    /// looked at the program, and neither of them changes. What memory or descriptors ran
    /// short for may work later.
    pub(crate) fn for_good(&self) -> Option<Self> {
        use libbpf_rs::ErrorKind::{Interrupted, OutOfMemory, TimedOut, WouldBlock};
        match self {
            Self::NoTypeInformation => Some(Self::NoTypeInformation),
            Self::NoSharedMemory => Some(Self::NoSharedMemory),
            Self::Rejected {
                program,
                detail,
                source,
            } => {
                let passes = matches!(
                    source.kind(),
                    OutOfMemory | WouldBlock | Interrupted | TimedOut
                );
                (!passes).then(|| Self::Rejected {
                    program,
                    detail: detail.clone(),
                    source: Arc::clone(source),
                })
            }
            Self::Denied(_) | Self::NoMemoryController | Self::Overrun { .. } => None,
        }
    }
}

/// What only says that something was said before.
const NO_REASONS: [&str; 3] = [
    "processed ",
    "libbpf: failed to load object",
    "libbpf: failed to load BPF skeleton",
];

/// What the verifier objected to, or else the last reason that was given.
fn last_words(said: &str) -> Option<&str> {
    let log = said.split("-- END PROG LOAD LOG --").next()?;
    let lines = log.lines().map(str::trim);
    let mut reasons = lines.filter(|line| !line.is_empty());
    reasons.rfind(|line| !NO_REASONS.iter().any(|start| line.starts_with(start)))
}

impl From<&LoadError> for io::ErrorKind {
    fn from(error: &LoadError) -> Self {
        match error {
            LoadError::Denied(_) => Self::PermissionDenied,
            LoadError::Overrun { .. } => Self::TimedOut,
            LoadError::NoTypeInformation
            | LoadError::NoSharedMemory
            | LoadError::Rejected { .. }
            | LoadError::NoMemoryController => Self::Unsupported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Program = Program {
        name: "some",
        needs_types: false,
    };

    #[track_caller]
    fn check(os_error: i32, said: &str, is_for_good: bool) {
        let source = libbpf_rs::Error::from_raw_os_error(os_error);
        let error = LoadError::of(PROGRAM, source, said);
        let again = error.for_good().map(|again| again.to_string());
        assert_eq!(again, is_for_good.then(|| error.to_string()), "{error}");
    }

    #[test]
    fn what_the_verifier_rejects_it_rejects_again() {
        let log = "-- BEGIN PROG LOAD LOG --\ninvalid indirect read\n-- END PROG LOAD LOG --";
        check(libc::EACCES, log, true);
        check(libc::EINVAL, "cannot create a map", true);
        check(libc::E2BIG, log, true);
    }

    #[test]
    fn the_reason_is_what_was_said_of_the_cause() {
        let said = "libbpf: map 'events': failed to create: -EINVAL\n\
                    libbpf: failed to load object 'exits_bpf'\n\
                    libbpf: failed to load BPF skeleton 'exits_bpf': -EINVAL\n";
        let expected = "libbpf: map 'events': failed to create: -EINVAL";
        assert_eq!(last_words(said), Some(expected));
        let log = "-- BEGIN PROG LOAD LOG --\ntoo complex\nprocessed 9 insns\n-- END PROG LOAD LOG --\n\
                   libbpf: failed to load object 'memcg_bpf'\n";
        assert_eq!(last_words(log), Some("too complex"));
        assert_eq!(last_words(""), None);
    }

    #[test]
    fn what_ran_short_is_tried_again() {
        check(libc::ENOMEM, "", false);
        check(libc::EAGAIN, "", false);
        check(libc::EPERM, "", false);
    }
}
