//! Reports to the bucket of the fleet, as the configuration says.

use anyhow::{Context as _, Result};
use sexton_agent::{Fleet, FleetSettings, Lake, Log, NodeName};
use sexton_host::{Host, machine};
use sexton_lake::Given;
use sexton_model::text::escape;
use sexton_store::Ring;

use super::config::Config;
use crate::commands::fleet::program;

/// Where reports wait, below the ring.
const SPOOL: &str = "fleet";

/// Begins to report, if a bucket is named.
pub fn start(config: &Config, host: &Host, log: Log) -> Result<Option<Fleet>> {
    let fleet = &config.fleet;
    let Some(lake) = &fleet.lake else {
        return Ok(None);
    };
    let escaped = |text: String| escape(text.as_bytes());
    let name = match &fleet.node {
        Some(name) => name.clone(),
        None => escaped(machine::host_name(host)?),
    };
    let settings = FleetSettings {
        lake: match lake.strip_prefix("file://").unwrap_or(lake) {
            folder if folder.starts_with('/') => Lake::Folder(folder.into()),
            url => Lake::Cloud {
                url: url.to_owned(),
                program: program(),
            },
        },
        every: fleet.every,
        spool: config.ring.join(SPOOL),
        node: NodeName {
            name,
            kernel: escaped(machine::kernel_release(host)?),
            boot_id: escaped(machine::boot_id(host)?),
        },
        given: Given {
            sexton: env!("CARGO_PKG_VERSION").to_owned(),
            labels: fleet.labels.clone(),
            redact: fleet.redact,
        },
    };
    let boot = Ring::at(&config.ring).boot_of(&machine::boot_id(host)?)?;
    let started = Fleet::start(settings, &boot, log);
    started
        .map(Some)
        .context("cannot start reporting to the fleet")
}
