//! `sexton record`: how far it is, and what it has kept.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use crate::text::{bytes, count, duration, number, paragraph};

/// How far a recording is.
#[derive(Debug, Clone, Copy)]
pub struct ProgressView {
    /// Time since it began.
    pub elapsed: Duration,
    /// Time it is to take, if that is known.
    pub time: Option<Duration>,
    /// Records kept so far.
    pub n_records: u64,
    /// Size of the bundle.
    pub bytes: u64,
    /// Sensors that see nothing.
    pub n_blind: u64,
}

/// What a recording has kept.
#[derive(Debug, Clone)]
pub struct SummaryView<'a> {
    /// The time it took.
    pub elapsed: Duration,
    /// Records kept.
    pub n_records: u64,
    /// Samples of stacks kept.
    pub n_samples: u64,
    /// Size of the bundle.
    pub bytes: u64,
    /// Its sealed segments.
    pub n_segments: u64,
    /// Sensors that saw nothing in the end, and why.
    pub blind: Vec<(&'a str, &'a str)>,
}

/// One line for a log, where nobody sees it grow.
pub fn begun_line(folder: &Path, time: Option<Duration>) -> String {
    let until = match time {
        Some(time) => format!("for {}", duration(time.as_secs())),
        None => "until SIGTERM or SIGINT".to_owned(),
    };
    format!("Recording into {} {until}.", folder.display())
}

/// One line for a terminal, without an end.
pub fn progress_line(view: &ProgressView) -> String {
    let of = view.time.map_or_else(String::new, |time| {
        format!(" of {}", duration(time.as_secs()))
    });
    let blind = match view.n_blind {
        0 => String::new(),
        n => format!(", {n} blind"),
    };
    format!(
        "recording {}{of}: {} records, {}{blind}; Ctrl-C ends it",
        duration(view.elapsed.as_secs()),
        number(view.n_records),
        bytes(view.bytes)
    )
}

/// What was kept, what was blind, and what to do with it.
pub fn summary(out: &mut dyn Write, folder: &Path, view: &SummaryView<'_>) -> io::Result<()> {
    let samples = match view.n_samples {
        0 => String::new(),
        n => format!(" and {}", count(n, "stack sample")),
    };
    let text = format!(
        "Recorded {}{samples} in {}: {} in {} and {}.",
        count(view.n_records, "record"),
        duration(view.elapsed.as_secs()),
        bytes(view.bytes),
        folder.display(),
        count(view.n_segments, "segment")
    );
    paragraph(out, "", &text)?;
    if !view.blind.is_empty() {
        writeln!(out, "\nBlind at the end (sexton doctor says more):")?;
        for (sensor, why) in &view.blind {
            paragraph(out, &format!("  {sensor:<10} "), why)?;
        }
    }
    writeln!(out, "\nNext: sexton diagnose {}", folder.display())?;
    writeln!(
        out,
        "SQL:  SELECT * FROM '{}/records/*.parquet'",
        folder.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_a_line_when_it_begins() {
        let check = |time: Option<u64>, expected: &str| {
            let line = begun_line(Path::new("node"), time.map(Duration::from_secs));
            assert_eq!(line, expected);
        };
        check(Some(90), "Recording into node for 1m 30s.");
        check(None, "Recording into node until SIGTERM or SIGINT.");
    }

    #[test]
    fn the_line_fits_a_terminal() {
        let view = ProgressView {
            elapsed: Duration::from_secs(4000),
            time: Some(Duration::from_secs(43_200)),
            n_records: 1_234_567,
            bytes: 7 << 20,
            n_blind: 2,
        };
        let line = progress_line(&view);
        assert_eq!(
            line,
            "recording 1h 6m of 12h: 1,234,567 records, 7 MiB, 2 blind; Ctrl-C ends it"
        );
        assert!(line.chars().count() <= 80);
    }
}
