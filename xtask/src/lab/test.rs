//! The step `lab` of `cargo xtask test`: the scenarios that are quick, in namespaces of this
//! machine.

use anyhow::Result;
use sexton_lab::scenario::Scenario;

use super::card::Card;
use super::place::Place;
use super::play::Stage;
use crate::command;
use crate::test::{Need, NotRun, Tally};

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
            Ok((card, is_steady)) => count(&card, is_steady, &mut tally),
            Err(error) => {
                println!("lab {}: FAILED: {error:#}", scenario.name);
                tally.failed += 1;
            }
        }
    }
    tally
}

/// Plays it, and once more if it was not good. Whether once was enough is told too.
fn play(stage: &Stage, scenario: &Scenario) -> Result<(Card, bool)> {
    let card = stage.play(scenario, &Place::Here)?;
    if card.is_good() {
        return Ok((card, true));
    }
    card.show();
    println!("lab {}: once more", scenario.name);
    Ok((stage.play(scenario, &Place::Here)?, false))
}

fn failed(error: &anyhow::Error) -> Tally {
    println!("lab: FAILED: {error:#}");
    Tally {
        failed: 1,
        ..Tally::default()
    }
}

fn count(card: &Card, is_steady: bool, tally: &mut Tally) {
    card.show();
    if card.is_good() && !is_steady {
        tally.unsteady.push(card.scenario.clone());
    }
    let n_failed = card.checks.iter().filter(|(_, why)| why.is_some()).count();
    tally.failed += n_failed;
    tally.passed += card.checks.len() - n_failed;
}
