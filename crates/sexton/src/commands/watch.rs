//! `sexton watch`

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use sexton_agent::{Member, SensorPool};
use sexton_analysis::evidence::recognized::recognize;
use sexton_host::{Host, clock};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_model::timeline::Records;
use sexton_sensors::SENSORS;
use sexton_signatures::Signatures;
use sexton_store::Bundle;
use sexton_tui::{Source, View};

use crate::cli::WatchArgs;
use crate::exit::Exit;

/// Shows the live node, or a recording.
pub fn run(args: &WatchArgs) -> Result<Exit> {
    // Before any sensor is opened: they are not for nothing.
    if !io::stdout().is_terminal() {
        bail!("watch needs a terminal; sexton record keeps what it would show");
    }
    match args.bundle.as_ref().or(args.from.as_ref()) {
        Some(folder) => look_through(folder),
        None => watch(),
    }
}

fn look_through(folder: &Path) -> Result<Exit> {
    let bundle = Bundle::open(folder)?;
    let seen = bundle.load(None, None);
    let recognized = recognized(seen.iter().cloned().collect(), &Signatures::built_in());
    sexton_tui::look(View::of_timeline(&Records::new(recognized)))?;
    Ok(Exit::NothingFound)
}

fn watch() -> Result<Exit> {
    let host = Arc::new(Host::live()?);
    let members: Vec<Member> = SENSORS.iter().map(|spec| Member::new(spec)).collect();
    let pool = SensorPool::start(&host, &members);
    let mut live = Live(pool, Signatures::built_in());
    let shown = sexton_tui::run(&mut live);
    live.0.stop();
    shown?;
    Ok(Exit::NothingFound)
}

/// What was seen, with what signatures say of it.
fn recognized(records: Vec<Record>, signatures: &Signatures) -> Vec<Record> {
    let known = |record: Record| recognize(&record, signatures).unwrap_or(record);
    records.into_iter().map(known).collect()
}

/// The live node as a source of records.
struct Live(SensorPool, Arc<Signatures>);

impl Source for Live {
    fn wait(&mut self, time: Duration) -> Vec<Record> {
        recognized(self.0.collect(time), &self.1)
    }

    fn is_live(&self) -> bool {
        true
    }

    fn now(&self) -> Moment {
        clock::now()
    }
}
