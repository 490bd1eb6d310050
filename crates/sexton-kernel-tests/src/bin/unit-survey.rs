//! Looks at all units once, as the gate does, and prints what it saw as JSON.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::time::Instant;

use anyhow::{Result, bail};
use serde_json::json;
use sexton_host::Host;
use sexton_sensors::units::{Places, survey};

fn main() -> Result<()> {
    let host = Host::live()?;
    let began = Instant::now();
    let survey = match survey(&host, &Places::default()) {
        Ok(survey) => survey,
        Err(gap) => bail!("units cannot be seen: {}", gap.text),
    };
    let view = json!({
        "n_units": survey.n_units,
        "failed": survey.failed,
        "restarts": survey.restarts,
        "n_unasked": survey.n_unasked,
        "took_us": u64::try_from(began.elapsed().as_micros())?,
    });
    println!("{view}");
    Ok(())
}
