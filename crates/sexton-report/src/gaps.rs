//! What could not be seen, for people and for programs.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::gap::Gap;

use crate::text::paragraph;

/// A gap in JSON.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Gap")]
pub(crate) struct GapView<'a> {
    sensor: &'a str,
    why: &'a str,
    kind: String,
    /// What to do to see it.
    remedy: Option<&'a str>,
}

impl<'a> From<&'a Gap> for GapView<'a> {
    fn from(gap: &'a Gap) -> Self {
        Self {
            sensor: &gap.sensor,
            why: &gap.text,
            kind: gap.why.to_string(),
            remedy: gap.remedy.as_deref(),
        }
    }
}

/// Writes the gaps down, each with what would close it.
pub(crate) fn write(out: &mut dyn Write, gaps: &[Gap]) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nNot seen:")?;
    for gap in gaps {
        paragraph(out, "  - ", &format!("{} ({})", gap.text, gap.why))?;
        if let Some(remedy) = &gap.remedy {
            paragraph(out, "    to see it: ", remedy)?;
        }
    }
    Ok(())
}
