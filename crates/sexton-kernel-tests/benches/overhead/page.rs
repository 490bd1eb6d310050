//! The figures of the whole recorder as text, and their place in docs/benchmarks.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::recorder::{Figures, Growth, N_DYING, N_ROUNDS, Row, WARM_UP};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
const BEGIN: &str = "<!-- overhead: begin -->\n";
const END: &str = "<!-- overhead: end -->";

/// What the recorder may cost: of one core, in MiB, and with dying cgroups over without.
const CPU_LIMIT_PERCENT: f64 = 1.0;
const RSS_LIMIT_MIB: f64 = 40.0;
const GROWTH_LIMIT: f64 = 1.0;

/// The section, ratios first.
pub(crate) fn section(figures: &Figures) -> String {
    let mut text = format!(
        "{}; the median of {N_ROUNDS} times {} s without and with dying cgroups, in turns.\n\n",
        figures.machine,
        figures.window.as_secs()
    );
    if let Some((ours, peers)) = figures.rows.split_first() {
        text.push_str(&ratios(ours, peers));
    }
    text.push_str(&table(&figures.rows));
    text
}

fn ratios(ours: &Row, peers: &[Row]) -> String {
    let mut text = String::from("| what | measured | limit |\n| --- | ---: | ---: |\n");
    let worst = ours.quiet.whole_percent().max(ours.dying.whole_percent());
    let rss = ours.quiet.rss_mib.max(ours.dying.rss_mib);
    let checks = [
        (
            "CPU of `sexton record`, BPF included, % of a core".to_owned(),
            worst,
            CPU_LIMIT_PERCENT,
            String::new(),
        ),
        (
            "memory of `sexton record`, MiB".to_owned(),
            rss,
            RSS_LIMIT_MIB,
            String::new(),
        ),
        (
            format!("CPU time of its threads with {N_DYING} dying / with none"),
            ours.growth.median,
            GROWTH_LIMIT,
            format!(", {}", spread(ours.growth)),
        ),
    ];
    for (what, value, limit, spread) in checks {
        // What is shown is what is judged.
        let is_over = (value * 100.0).round() / 100.0 > limit;
        let over = if is_over { " (over)" } else { "" };
        line(
            &mut text,
            format_args!("| {what} | {value:.2}{spread}{over} | {limit} |"),
        );
    }
    let (run, runs) = (ours.run_growth, ours.dying.bpf_runs_per_sec);
    line(
        &mut text,
        format_args!(
            "| the same of one run of its BPF programs, {runs:.0} a second | {:.2}, {} | |",
            run.median,
            spread(run)
        ),
    );
    for peer in peers {
        let cpu = ours.quiet.whole_percent() / peer.quiet.whole_percent();
        let rss = ours.quiet.rss_mib / peer.quiet.rss_mib;
        line(
            &mut text,
            format_args!(
                "| CPU, and memory, of `sexton record` / {} | {cpu:.2}, {rss:.2} | |",
                peer.name
            ),
        );
    }
    text.push('\n');
    text
}

fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "| recorder | CPU % | of it BPF | MiB | CPU %, {N_DYING} dying | of it BPF | MiB | with / without | first {} s |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        WARM_UP.as_secs()
    );
    for row in rows {
        let mut cells = String::new();
        for cost in [row.quiet, row.dying] {
            let bpf = if cost.bpf_percent > 0.0 {
                format!("{:.2}", cost.bpf_percent)
            } else {
                "not counted".into()
            };
            let _ = write!(
                cells,
                " {:.2} | {bpf} | {:.1} |",
                cost.whole_percent(),
                cost.rss_mib
            );
        }
        let start_up = row.start_up.as_secs_f64();
        let (name, growth) = (row.name, row.growth.median);
        let spread = spread(row.growth);
        line(
            &mut text,
            format_args!("| {name} |{cells} {growth:.2}, {spread} | {start_up:.2} s |"),
        );
    }
    text
}

/// The least and the most of all rounds.
fn spread(growth: Growth) -> String {
    format!("{:.2} to {:.2}", growth.least, growth.most)
}

/// Puts the section in place of the old one.
pub(crate) fn write(section: &str) -> Result<()> {
    let path = Path::new(PAGE);
    let page = fs::read_to_string(path).with_context(|| format!("cannot read {PAGE}"))?;
    let between = page
        .split_once(BEGIN)
        .and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = between.with_context(|| format!("{PAGE} has no place for the figures"))?;
    fs::write(path, format!("{head}{BEGIN}{section}{END}{tail}"))
        .with_context(|| format!("cannot write {PAGE}"))
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{line}");
}
