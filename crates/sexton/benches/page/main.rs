//! How soon the page has something to show: a recording of 12 hours, two cores, 99 samples
//! of stacks a second each, made by the store's own writer; and one of 96 cores.
//!
//! Cold is a new `sexton serve` process, from its start to its answer. The file system's
//! cache is warm: nothing here empties it.
#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

mod browser;
mod recording;
mod server;

use std::path::PathBuf;
use std::time::Instant;

use recording::{HOURS, SECOND, WALL};
use server::Server;

const RUNS: usize = 5;

fn main() {
    let bundle = recording::bundle(recording::SMALL);
    let sexton = std::env::var_os("SEXTON").map(PathBuf::from);
    let sexton = sexton.expect("SEXTON names the binary: run cargo xtask bench page");
    let mut cold: Vec<(&str, Vec<f64>)> = COLD.iter().map(|(name, _)| (*name, vec![])).collect();
    for _ in 0..RUNS {
        for (n, (_, path)) in COLD.iter().enumerate() {
            let began = Instant::now();
            let server = Server::start(&sexton, &bundle);
            server.get(path);
            cold[n].1.push(began.elapsed().as_secs_f64() * 1e3);
        }
    }
    for (name, times) in &mut cold {
        println!("cold, {name}: {:.0} ms", median(times));
    }
    let server = Server::start(&sexton, &bundle);
    let read = server.wait_until_read();
    println!("all of it read: {:.1} s", read.as_secs_f64());
    for (name, paths) in warm() {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            for path in &paths {
                let began = Instant::now();
                server.get(path);
                times.push(began.elapsed().as_secs_f64() * 1e3);
            }
        }
        let worst = times.iter().copied().fold(0.0, f64::max);
        println!("{name}: {:.1} ms, worst {worst:.1} ms", median(&mut times));
    }
    println!("memory: {} MiB", server.rss_mib());
    drop(server);
    browser::measure(&sexton, &bundle);
}

/// What a page asks for first.
const COLD: [(&str, &str); 3] = [
    ("sources", "/api/v1/sources"),
    (
        "tiles of the whole",
        "/api/v1/sources/main/tiles?lane=cores.worst&lane=nic.events&width=1200",
    ),
    (
        "heat map of the whole",
        "/api/v1/sources/main/heatmap?view=long&columns=1200",
    ),
];

/// What it asks for later, in windows of several lengths.
fn warm() -> Vec<(&'static str, Vec<String>)> {
    let end = (WALL + HOURS * 3600 * SECOND) / 1000;
    let windows = |lengths: &[u64]| -> Vec<(u64, u64)> {
        lengths
            .iter()
            .map(|seconds| (end - seconds * 1_000_000 * 3 / 2, end - seconds * 500_000))
            .collect()
    };
    let lanes = "lane=cores.worst&lane=cores.0&lane=cores.1&lane=kernel.0&lane=kernel.1&\
                 lane=memcg.dying&lane=memcg.live&lane=pressure.cpu&lane=network.delay&\
                 lane=nic.events&lane=units.restarts&lane=gaps";
    let of = |what: &str, lengths: &[u64]| -> Vec<String> {
        let paths = windows(lengths)
            .into_iter()
            .map(|(from, to)| format!("/api/v1/sources/main/{what}&from={from}&to={to}"));
        paths.collect()
    };
    let tiles = format!("tiles?{lanes}&width=1200");
    vec![
        (
            "warm, tiles of 12 lanes",
            of(&tiles, &[28_000, 3600, 600, 60, 5]),
        ),
        ("warm, heat map of 8 h", of("heatmap?view=long", &[28_000])),
        (
            "warm, heat map of an hour",
            of("heatmap?view=offset", &[3600]),
        ),
        (
            "warm, heat map of 10 minutes",
            of("heatmap?view=offset", &[600]),
        ),
        ("warm, flame graph of a minute", of("flame?x=1", &[60])),
        ("warm, flame graph of an hour", of("flame?x=1", &[3600])),
    ]
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
