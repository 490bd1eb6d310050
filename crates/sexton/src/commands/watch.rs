//! `sexton watch`

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use sexton_agent::{Member, SensorPool};
use sexton_host::{Host, clock};
use sexton_model::moment::Moment;
use sexton_model::record::Record;
use sexton_sensors::SENSORS;
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
    match &args.from {
        Some(folder) => look_through(folder),
        None => watch(),
    }
}

fn look_through(folder: &Path) -> Result<Exit> {
    let bundle = Bundle::open(folder)?;
    sexton_tui::look(View::of_timeline(&bundle.load(None, None)))?;
    Ok(Exit::NothingFound)
}

fn watch() -> Result<Exit> {
    let host = Arc::new(Host::live()?);
    let members: Vec<Member> = SENSORS.iter().map(|spec| Member::new(spec)).collect();
    let mut live = Live(SensorPool::start(&host, &members));
    let shown = sexton_tui::run(&mut live);
    live.0.stop();
    shown?;
    Ok(Exit::NothingFound)
}

/// The live node as a source of records.
struct Live(SensorPool);

impl Source for Live {
    fn wait(&mut self, time: Duration) -> Vec<Record> {
        self.0.collect(time)
    }

    fn is_live(&self) -> bool {
        true
    }

    fn now(&self) -> Moment {
        clock::now()
    }
}
