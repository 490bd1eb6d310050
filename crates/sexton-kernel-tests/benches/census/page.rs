//! The figures as text: on the terminal, and in docs/benchmarks.md.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::figures::{AtSize, Figures, Laps, thousands};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");
const BEGIN: &str = "<!-- census: begin -->\n";
const END: &str = "<!-- census: end -->";

/// The section, ratios first.
pub(crate) fn section(figures: &Figures, date: &str) -> String {
    let parts = [
        format!("{}, {date}.\n", figures.machine),
        ratios(figures),
        walks(figures),
        commands(figures),
        cost(figures),
    ];
    parts.join("\n")
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

fn ratios(figures: &Figures) -> String {
    let mut text = String::from("| what | measured | limit |\n| --- | ---: | ---: |\n");
    for check in figures.checks() {
        let failed = if check.holds() { "" } else { " (over)" };
        line(
            &mut text,
            format_args!(
                "| {} | {:.2}{failed} | {} |",
                check.what, check.value, check.limit
            ),
        );
    }
    let commands = &figures.commands;
    let cost = &figures.cost;
    line(
        &mut text,
        format_args!(
            "| CPU time of `sexton zombies --json` / `find -type d`, {} live cgroups | {:.2} | |",
            thousands(commands.n_live),
            commands.ratio()
        ),
    );
    line(
        &mut text,
        format_args!(
            "| kernel memory of a dying cgroup, measured / the census's \"at least\" | {:.2} | |",
            (cost.slab + cost.percpu) / cost.estimate
        ),
    );
    text
}

fn walks(figures: &Figures) -> String {
    let mut text = String::from(
        "Microseconds for each memory cgroup, best / median of 7, and the longest run without a break:\n\n\
         | dying | who | walk | hand-over | both | longest run |\n| ---: | --- | ---: | ---: | ---: | ---: |\n",
    );
    for at in &figures.sizes {
        walk_line(&mut text, at, "sexton's walk", &at.sexton);
        walk_line(&mut text, at, "bare walk", &at.bare);
        line(
            &mut text,
            format_args!(
                "| {} | whole census | | | {:.2} / {:.2} | |",
                thousands(at.n_dying),
                at.census.best,
                at.census.median
            ),
        );
    }
    let (ours, bare) = &figures.load_ms;
    let _ = write!(
        text,
        "\nLoading the program, once for each census: {:.1} / {:.1} ms; the bare one: {:.1} / {:.1} ms. \
         Having every CPU put its waiting pages on the lists: {:.2} / {:.2} ms.\n",
        ours.best,
        ours.median,
        bare.best,
        bare.median,
        figures.drain_ms.best,
        figures.drain_ms.median
    );
    text
}

fn walk_line(text: &mut String, at: &AtSize, who: &str, laps: &Laps) {
    let (walk, hand_over, total) = (laps.walk(), laps.hand_over(), laps.total());
    let longest = laps.longest_run();
    line(
        text,
        format_args!(
            "| {} | {who} | {:.2} / {:.2} | {:.2} / {:.2} | {:.2} / {:.2} | {} / {} |",
            thousands(at.n_dying),
            walk.best,
            walk.median,
            hand_over.best,
            hand_over.median,
            total.best,
            total.median,
            duration(longest.best),
            duration(longest.median)
        ),
    );
}

fn commands(figures: &Figures) -> String {
    let commands = &figures.commands;
    let largest = figures.sizes.last().map_or(0, |at| at.n_dying);
    format!(
        "| command | CPU time, best / median of 7 | peak memory |\n| --- | ---: | ---: |\n\
         | `sexton zombies --json`, {live} live | {:.1} / {:.1} ms | |\n\
         | `find MOUNT -type d`, {live} live | {:.1} / {:.1} ms | |\n\
         | `sexton zombies`, {dying} dying | {:.0} ms, once | {:.1} MiB |\n\
         | `sexton zombies --json`, {dying} dying | {:.0} ms, once | {:.1} MiB |\n",
        commands.sexton_ms.best,
        commands.sexton_ms.median,
        commands.find_ms.best,
        commands.find_ms.median,
        figures.text.cpu.as_secs_f64() * 1e3,
        figures.text.peak_mib(),
        figures.json.cpu.as_secs_f64() * 1e3,
        figures.json.peak_mib(),
        live = thousands(commands.n_live),
        dying = thousands(largest),
    )
}

fn cost(figures: &Figures) -> String {
    let cost = &figures.cost;
    let (before, after) = figures.left;
    format!(
        "One dying cgroup takes {:.1} kB of kernel memory ({:.1} kB slab, {:.1} kB per-CPU; {} of them, pinned \
         by one file). The census says at least {:.1} kB.\n\n\
         Memory cgroups before the run: {before}; when it had cleaned up: {after}.\n",
        (cost.slab + cost.percpu) / 1e3,
        cost.slab / 1e3,
        cost.percpu / 1e3,
        thousands(cost.n_dying),
        cost.estimate / 1e3
    )
}

fn duration(micros: f64) -> String {
    if micros < 1e3 {
        format!("{micros:.0} us")
    } else {
        format!("{:.1} ms", micros / 1e3)
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{line}");
}
