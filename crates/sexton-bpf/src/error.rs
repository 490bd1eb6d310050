use std::io;
use std::path::Path;

use crate::loaded::Program;

/// Why a BPF program could not be loaded or run here.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel does not describe its own types, so offsets are unknown.
    #[error("this kernel has no type information ({BTF} is missing)")]
    NoTypeInformation,
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
        source: libbpf_rs::Error,
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

const BTF: &str = "/sys/kernel/btf/vmlinux";

impl LoadError {
    /// Sorts an error of libbpf by what the user can do about it.
    pub(crate) fn of(program: Program, source: libbpf_rs::Error, said: &str) -> Self {
        if program.needs_types && !Path::new(BTF).exists() {
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
            source,
        }
    }
}

/// What the verifier objected to, or else the last thing that was said.
fn last_words(said: &str) -> Option<&str> {
    let log = said.split("-- END PROG LOAD LOG --").next()?;
    let is_reason = |line: &&str| !line.is_empty() && !line.starts_with("processed ");
    log.lines().map(str::trim).rev().find(is_reason)
}

impl From<&LoadError> for io::ErrorKind {
    fn from(error: &LoadError) -> Self {
        match error {
            LoadError::Denied(_) => Self::PermissionDenied,
            LoadError::Overrun { .. } => Self::TimedOut,
            LoadError::NoTypeInformation
            | LoadError::Rejected { .. }
            | LoadError::NoMemoryController => Self::Unsupported,
        }
    }
}
