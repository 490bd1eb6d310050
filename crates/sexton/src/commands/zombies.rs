//! `sexton zombies`

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use sexton_host::Host;
use sexton_model::census::{Census, Method};
use sexton_report::zombies::{By, Options, json, text};
use sexton_sensors::memcg::{CensusOptions, census};

use crate::cli::{self, Format, ZombiesArgs};
use crate::exit::Exit;

/// Takes the census and writes it.
pub fn run(args: &ZombiesArgs) -> Result<Exit> {
    args.btf.apply()?;
    let host = Host::live()?;
    let census = match census(
        &host,
        CensusOptions {
            all_pages: args.all_pages,
            owners: true,
        },
    ) {
        Ok(census) => census,
        Err(gap) => {
            eprintln!("sexton: {}", gap.text);
            if let Some(remedy) = gap.remedy {
                eprintln!("to see it: {remedy}");
            }
            return Ok(Exit::Blind);
        }
    };
    let options = Options {
        by: match args.by {
            cli::By::Origin => By::Origin,
            cli::By::Unit => By::Unit,
            cli::By::File => By::File,
        },
        top: args.top,
        all: args.all,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    match args.format.format() {
        Format::Text => text(&mut out, &census, options)?,
        Format::Json => json(&mut out, &census, options)?,
    }
    out.flush()?;
    Ok(exit(&census))
}

fn exit(census: &Census) -> Exit {
    let found =
        census.counts.dying.is_some_and(|n| n > 0) || census.counts.leaked.is_some_and(|n| n > 0);
    match (census.method, found) {
        (Method::CgroupStat | Method::PageOwnership | Method::ProcCgroups, _) => Exit::Blind,
        (Method::BpfWalk, true) => Exit::Found,
        (Method::BpfWalk, false) if census.gaps.is_empty() => Exit::NothingFound,
        (Method::BpfWalk, false) => Exit::Blind,
    }
}
