//! `sexton doctor`: what can and cannot be seen here, and why.

use std::io::{self, Write};

use serde::Serialize;
use sexton_model::sight::{Checkup, Clarity, SensorSight, Sight};

use crate::text::{count, paragraph};

/// The columns of names.
const WHAT: usize = 24;

/// Writes the check-up for people.
pub fn text(out: &mut dyn Write, checkup: &Checkup) -> io::Result<()> {
    writeln!(out, "{}", headline(checkup))?;
    writeln!(out, "Kernel {}, as {}.\n", checkup.kernel, checkup.user)?;
    writeln!(out, "Ground")?;
    write_sights(out, &checkup.ground)?;
    for sensor in &checkup.sensors {
        writeln!(out, "\n{}", sensor.sensor)?;
        paragraph(out, "  ", sensor.watches)?;
        write_sights(out, &sensor.sights)?;
    }
    Ok(())
}

fn headline(checkup: &Checkup) -> String {
    let n = |clarity| {
        checkup
            .sensors
            .iter()
            .filter(|sensor| sensor.clarity == clarity)
            .count()
    };
    let all = count(checkup.sensors.len() as u64, "sensor");
    match (n(Clarity::Partly), n(Clarity::Blind)) {
        (0, 0) => format!("{all}, all see what there is to see."),
        (partly, blind) => format!(
            "{all}: {} see all, {partly} in part, {blind} nothing.",
            n(Clarity::Sees)
        ),
    }
}

fn write_sights(out: &mut dyn Write, sights: &[Sight]) -> io::Result<()> {
    for sight in sights {
        let mark = match sight.clarity {
            Clarity::Sees => "ok",
            Clarity::Partly => "part",
            Clarity::Blind => "BLIND",
        };
        // A name that is longer than its column has a line of its own.
        let mut first = format!("  {mark:<6}{:<WHAT$}", sight.what);
        if sight.what.chars().count() >= WHAT {
            writeln!(out, "{}", first.trim_end())?;
            first = " ".repeat(8 + WHAT);
        }
        paragraph(out, &first, &sight.because)?;
        if let Some(remedy) = &sight.remedy {
            paragraph(out, &format!("{:<1$}to see it: ", "", 8 + WHAT), remedy)?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct CheckupView<'a> {
    schema: &'static str,
    state: &'static str,
    kernel: &'a str,
    user: &'a str,
    ground: Vec<SightView<'a>>,
    sensors: Vec<SensorView<'a>>,
}

#[derive(Serialize)]
struct SensorView<'a> {
    sensor: &'a str,
    watches: &'a str,
    state: &'static str,
    sights: Vec<SightView<'a>>,
}

#[derive(Serialize)]
struct SightView<'a> {
    what: &'a str,
    state: &'static str,
    because: &'a str,
    remedy: Option<&'a str>,
}

impl<'a> From<&'a Sight> for SightView<'a> {
    fn from(sight: &'a Sight) -> Self {
        Self {
            what: &sight.what,
            state: sight.clarity.name(),
            because: &sight.because,
            remedy: sight.remedy.as_deref(),
        }
    }
}

impl<'a> From<&'a SensorSight> for SensorView<'a> {
    fn from(sensor: &'a SensorSight) -> Self {
        Self {
            sensor: sensor.sensor,
            watches: sensor.watches,
            state: sensor.clarity.name(),
            sights: sensor.sights.iter().map(SightView::from).collect(),
        }
    }
}

/// Writes the check-up for programs.
pub fn json(out: &mut dyn Write, checkup: &Checkup) -> io::Result<()> {
    let view = CheckupView {
        schema: "sexton.doctor/1",
        state: checkup.clarity().name(),
        kernel: &checkup.kernel,
        user: &checkup.user,
        ground: checkup.ground.iter().map(SightView::from).collect(),
        sensors: checkup.sensors.iter().map(SensorView::from).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &view)?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_kept_apart_from_what_is_said_of_it() {
        let check = |what: &str, expected: &str| {
            let mut out = Vec::new();
            write_sights(&mut out, &[Sight::sees(what, "5 mounted")]).expect("a vector");
            assert_eq!(String::from_utf8(out).expect("text"), expected);
        };
        let short = format!("  ok    {:<24}5 mounted\n", "pressure of the node");
        check("pressure of the node", &short);
        let long = "space of local filesystems";
        check(long, &format!("  ok    {long}\n{:32}5 mounted\n", ""));
    }
}
