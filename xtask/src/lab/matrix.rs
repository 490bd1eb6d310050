//! `cargo xtask lab matrix`: every scenario on every machine. What was played before with
//! the same binary and recipe is not played again, so that it can be ended at any time.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use sexton_lab::scenario::Scenario;

use super::before::Before;
use super::card::Card;
use super::page;
use super::place::Place;
use super::play::{Stage, judge};
use crate::{setup, workspace};

/// A machine that the table leaves out unless it is asked for by name.
const LEFT_OUT: &str = "5.10-v2";

/// What of it is played.
#[derive(clap::Args)]
pub(crate) struct Choice {
    /// Only the machines with this kernel, `here` for this one; may be repeated
    #[arg(long)]
    kernel: Vec<String>,
    /// Only the machines where the bpf() system call is refused to sexton
    #[arg(long)]
    no_bpf: bool,
    /// Only these scenarios; may be repeated
    #[arg(long)]
    scenario: Vec<String>,
    /// So many guests at a time; each uses one core
    #[arg(long, default_value_t = 1)]
    at_once: usize,
    /// Play what was red before once more
    #[arg(long)]
    replay_red: bool,
    /// Only what docs/matrix.md calls not played, whichever sexton the rest was played with
    #[arg(long)]
    missing: bool,
    /// Play nothing; write the page from what was played before
    #[arg(long)]
    write_only: bool,
}

pub(super) fn matrix(choice: &Choice) -> Result<ExitCode> {
    let (kernels, names) = (&choice.kernel, &choice.scenario);
    let scenarios = super::scenarios()?;
    for name in names {
        super::scenario(name)?;
    }
    let places = Place::all();
    let known = |kernel: &&String| places.iter().any(|place| place.kernel() == *kernel);
    if let Some(kernel) = kernels.iter().find(|kernel| !known(kernel)) {
        anyhow::bail!("no machine has kernel {kernel}; `cargo xtask lab list` lists them");
    }
    if !choice.write_only {
        let is_wanted = |place: &&Place| {
            let is_asked = kernels.is_empty() || kernels.iter().any(|k| k == place.kernel());
            is_asked && (place.refuses_bpf || !choice.no_bpf)
        };
        let places = places.iter().filter(is_wanted).filter(is_shown);
        let scenarios = scenarios
            .iter()
            .filter(|scenario| names.is_empty() || names.contains(&scenario.name));
        let (places, scenarios): (Vec<_>, Vec<_>) = (places.collect(), scenarios.collect());
        play(&places, &scenarios, choice)?;
    }
    write(&scenarios, &places)
}

fn is_shown(place: &&Place) -> bool {
    place.name() != LEFT_OUT
}

/// One scenario on one machine.
type Part<'a> = (&'a Scenario, &'a Place);

/// Machine by machine. Namespaces share one kernel, so what is played there is played alone.
fn play(places: &[&Place], scenarios: &[&Scenario], choice: &Choice) -> Result<()> {
    setup::install_missing(setup::For::Guests)?;
    let stage = Stage::open()?;
    let all = places
        .iter()
        .flat_map(|place| scenarios.iter().map(|scenario| (*scenario, *place)));
    let before = before();
    let is_missing = |(scenario, place): &Part<'_>| {
        !choice.missing || before.cell(&scenario.name, &place.name()).is_none()
    };
    let is_new = |(scenario, place): &Part<'_>| !is_done(&stage, scenario, place, choice);
    let (here, guests): (Vec<Part<'_>>, Vec<Part<'_>>) = all
        .filter(is_missing)
        .filter(is_new)
        .partition(|(_, place)| place.is_here());
    for (scenario, place) in here {
        stage.play(scenario, place)?.show();
    }
    for (scenario, place) in &guests {
        stage.prepare(scenario, place)?;
    }
    let queue = Mutex::new(VecDeque::from(guests));
    let next = || {
        queue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_front()
    };
    let work = |stage: Stage| -> Result<()> {
        while let Some((scenario, place)) = next() {
            stage.play(scenario, place)?.show();
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let stages = (0..choice.at_once.max(1)).map(|_| stage.another());
        let workers: Vec<_> = stages.map(|stage| scope.spawn(|| work(stage))).collect();
        let mut ended = workers.into_iter().map(|worker| worker.join());
        ended.try_for_each(|ended| match ended {
            Ok(played) => played,
            Err(_) => anyhow::bail!("somebody who played a scenario panicked"),
        })
    })
}

fn is_done(stage: &Stage, scenario: &Scenario, place: &Place, choice: &Choice) -> bool {
    let before = Card::read(&Stage::folder(scenario, place));
    let before = before.filter(|card| card.key == stage.key(scenario, place));
    let is_done = before.is_some_and(|mut card| {
        judge(&mut card, scenario, place);
        !choice.replay_red || card.is_good()
    });
    if is_done {
        println!("lab {} {}: played before", scenario.name, place.name());
    }
    is_done
}

pub(super) fn page() -> PathBuf {
    workspace::root().join("docs/matrix.md")
}

/// The page as it is now.
pub(super) fn before() -> Before {
    Before(std::fs::read_to_string(page()).unwrap_or_default())
}

/// Writes the page from all that was played here, and from what it says of the rest.
fn write(scenarios: &[Scenario], places: &[Place]) -> Result<ExitCode> {
    let places: Vec<&Place> = places.iter().filter(is_shown).collect();
    let mut cards = Vec::new();
    for scenario in scenarios {
        for place in &places {
            // What is expected may have been said better since: that needs no new run.
            if let Some(mut card) = Card::read(&Stage::folder(scenario, place)) {
                judge(&mut card, scenario, place);
                cards.push(card);
            }
        }
    }
    ensure!(!cards.is_empty(), "nothing was played yet");
    let names: Vec<String> = places.iter().map(|place| place.name()).collect();
    let page = page();
    std::fs::write(&page, page::page(scenarios, &names, &cards, &before()))
        .with_context(|| format!("cannot write {}", page.display()))?;
    println!("written: {}", page.display());
    Ok(match cards.iter().all(Card::is_good) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
