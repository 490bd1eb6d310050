//! Runs a drill as the command would, without asking: `drill run N_DYING SECONDS`. Says
//! `core N`, then `left PLACE` for each thing that an earlier one had left, then `ready`.
//! `drill part ...` is how it runs its parts.
#![allow(clippy::print_stdout, reason = "tells the test how far it is")]

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sexton_drill::{Consent, Drill, Options, Plan, run_part};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [word, rest @ ..] if word == "part" => Ok(run_part(rest)?),
        [word, n_dying, seconds] if word == "run" => run(n_dying.parse()?, seconds.parse()?),
        _ => bail!("drill run N_DYING SECONDS"),
    }
}

fn run(n_dying: u32, seconds: u64) -> Result<()> {
    let time = Duration::from_secs(seconds);
    let plan = Plan::make(Options { n_dying, time })?;
    println!("core {}", plan.core);
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut drill = Drill::start(&Consent::given_by_the_user(), &plan, &program, &["part"])?;
    for place in &drill.leftovers().places {
        println!("left {place}");
    }
    println!("ready");
    let began = Instant::now();
    while began.elapsed() < time {
        drill.tick()?;
        thread::sleep(Duration::from_millis(50));
    }
    Ok(drill.end()?)
}
