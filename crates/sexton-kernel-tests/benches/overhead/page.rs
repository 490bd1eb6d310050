//! The figures of the whole recorder as text, and their place in docs/benchmarks.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::recorder::{Cost, Figures, N_DYING, N_ROUNDS, Row, WARM_UP};

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

/// CPU time in all.
fn whole(cost: Cost) -> f64 {
    cost.cpu_percent + cost.bpf_percent
}

fn ratios(ours: &Row, peers: &[Row]) -> String {
    let mut text = String::from("| what | measured | limit |\n| --- | ---: | ---: |\n");
    let worst = whole(ours.quiet).max(whole(ours.dying));
    let rss = ours.quiet.rss_mib.max(ours.dying.rss_mib);
    let growth = whole(ours.dying) / whole(ours.quiet);
    let checks = [
        (
            "CPU of `sexton record`, BPF included, % of a core".to_owned(),
            worst,
            CPU_LIMIT_PERCENT,
        ),
        (
            "memory of `sexton record`, MiB".to_owned(),
            rss,
            RSS_LIMIT_MIB,
        ),
        (
            format!("its CPU with {N_DYING} dying / with none"),
            growth,
            GROWTH_LIMIT,
        ),
    ];
    for (what, value, limit) in checks {
        let over = if value > limit { " (over)" } else { "" };
        line(
            &mut text,
            format_args!("| {what} | {value:.2}{over} | {limit} |"),
        );
    }
    for peer in peers {
        let cpu = whole(ours.quiet) / whole(peer.quiet);
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
        "| recorder | CPU % | of it BPF | MiB | CPU %, {N_DYING} dying | of it BPF | MiB | first {} s |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
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
            let _ = write!(cells, " {:.2} | {bpf} | {:.1} |", whole(cost), cost.rss_mib);
        }
        let start_up = row.start_up.as_secs_f64();
        let name = row.name;
        line(
            &mut text,
            format_args!("| {name} |{cells} {start_up:.2} s |"),
        );
    }
    text
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
