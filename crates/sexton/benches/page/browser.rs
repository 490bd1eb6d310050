//! The same recordings in a real Chromium, which `ui/dev/measure.mjs` drives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::recording::{self, LARGE, SMALL};
use crate::server::Server;
use crate::{RUNS, median};

/// Measures the page, where there is a browser, and says so where there is none.
pub(crate) fn measure(sexton: &Path, small: &Path) {
    let Some(ui) = std::env::var_os("SEXTON_UI").map(PathBuf::from) else {
        println!("in a browser: not measured, there is no chromium");
        return;
    };
    let large = recording::bundle(LARGE);
    for (plan, bundle) in [(SMALL, small), (LARGE, &large)] {
        let cores = plan.cores;
        // A new server and a new browser each: nothing is kept of the run before.
        let runs = (0..RUNS).map(|_| run(&ui, &Server::start(sexton, bundle), "cold"));
        tell(&format!("{cores} cores, cold"), runs.collect());
        let server = Server::start(sexton, bundle);
        println!(
            "{cores} cores, read: {:.1} s",
            server.wait_until_read().as_secs_f64()
        );
        let runs = (0..RUNS).map(|_| run(&ui, &server, "warm"));
        tell(&format!("{cores} cores, warm"), runs.collect());
        println!("{cores} cores, memory: {} MiB", server.rss_mib());
    }
    let server = Server::start(sexton, small);
    server.wait_until_read();
    let runs = (0..RUNS).map(|_| run(&ui, &server, "flame"));
    tell("flame graph", runs.collect());
}

/// Names and milliseconds, as the script prints them.
fn run(ui: &Path, server: &Server, what: &str) -> BTreeMap<String, f64> {
    let output = Command::new("node")
        .arg(ui.join("dev/measure.mjs"))
        .arg(format!("http://{}/", server.address))
        .arg(what)
        .output()
        .expect("node starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "measure.mjs failed: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(&text).expect("an object of numbers")
}

fn tell(what: &str, runs: Vec<BTreeMap<String, f64>>) {
    let names: Vec<&String> = runs.first().into_iter().flat_map(BTreeMap::keys).collect();
    for name in names {
        let mut times: Vec<f64> = runs
            .iter()
            .filter_map(|run| run.get(name))
            .copied()
            .collect();
        let worst = times.iter().copied().fold(0.0, f64::max);
        let median = median(&mut times);
        println!("{what}, {name}: {median:.1} ms, worst {worst:.1} ms");
    }
}
