//! Jobs of Slurm, from what `sacct --parsable2` prints.

use anyhow::{Result, bail};

use super::time::{Offset, us_of};
use super::{Job, MAX_NODES, Outcome, Told};

/// What to type for it.
pub const COMMAND: &str = "sacct --allocations --parsable2 --format=JobID,Cluster,User,State,ExitCode,Start,End,NodeList,JobName";

/// Columns that a job cannot be told without.
const NEEDED: &[&str] = &["jobid", "state", "end", "nodelist"];

/// Reads it. Times of sacct are local ones, `offset` ahead of UTC.
pub fn read(text: &str, offset: Offset) -> Result<Told> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().unwrap_or_default();
    if !header.contains('|') {
        bail!("this is not parsable output of sacct; run {COMMAND}");
    }
    let names: Vec<String> = header
        .split('|')
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let at = |wanted: &str| names.iter().position(|name| name == wanted);
    let missing: Vec<&str> = NEEDED
        .iter()
        .copied()
        .filter(|name| at(name).is_none())
        .collect();
    if !missing.is_empty() {
        bail!(
            "sacct printed no column {}; run {COMMAND}",
            missing.join(", ")
        );
    }
    let mut told = Told::default();
    for line in lines {
        // The last column is the name of the job, which may be anything.
        let cells: Vec<&str> = line.splitn(names.len(), '|').collect();
        let cell = |name: &str| {
            let text = cells.get(at(name)?)?.trim();
            (!is_nothing(text)).then_some(text)
        };
        take(&mut told, offset, line, &cell);
    }
    Ok(told)
}

fn is_nothing(text: &str) -> bool {
    matches!(
        text,
        "" | "Unknown" | "None" | "None assigned" | "(null)" | "N/A"
    )
}

fn take<'a>(told: &mut Told, offset: Offset, line: &str, cell: &dyn Fn(&str) -> Option<&'a str>) {
    let (Some(id), Some(state)) = (cell("jobid"), cell("state")) else {
        return told.refuse(|| format!("a line without JobID or State: {line:?}"));
    };
    // Steps of a job (12.batch, 12.0) are told by the job.
    if id.contains('.') {
        return;
    }
    let outcome = match outcome(state) {
        Some(Some(outcome)) => outcome,
        Some(None) => {
            told.n_unfinished += 1;
            return;
        }
        None => return told.refuse(|| format!("unknown state {state:?} of job {id}")),
    };
    let Some(ended_us) = cell("end").and_then(|end| us_of(end, offset)) else {
        return told.refuse(|| format!("job {id} is {state} and has no end: {line:?}"));
    };
    let nodes = match cell("nodelist").map_or(Ok(Vec::new()), nodes_of) {
        Ok(nodes) => nodes,
        Err(why) => return told.refuse(|| format!("nodes of job {id}: {why}")),
    };
    let own = |name: &str| cell(name).map(str::to_owned);
    told.take(Job {
        // Clusters count for themselves.
        id: match cell("cluster") {
            Some(cluster) => format!("{cluster}/{id}"),
            None => id.to_owned(),
        },
        name: own("jobname"),
        user: own("user"),
        outcome,
        reason: (outcome != Outcome::Succeeded).then(|| state.to_owned()),
        exit_code: cell("exitcode").and_then(exit_code),
        started_us: cell("start").and_then(|start| us_of(start, offset)),
        ended_us,
        nodes,
    });
}

/// The code of `1:0`, or of the signal that ended it, as a shell has it: 137 of `0:9`.
fn exit_code(text: &str) -> Option<f64> {
    let (code, signal) = text.split_once(':').unwrap_or((text, "0"));
    let (code, signal): (u32, u32) = (code.parse().ok()?, signal.parse().ok()?);
    match signal {
        0 => Some(f64::from(code)),
        1..=64 => Some(f64::from(128 + signal)),
        // Slurm's own, 125: out of memory.
        _ => (code != 0).then_some(f64::from(code)),
    }
}

