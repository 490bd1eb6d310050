//! The step `lab` of `cargo xtask test`: the scenarios that are quick, in namespaces of this
//! machine.

use anyhow::Result;
use sexton_lab::scenario::Scenario;

use super::card::Card;
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
