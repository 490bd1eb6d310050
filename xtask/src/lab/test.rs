//! The step `lab` of `cargo xtask test`: the scenarios that are quick, and ten nights of random
//! trouble, in namespaces of this machine.

use anyhow::Result;
use sexton_lab::night::Night;
use sexton_lab::scenario::Scenario;

use super::card::Card;
use super::nights;
use super::place::Place;
use super::play::Stage;
use crate::command;
use crate::test::{Failure, Need, NotRun, Tally};

pub(crate) fn test() -> Tally {
    let mut tally = Tally::default();
    let scenarios = match super::scenarios() {
        Ok(scenarios) => scenarios,
        Err(error) => return failed(&error),
    };
    let stage = match Stage::open() {
        Ok(stage) => stage,
        Err(error) if command::is_root() => return failed(&error),
        Err(error) => {
            tally
                .not_run
                .extend(scenarios.iter().map(|scenario| NotRun {
                    test: scenario.name.clone(),
                    need: Some(Need::Root),
                    why: format!("{error:#}"),
                }));
            return tally;
        }
    };
    for scenario in scenarios.iter().filter(|scenario| !scenario.slow) {
        match play(&stage, scenario) {
            Ok(played) => tally.add(played),
            Err(error) => {
                println!("lab {}: FAILED: {error:#}", scenario.name);
                tally.fail(Failure::new(&scenario.name, &format!("{error:#}")));
            }
        }
    }
    tally.add(nights(&stage));
    tally
}

/// Ten nights of random trouble, each played once more if it was not good.
fn nights(stage: &Stage) -> Tally {
    let mut tally = Tally::default();
    let troubles = match nights::troubles() {
        Ok(troubles) => troubles,
        Err(error) => return failed(&error),
    };
    for seed in nights::TESTED {
        let night = Night::draw(seed, &troubles);
        let name = format!("night {seed}");
        let play = || nights::play(stage, &night, &troubles).map(|score| score.wrong());
        match play().and_then(|wrong| match wrong.is_empty() {
            true => Ok((wrong, Vec::new())),
            false => Ok((play()?, wrong)),
        }) {
            Ok((wrong, first)) if wrong.is_empty() => {
                tally.passed += 1;
                let first = first.iter().map(|why| Failure::new(&name, why));
                tally.unsteady.extend(first);
            }
            Ok((wrong, _)) => tally.fail(Failure::new(&name, &wrong.join("; "))),
            Err(error) => tally.fail(Failure::new(&name, &format!("{error:#}"))),
        }
    }
    tally
}

/// Plays it, and once more if it was not good.
fn play(stage: &Stage, scenario: &Scenario) -> Result<Tally> {
    let first = count(&stage.play(scenario, &Place::HERE)?);
    if first.failed == 0 {
        return Ok(first);
    }
    println!("lab {}: once more", scenario.name);
    let mut again = count(&stage.play(scenario, &Place::HERE)?);
    if again.failed == 0 {
        again.unsteady = first.failures;
    }
    Ok(again)
}

fn failed(error: &anyhow::Error) -> Tally {
    println!("lab: FAILED: {error:#}");
    let mut tally = Tally::default();
    tally.fail(Failure::new("lab", &format!("{error:#}")));
    tally
}

fn count(card: &Card) -> Tally {
    card.show();
    let mut tally = Tally::default();
    for (what, why) in &card.checks {
        match why {
            None => tally.passed += 1,
            Some(why) => tally.fail(Failure::new(format!("{} {what}", card.scenario), why)),
        }
    }
    tally
}