/// How a job of this state ended; `Some(None)` if it has not.
fn outcome(state: &str) -> Option<Option<Outcome>> {
    // `CANCELLED by 1000`; cut columns end with a plus.
    let word = state.split_whitespace().next()?.trim_end_matches('+');
    Some(match word {
        "COMPLETED" => Some(Outcome::Succeeded),
        "FAILED" | "NODE_FAIL" | "TIMEOUT" | "OUT_OF_MEMORY" | "BOOT_FAIL" | "DEADLINE"
        | "LAUNCH_FAILED" | "RECONFIG_FAIL" | "SPECIAL_EXIT" => Some(Outcome::Failed),
        "CANCELLED" | "PREEMPTED" | "REVOKED" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD"
        | "RESV_DEL_HOLD" => Some(Outcome::Stopped),
        "PENDING" | "RUNNING" | "SUSPENDED" | "CONFIGURING" | "COMPLETING" | "RESIZING"
        | "SIGNALING" | "STAGE_OUT" | "STOPPED" | "POWER_UP_NODE" | "UPDATE_DB" | "EXPEDITING" => {
            None
        }
        _ => return None,
    })
}

/// The nodes of a list: `gpu[001-003,7],login1`.
fn nodes_of(list: &str) -> Result<Vec<String>, String> {
    let mut nodes = Vec::new();
    for part in parts(list)? {
        expand(part, &mut nodes)?;
        if nodes.len() > MAX_NODES {
            return Err(format!("there are more than {MAX_NODES}"));
        }
    }
    Ok(nodes)
}

/// Splits at commas outside of brackets.
fn parts(list: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in list.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            break;
        }
    }
    if depth != 0 {
        return Err(format!("brackets of {list:?} do not match"));
    }
    parts.push(&list[start..]);
    parts.retain(|part| !part.is_empty());
    Ok(parts)
}

/// One part: a name with any number of ranges in brackets.
fn expand(part: &str, nodes: &mut Vec<String>) -> Result<(), String> {
    let mut names = vec![String::new()];
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('[') {
        let (ranges, after) = after
            .split_once(']')
            .ok_or_else(|| format!("brackets of {part:?} do not match"))?;
        let mut next = Vec::new();
        for range in ranges.split(',') {
            for number in numbers(range)? {
                next.extend(names.iter().map(|name| format!("{name}{before}{number}")));
                if next.len() > MAX_NODES {
                    return Err(format!("there are more than {MAX_NODES}"));
                }
            }
        }
        names = next;
        rest = after;
    }
    nodes.extend(names.into_iter().map(|name| format!("{name}{rest}")));
    Ok(())
}

/// The numbers of a range, as wide as its first: `008-011`.
fn numbers(range: &str) -> Result<Vec<String>, String> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let wrong = || format!("{range:?} is not a range of numbers");
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) {
        return Err(wrong());
    }
    let (from, to): (u64, u64) = (
        first.parse().map_err(|_| wrong())?,
        last.parse().map_err(|_| wrong())?,
    );
    if to < from || to - from >= MAX_NODES as u64 {
        return Err(wrong());
    }
    let width = first.len();
    Ok((from..=to)
        .map(|number| format!("{number:0width$}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes_are_expanded() {
        let check =
            |list: &str, expected: &[&str]| assert_eq!(nodes_of(list).unwrap(), expected, "{list}");
        check("login1", &["login1"]);
        check(
            "gpu[008-010,12],login1",
            &["gpu008", "gpu009", "gpu010", "gpu12", "login1"],
        );
        check("r[1-2]n[3-4]", &["r1n3", "r2n3", "r1n4", "r2n4"]);
        check(
            "n[1-2]-ib.example.org",
            &["n1-ib.example.org", "n2-ib.example.org"],
        );
        for list in [
            "a[1-",
            "a]1[",
            "a[[1]]",
            "a[3-1]",
            "a[x]",
            "a[1-99999999999]",
            "a[1-9999]b[1-9999]",
            "a[]",
        ] {
            assert!(nodes_of(list).is_err(), "{list}");
        }
    }

    #[test]
    fn a_signal_is_no_success() {
        let check = |text: &str, expected| assert_eq!(exit_code(text), expected, "{text}");
        check("0:0", Some(0.0));
        check("3:0", Some(3.0));
        check("0:9", Some(137.0));
        check("1:15", Some(143.0));
        check("0:125", None);
        check("7", Some(7.0));
        check("x:0", None);
    }

    #[test]
    fn any_text_is_read_or_refused() {
        for text in [
            "",
            "|",
            "jobid|state|end|nodelist\n|||\n\u{1F4A3}|FAILED|x|[",
            "JobID|State|End|NodeList\n1|COMPLETED",
        ] {
            let _ = read(text, Offset::default());
        }
    }
}
