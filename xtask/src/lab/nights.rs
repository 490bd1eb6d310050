//! `cargo xtask lab nights`: nights of random trouble, each of its own seed, in namespaces of this
//! machine, and how much of it sexton finds. A night is replayed alone by its seed.

mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use sexton_lab::night::Night;
use sexton_lab::night::score::{Score, Total};
use sexton_lab::night::script::{script, watch_seconds};
use sexton_lab::night::trouble::Trouble;
use sexton_lab::outcome::Outcome;
use sexton_lab::script::OUT;

use super::page;
use super::place::Place;
use super::play::Stage;
use crate::{setup, workspace};

/// The nights of every test run.
pub(super) const TESTED: std::ops::Range<u64> = 1..11;

/// Which nights.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// The seed of the first night; each further one has the next number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many nights
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// Only say what would happen in them
    #[arg(long)]
    list: bool,
    /// Play only those that are not kept in target/lab/nights, and score these too
    #[arg(long)]
    missing: bool,
    /// Write the table into docs/matrix.md
    #[arg(long)]
    write: bool,
}

pub(super) fn nights(choice: &Choice) -> Result<ExitCode> {
    let seeds = choice.seed..choice.seed.saturating_add(choice.count);
    let troubles = troubles()?;
    if choice.list {
        for seed in seeds {
            println!("night {seed}: {}", Night::draw(seed, &troubles));
        }
        return Ok(ExitCode::SUCCESS);
    }
    setup::install_missing(setup::For::Guests)?;
    let mut open = None;
    let mut total = Total::default();
    let mut bad = Vec::new();
    for seed in seeds.clone() {
        let night = Night::draw(seed, &troubles);
        let score = match read(&night, &troubles) {
            Ok(score) if choice.missing => score,
            _ => {
                let stage = match &open {
                    Some(stage) => stage,
                    None => open.insert(Stage::open()?),
                };
                play(stage, &night, &troubles)?
            }
        };
        total.add(&score);
        if !score.is_good() {
            bad.push((seed, score.wrong().join("; ")));
        }
    }
    let text = table::table(&total, seeds.start, &bad);
    println!("\n{text}");
    if choice.write {
        page::write_nights(&text)?;
    }
    Ok(match bad.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// All that a night may hold.
pub(super) fn troubles() -> Result<Vec<Trouble>> {
    Trouble::all(&workspace::root().join("lab/troubles"))
}

fn folder(seed: u64) -> PathBuf {
    super::folder().join("nights").join(seed.to_string())
}

/// Plays a night, keeps what came of it, and says how it went.
pub(super) fn play(stage: &Stage, night: &Night, troubles: &[Trouble]) -> Result<Score> {
    let (folder, start) = (folder(night.seed), Instant::now());
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fs::write(folder.join(DRAWN), night.to_string()).context("cannot write what is played")?;
    println!("night {}: {night}", night.seed);
    let done = stage.play_night(&script(night, troubles), &folder);
    done.with_context(|| format!("night {}", night.seed))?;
    let score = read(night, troubles)?;
    let seconds = start.elapsed().as_secs();
    let watched = watch_seconds(night, troubles);
    let took = format!("{seconds} s, of which {watched} s are the watch");
    match score.is_good() {
        true => println!("night {}: ok ({took})", night.seed),
        false => {
            for wrong in score.wrong() {
                println!("night {}: FAILED: {wrong}", night.seed);
            }
            println!(
                "night {}: {took}; alone: cargo xtask lab nights --seed {} --count 1",
                night.seed, night.seed
            );
        }
    }
    Ok(score)
}

/// The file that says what a night was when it was played.
const DRAWN: &str = "night.txt";

/// The score of a night that was played.
fn read(night: &Night, troubles: &[Trouble]) -> Result<Score> {
    let drawn = fs::read_to_string(folder(night.seed).join(DRAWN)).unwrap_or_default();
    ensure!(drawn == night.to_string(), "it was played with other parts");
    let outcome = Outcome::read(&folder(night.seed).join(OUT))?;
    Ok(Score::of(night, troubles, Place::HERE.machine(), &outcome))
}
