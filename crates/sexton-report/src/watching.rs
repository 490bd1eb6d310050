//! What a terminal shows while a node is watched: how far that is, which sensors are at work,
//! and what can be said so far.

use std::time::Duration;

use crate::text::{count, duration, number};

/// How far a watch is.
#[derive(Debug, Clone, Default)]
pub struct WatchingView<'a> {
    /// Time since it began.
    pub elapsed: Duration,
    /// Time it is to take.
    pub time: Duration,
    /// Records so far.
    pub n_records: u64,
    /// Sensors at work.
    pub n_at_work: usize,
    /// Sensors that have not said anything yet.
    pub starting: Vec<&'a str>,
    /// Sensors that see nothing.
    pub blind: Vec<&'a str>,
    /// The headline of the preliminary verdict, once there is one.
    pub so_far: Option<&'a str>,
}

/// Lines for a terminal of this width. None is longer, so that each takes one row.
pub fn lines(view: &WatchingView<'_>, width: usize) -> Vec<String> {
    let progress = format!(
        "Watching {} of {}, Ctrl-C judges now: {} records from {}",
        duration(view.elapsed.as_secs()),
        duration(view.time.as_secs()),
        number(view.n_records),
        count(view.n_at_work as u64, "sensor"),
    );
    let names = |title: &str, names: &[&str]| {
        let line = format!("{title}: {}", names.join(", "));
        (!names.is_empty()).then_some(line)
    };
    let so_far = view.so_far.map(|headline| format!("So far: {headline}"));
    let lines = [
        Some(progress),
        names("Starting", &view.starting),
        names("Blind", &view.blind),
        so_far,
    ];
    lines
        .into_iter()
        .flatten()
        .map(|line| cut(line, width))
        .collect()
}

/// What a user without privileges is told in the first second: the sensors that lack some.
pub fn without_root(denied: &[&str]) -> String {
    format!(
        "Not running as root: blind or limited are {}.\nFor the whole answer: sudo sexton diagnose\n",
        denied.join(", ")
    )
}

fn cut(line: String, width: usize) -> String {
    if line.chars().count() < width {
        return line;
    }
    let kept: String = line.chars().take(width.saturating_sub(2)).collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(view: &WatchingView<'_>, width: usize, expected: &[&str]) {
        let lines = lines(view, width);
        assert_eq!(lines, expected);
        assert!(lines.iter().all(|line| line.chars().count() < width));
    }

    #[test]
    fn sensors_come_up_and_a_verdict_appears() {
        let early = WatchingView {
            time: Duration::from_secs(30),
            starting: vec!["memcg", "stacks"],
            ..WatchingView::default()
        };
        check(
            &early,
            80,
            &[
                "Watching 0s of 30s, Ctrl-C judges now: 0 records from 0 sensors",
                "Starting: memcg, stacks",
            ],
        );
        let later = WatchingView {
            elapsed: Duration::from_secs(12),
            time: Duration::from_secs(30),
            n_records: 12_345,
            n_at_work: 17,
            starting: Vec::new(),
            blind: vec!["journal"],
            so_far: Some("ecs.service is in a restart loop"),
        };
        check(
            &later,
            80,
            &[
                "Watching 12s of 30s, Ctrl-C judges now: 12,345 records from 17 sensors",
                "Blind: journal",
                "So far: ecs.service is in a restart loop",
            ],
        );
        check(
            &later,
            30,
            &[
                "Watching 12s of 30s, Ctrl-C…",
                "Blind: journal",
                "So far: ecs.service is in a…",
            ],
        );
    }

    /// What the founding incident looks like while it is watched, at 80 and 60 columns.
    #[test]
    fn the_founding_incident_while_it_is_watched() {
        let view = WatchingView {
            elapsed: Duration::from_secs(25),
            time: Duration::from_secs(30),
            n_records: 1_234_567,
            n_at_work: 26,
            starting: vec!["stacks"],
            blind: vec!["journal", "pressure", "runtimes"],
            so_far: Some(
                "ecs.service is \"active\" but starts a new amazon/amazon-ecs-agent:latest \
                 container every 1.4 s; 35 dying memory cgroups, +2,200/h",
            ),
        };
        check(
            &view,
            80,
            &[
                "Watching 25s of 30s, Ctrl-C judges now: 1,234,567 records from 26 sensors",
                "Starting: stacks",
                "Blind: journal, pressure, runtimes",
                "So far: ecs.service is \"active\" but starts a new amazon/amazon-ecs-agent:lates…",
            ],
        );
        check(
            &view,
            60,
            &[
                "Watching 25s of 30s, Ctrl-C judges now: 1,234,567 records…",
                "Starting: stacks",
                "Blind: journal, pressure, runtimes",
                "So far: ecs.service is \"active\" but starts a new amazon/am…",
            ],
        );
    }

    #[test]
    fn without_root_says_what_is_limited_and_what_to_type() {
        assert_eq!(
            without_root(&["cgroups", "stacks"]),
            "Not running as root: blind or limited are cgroups, stacks.\n\
             For the whole answer: sudo sexton diagnose\n"
        );
    }
}
