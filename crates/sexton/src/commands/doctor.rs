//! `sexton doctor`

use std::io::{self, Write};

use anyhow::Result;
use sexton_host::{Host, capabilities, machine};
use sexton_model::sight::{Checkup, Clarity};
use sexton_report::doctor::{json, text};

use crate::cli::{DoctorArgs, Format};
use crate::exit::Exit;

/// Examines every sensor and writes what it sees.
pub fn run(args: &DoctorArgs) -> Result<Exit> {
    args.btf.apply()?;
    let host = Host::live()?;
    let checkup = Checkup {
        kernel: machine::kernel_release(&host)?,
        user: match capabilities::effective_user() {
            0 => "root".into(),
            id => format!("user {id}"),
        },
        ground: sexton_sensors::prerequisites(&host),
        sensors: sexton_sensors::examine(&host),
    };
    let mut out = io::stdout().lock();
    match args.format.format() {
        Format::Text => text(&mut out, &checkup)?,
        Format::Json => json(&mut out, &checkup)?,
    }
    out.flush()?;
    Ok(if checkup.clarity() == Clarity::Sees {
        Exit::NothingFound
    } else {
        Exit::Blind
    })
}
