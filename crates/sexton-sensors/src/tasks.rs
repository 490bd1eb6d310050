//! What procfs tells of one task.

use sexton_host::Host;
use sexton_model::text;

/// Where a task is, and whether it could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The core it runs on or waits for.
    pub(crate) cpu: u32,
    /// It runs, or could.
    pub(crate) is_runnable: bool,
}

/// The name of a task; `None` when it is gone. The idle task has no directory.
pub(crate) fn comm(host: &Host, pid: u32) -> Option<String> {
    if pid == 0 {
        return Some("swapper".into());
    }
    let bytes = host.read(host.proc(&format!("{pid}/comm")).ok()?).ok()?;
    Some(text::escape(bytes.strip_suffix(b"\n").unwrap_or(&bytes)))
}

/// Where a task is; `None` when it is gone.
pub(crate) fn place(host: &Host, pid: u32) -> Option<Place> {
    let path = host.proc(&format!("{pid}/stat")).ok()?;
    parse_stat(&host.read_text(path).ok()?)
}

/// The name that a BPF program read, which ends at the first zero byte.
pub(crate) fn name_of(bytes: &[u8]) -> String {
    text::escape(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// The name may hold blanks and brackets, so fields are counted from its last bracket.
fn parse_stat(stat: &str) -> Option<Place> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    const STATE: usize = 0;
    const PROCESSOR: usize = 36;
    Some(Place {
        cpu: fields.get(PROCESSOR)?.parse().ok()?,
        is_runnable: *fields.get(STATE)? == "R",
    })
}

pub(crate) mod fuzzing {
    //! For the fuzz targets.

    /// What a task's `stat` might say, and the name that a BPF program might read.
    pub fn task_stat(stat: &[u8]) -> String {
        super::parse_stat(&String::from_utf8_lossy(stat));
        super::name_of(stat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stat: &str, expected: Option<(u32, bool)>) {
        let found = parse_stat(stat).map(|place| (place.cpu, place.is_runnable));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_stat_line() {
        let rest = "1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9 1 2 3 4 5 6 7 8 0 0 0 0 0 0 0 17";
        check(&format!("7 (a) b) R {rest} 3 0 0"), Some((3, true)));
        check(&format!("7 (R) S {rest} 11"), Some((11, false)));
        check("7 (short) R 1 2", None);
        check("", None);
    }
}
