//! Events in words, each for the lane where it is shown.

use sexton_model::fact::{Fact, cgroup, container, exit, klog, napi, nic, unit};
use sexton_model::record::Record;

use super::table;

/// A line of text is cut after so many characters.
const MAX_CHARS: usize = 240;

/// An event in words.
pub(super) struct Words {
    /// The lane where it is shown.
    pub(super) lane: &'static str,
    /// What sort of thing it is.
    pub(super) kind: String,
    pub(super) text: String,
    /// How many at once.
    pub(super) n: u64,
}

/// The words for an event; `None` when no lane shows it.
pub(super) fn of(record: &Record, fact: &'static Fact) -> Option<Words> {
    let name: &str = &record.subject.name;
    let (lane, text) = if *fact == unit::UNIT_STARTED {
        return Some(started(record, name));
    } else if *fact == unit::UNIT_FAILED {
        let result = record.detail("result").unwrap_or("not told why");
        (table::RESTARTS, format!("{name} failed: {result}"))
    } else if *fact == cgroup::CGROUP_BORN {
        (table::CHURN, born(record, name))
    } else if *fact == cgroup::CGROUP_BURST {
        if record.detail("what") != Some(cgroup::CGROUP_BORN.name) {
            return None;
        }
        let pattern = record.detail("pattern").unwrap_or(name);
        (table::CHURN, format!("{} like {pattern}", n_of(record)))
    } else if *fact == container::CONTAINER_STARTED {
        (table::BIRTHS, format!("{} started", container_of(record)))
    } else if *fact == container::CONTAINER_EXITED {
        let code = record.detail("exit_code").unwrap_or("not known");
        let text = format!("{} exited, code {code}", container_of(record));
        (table::EXITS, text)
    } else if *fact == napi::NAPI_STARVED || *fact == napi::NAPI_SERVED {
        (table::STARVED, starved(record, fact))
    } else if *fact == nic::NIC_LINK {
        let state = record.detail("operstate").unwrap_or("changed");
        (table::NIC, format!("link of {name}: {state}"))
    } else if *fact == klog::KLOG_EVENT {
        return Some(line(record));
    } else if *fact == exit::PROCESS_FAILED || *fact == exit::PROCESS_FAILED_BURST {
        (table::FAILED, failed(record))
    } else {
        return None;
    };
    Some(words(lane, fact.name, text, n_of(record)))
}

fn words(lane: &'static str, kind: &str, text: String, n: u64) -> Words {
    let text = match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    };
    Words {
        lane,
        kind: kind.to_owned(),
        text,
        n: n.max(1),
    }
}

fn n_of(record: &Record) -> u64 {
    let n = record.detail("n").and_then(|n| n.parse().ok());
    n.unwrap_or(1)
}

fn started(record: &Record, name: &str) -> Words {
    let n = n_of(record);
    if record.detail("by") == Some("restart") {
        let text = format!("{name} restarted");
        words(table::RESTARTS, "restart", text, n)
    } else {
        words(table::STARTS, "start", format!("{name} started"), n)
    }
}

fn born(record: &Record, name: &str) -> String {
    let path = record.detail("path").unwrap_or(name);
    let asked = record
        .detail("asker_unit")
        .or(record.detail("creator_unit"));
    let by = record.detail("creator_comm");
    match (asked, by) {
        (Some(unit), _) => format!("{path} by {unit}"),
        (None, Some(comm)) => format!("{path} by {comm}"),
        (None, None) => path.to_owned(),
    }
}

fn container_of(record: &Record) -> String {
    let image = record.detail("image");
    let name = record.detail("name").unwrap_or(&record.subject.name);
    match image {
        Some(image) => format!("{name} of {image}"),
        None => name.to_owned(),
    }
}

fn starved(record: &Record, fact: &Fact) -> String {
    let waited = record.detail("waited_ns").and_then(|ns| ns.parse().ok());
    let waited = waited.map_or(String::new(), |ns: u64| {
        format!(" after {} ms", ns / 1_000_000)
    });
    let core = &record.subject;
    let what = if *fact == napi::NAPI_SERVED {
        "polling ran again"
    } else {
        "polling waits"
    };
    match record.detail("holder_comm") {
        Some(holder) => format!("{core}: {what}{waited}, held by {holder}"),
        None => format!("{core}: {what}{waited}"),
    }
}

fn line(record: &Record) -> Words {
    let class = record.detail("class").unwrap_or("line");
    let is_nic = class.starts_with("nic_") || class.starts_with("link_") || class == "napi_starved";
    let lane = if is_nic { table::NIC } else { table::LOG };
    let text = record.detail("line").unwrap_or(class).to_owned();
    words(lane, class, text, 1)
}

fn failed(record: &Record) -> String {
    let comm = record.detail("comm").unwrap_or("a process");
    let how = match (record.detail("signal"), record.detail("exit_code")) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("status {code}"),
        (None, None) => "failed".to_owned(),
    };
    let place = record.detail("unit").or(record.detail("container"));
    match place {
        Some(place) => format!("{comm}: {how}, in {place}"),
        None => format!("{comm}: {how}"),
    }
}
