//! The section of `docs/benchmarks.md`.

use std::fmt::Write as _;
use std::time::Duration;

use crate::long::Long;
use crate::peers::{Figure, Figures};

/// The whole section.
pub(crate) fn text(figures: &Figures, long: &Long) -> String {
    let mut text = String::new();
    let n = figures.n_samples;
    let _ = writeln!(
        text,
        "{n} samples: perf.data of {:.1} MiB, perf script text of {:.1} MiB. Ratios are of time, and behind it of CPU time.\n",
        mib(figures.data_bytes),
        mib(figures.text_bytes)
    );
    let _ = writeln!(text, "| what | measured | limit |\n| --- | ---: | ---: |");
    for (what, measured, limit) in ratios(figures, long) {
        let _ = writeln!(text, "| {what} | {measured} | {limit} |");
    }
    for (from, rows) in [
        ("perf.data", &figures.of_data),
        ("the text", &figures.of_text),
    ] {
        let _ = writeln!(
            text,
            "\n| from {from} | time | CPU time | peak memory |\n| --- | ---: | ---: | ---: |"
        );
        for figure in rows {
            let _ = writeln!(
                text,
                "| {} | {:.2} s | {:.2} s | {:.0} MiB |",
                figure.who,
                figure.wall.as_secs_f64(),
                figure.cpu.as_secs_f64(),
                mib(figure.peak_bytes)
            );
        }
    }
    let _ = writeln!(
        text,
        "\nThe bundle of {} samples takes {:.1} MiB; in memory its samples take {:.0} MiB.",
        long.n_samples,
        mib(long.bundle_bytes),
        mib(long.kept_bytes)
    );
    for absent in &figures.absent {
        let _ = writeln!(text, "\nNot run: {absent}.");
    }
    text
}

type Ratio = (&'static str, String, &'static str);

fn ratios(figures: &Figures, long: &Long) -> Vec<Ratio> {
    let mut rows = of_files(figures);
    rows.extend(of_bundle(long));
    rows
}

/// What one of these took.
fn find<'a>(rows: &'a [Figure], who: &str) -> Option<&'a Figure> {
    rows.iter().find(|figure| figure.who.starts_with(who))
}

fn cpu(rows: &[Figure], who: &str) -> f64 {
    find(rows, who).map_or(f64::NAN, |figure| figure.cpu.as_secs_f64())
}

/// How many times longer the first took than the second.
fn ratio(rows: &[Figure], peer: &str, ours: &str) -> String {
    let wall = |who| find(rows, who).map_or(f64::NAN, |figure| figure.wall.as_secs_f64());
    let by_cpu = cpu(rows, peer) / cpu(rows, ours);
    format!("{:.1} (CPU {by_cpu:.1})", wall(peer) / wall(ours))
}

fn of_files(figures: &Figures) -> Vec<Ratio> {
    let (data, text) = (&figures.of_data, &figures.of_text);
    let script = |what, who, limit| (what, ratio(data, "perf script", who), limit);
    let heatmap = "sexton profile heatmap";
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let (n, data_bytes, bundle_bytes) = (
        figures.n_samples as f64,
        figures.data_bytes as f64,
        figures.bundle_bytes as f64,
    );
    let mut rows = vec![
        script(
            "`perf script` / perf.data to heat map",
            heatmap,
            "at least 10",
        ),
        script(
            "`perf script` / perf.data to flame graph",
            "sexton profile flame",
            "at least 10",
        ),
        script(
            "`perf script` / perf.data to pprof",
            "sexton profile export (pprof)",
            "at least 10",
        ),
        script(
            "`perf script` / perf.data to folded stacks",
            "sexton profile export (folded)",
            "at least 10",
        ),
        (
            "perf.data to heat map, million samples in a second",
            format!("{:.2}", n / cpu(data, heatmap) / 1e6),
            "at least 1",
        ),
        (
            "inferno / sexton, text to folded stacks",
            ratio(text, "inferno", "sexton profile export"),
            "above 1",
        ),
        (
            "perf.data's bytes / an imported bundle's",
            format!("{:.1}", data_bytes / bundle_bytes),
            "",
        ),
    ];
    rows.extend(of_peers(figures));
    rows
}

/// Those who are not on every machine.
fn of_peers(figures: &Figures) -> Vec<Ratio> {
    let (data, text) = (&figures.of_data, &figures.of_text);
    let peers = [
        (
            "FlameScope / sexton, text to heat map",
            text,
            ["FlameScope", "sexton profile heatmap"],
        ),
        (
            "samply / sexton, perf.data to pprof",
            data,
            ["samply", "sexton profile export (pprof)"],
        ),
    ];
    let was_run = |rows: &[Figure], [peer, _]: [&str; 2]| find(rows, peer).is_some();
    let peers = peers
        .into_iter()
        .filter(|(_, rows, who)| was_run(rows, *who));
    peers
        .map(|(what, rows, [peer, ours])| (what, ratio(rows, peer, ours), ""))
        .collect()
}

fn of_bundle(long: &Long) -> Vec<Ratio> {
    let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1000.0);
    let both = |figure: &Figure| format!("{} (CPU {})", ms(figure.wall), ms(figure.cpu));
    vec![
        (
            "heat map of 12 h x 2 cores at 99 Hz from a bundle that is not in the page cache, ms",
            both(&long.cold),
            "1000",
        ),
        (
            "the same with the bundle in the page cache, ms",
            both(&long.cached),
            "100",
        ),
        (
            "the same again, from samples in memory, ms",
            ms(long.warm),
            "100",
        ),
        (
            "flame graph of a minute in the middle from that bundle, ms",
            both(&long.minute),
            "1000",
        ),
        (
            "the same again, from samples in memory, ms",
            ms(long.flame),
            "100",
        ),
    ]
}

fn mib(bytes: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let bytes = bytes as f64;
    bytes / f64::from(1 << 20)
}
