//! Arguments of `sexton drill`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::DiagnoseFormatArgs;
use crate::quantity;

/// Arguments of `sexton drill`.
#[derive(Debug, Args)]
pub struct DrillArgs {
    /// Do not ask for confirmation; the plan is printed
    #[arg(short, long)]
    pub yes: bool,
    /// Run `sexton diagnose` at the same time, and print its verdict
    #[arg(long)]
    pub diagnose: bool,
    /// Dying memory cgroups to make
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub dying: u32,
    /// How long it lasts, at most 10 minutes
    #[arg(long = "for", value_name = "TIME", default_value = "30s", value_parser = drill_time)]
    pub time: Duration,
    /// Keep what was seen in this folder
    #[arg(short, long, value_name = "FOLDER", requires = "diagnose")]
    pub output: Option<PathBuf>,
    /// Output format.
    #[command(flatten)]
    pub format: DiagnoseFormatArgs,
}

/// Long enough to see something, short enough to bear.
fn drill_time(text: &str) -> Result<Duration, String> {
    let time = quantity::duration(text)?;
    let bearable = Duration::from_secs(10)..=Duration::from_secs(600);
    match bearable.contains(&time) {
        true => Ok(time),
        false => Err("a drill lasts from 10s to 10m".into()),
    }
}

/// Arguments of a part of a drill.
#[derive(Debug, Args)]
pub struct DrillPartArgs {
    /// What the drill tells it
    pub words: Vec<String>,
}
