//! Those who are measured: sexton, and others who record a node once a second.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use sexton_host::Host;
use sexton_kernel_tests::recorders::Recorder;

/// Where `cargo xtask bench` says that the one peer is which no package brings.
const BELOW: &str = "SEXTON_BENCH_BELOW";

/// A port that nobody is known to use.
const NODE_EXPORTER: &str = "127.0.0.1:39100";

/// Starts them all; those that cannot are told, and left out.
pub(crate) fn start_all(folder: &Path) -> Result<Vec<Recorder>> {
    let sexton = std::env::var("SEXTON").context("SEXTON does not say where it is")?;
    let below = std::env::var(BELOW).unwrap_or_else(|_| "below".into());
    let own = |name: &str| folder.join(name);
    let mut recorders = vec![Recorder::start(
        "`sexton record --no-stacks`, all other sensors",
        Command::new(sexton)
            .args(["record", "--no-stacks", "-o"])
            .arg(own("sexton")),
        folder,
    )?];
    let mut of_below = Command::new(&below);
    of_below.arg("--config").arg(config_of_below(folder)?);
    of_below.args(["record", "--interval-s", "1"]);
    let mut atop = Command::new("atop");
    atop.arg("-w").arg(own("atop")).arg("1");
    let mut exporter = Command::new("prometheus-node-exporter");
    exporter.arg(format!("--web.listen-address={NODE_EXPORTER}"));
    for (name, mut command) in [
        ("`below record` at 1 s", of_below),
        ("`atop -w` at 1 s", atop),
        ("`prometheus-node-exporter`, scraped each second", exporter),
    ] {
        match Recorder::start(name, &mut command, folder) {
            Ok(recorder) => recorders.push(recorder),
            Err(error) => eprintln!("{name} is not measured: {error:#}"),
        }
    }
    for recorder in &mut recorders {
        if recorder.name.contains("scraped") {
            recorder.scrape(NODE_EXPORTER, Duration::from_secs(1));
        }
    }
    Ok(recorders)
}

/// It looks for cgroup v2 at one place only, and would end where it is mounted elsewhere.
fn config_of_below(folder: &Path) -> Result<PathBuf> {
    let host = Host::live()?;
    let root = host.mounts().of_type("cgroup2").map(|mount| &mount.point);
    let root = root.context("cgroup v2 is not mounted, which below needs")?;
    let path = folder.join("below.conf");
    let (log, store) = (folder.join("below.log"), folder.join("below"));
    let text = format!("log_dir = {log:?}\nstore_dir = {store:?}\ncgroup_root = {root:?}\n");
    fs::write(&path, text)?;
    Ok(path)
}
