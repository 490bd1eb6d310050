//! Both walks and the census, in turns.

use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sexton_bpf::prog::memcg::{Batch, Options, Walk};
use sexton_host::{Host, machine};
use sexton_model::census::{Census, Method, State};
use sexton_sensors::memcg::{CensusOptions, census};

use crate::bare::Bare;
use crate::figures::{AtSize, Lap, Laps, Spread, micros};

const ROUNDS: usize = 7;

/// As the sensor has it.
const PAGES_PER_LIST: u32 = 8;

/// Measures all there is now; `n_dying` of it lies below `nursery`, at least.
pub(crate) fn measure(host: &Host, nursery: &str, n_dying: u32) -> Result<AtSize> {
    let mut walk = load(host)?;
    let mut object = MaybeUninit::uninit();
    let bare_walk = Bare::load(&mut object)?;
    let (mut sexton, mut bare) = (Laps::default(), Laps::default());
    let mut census_us = Vec::new();
    for _ in 0..ROUNDS {
        sexton.0.push(lap(&mut walk)?);
        bare.0.push(bare_walk.lap()?);
        let began = Instant::now();
        let census = take(host)?;
        let took = began.elapsed();
        ensure_seen(&census, nursery, n_dying)?;
        census_us.push(micros(took) / census.tree.len() as f64);
    }
    Ok(AtSize {
        n_dying,
        sexton,
        bare,
        census: Spread::of(census_us.into_iter()),
    })
}

pub(crate) fn load(host: &Host) -> Result<Walk> {
    let options = Options {
        pages_per_list: Some(PAGES_PER_LIST),
        n_nodes: machine::possible_nodes(host),
        deadline: Duration::from_secs(20),
    };
    Walk::load(options).context("cannot load the walk")
}

pub(crate) fn take(host: &Host) -> Result<Census> {
    let census = match census(host, CensusOptions::default()) {
        Ok(census) => census,
        Err(gap) => anyhow::bail!(gap.text),
    };
    ensure!(census.method == Method::BpfWalk, "{:?}", census.gaps);
    Ok(census)
}

/// One walk of sexton's, with its results looked at but not kept.
fn lap(walk: &mut Walk) -> Result<Lap> {
    let mut hand_over = Duration::ZERO;
    let mut n_bytes = 0;
    let tally = walk.walk(|batch| {
        let began = Instant::now();
        n_bytes += names_len(batch);
        hand_over += began.elapsed();
    })?;
    ensure!(n_bytes > 0, "the rows are empty");
    Ok(Lap {
        visited: tally.visited,
        walk: tally.took - hand_over,
        hand_over,
        longest_run: tally.longest_run,
    })
}

/// Looks at what a user of the batch would: its names.
fn names_len(batch: &Batch<'_>) -> usize {
    let len = |name: &[u8]| name.iter().position(|c| *c == 0).unwrap_or(name.len());
    let rows = batch.rows.iter().map(|row| len(row.name()));
    let names = batch.names.iter().map(|name| len(name.name()));
    rows.chain(names).sum()
}

/// Nearly all: the kernel drops clean pages of files when it wants to, and with them the
/// cgroups they pinned. What an earlier leak left below the same parent is seen too.
fn ensure_seen(census: &Census, nursery: &str, n_dying: u32) -> Result<()> {
    let below = census.tree.iter().filter(|(ix, cgroup)| {
        cgroup.state == State::Dying && census.tree.path(*ix).starts_with(nursery.as_bytes())
    });
    let seen = below.count();
    ensure!(
        seen >= n_dying as usize * 49 / 50,
        "{seen} of {n_dying} dying were seen"
    );
    Ok(())
}
