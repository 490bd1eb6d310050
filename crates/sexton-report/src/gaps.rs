//! What could not be seen, for people and for programs.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::gap::Gap;

use crate::text::paragraph_in;

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

/// Writes the gaps down, each reason once with all it keeps from seeing, and what would close it.
pub(crate) fn write(out: &mut dyn Write, width: usize, gaps: &[Gap]) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nBlind spots")?;
    for alike in grouped(gaps, |gap| (&gap.text, &gap.why)) {
        let Some(gap) = alike.first() else { continue };
        let mut sensors: Vec<&str> = alike.iter().map(|gap| gap.sensor.as_ref()).collect();
        sensors.dedup();
        let whose = match sensors.len() {
            1 => String::new(),
            _ => format!("{}: ", sensors.join(", ")),
        };
        paragraph_in(
            out,
            width,
            "  - ",
            &format!("{whose}{} ({})", gap.text, gap.why),
        )?;
        if let Some(remedy) = alike.iter().find_map(|gap| gap.remedy.as_deref()) {
            paragraph_in(out, width, "    to see it: ", remedy)?;
        }
    }
    Ok(())
}

/// Items that are alike, in the order of the first of each.
pub(crate) fn grouped<'a, T, K: PartialEq>(
    items: &'a [T],
    key: impl Fn(&'a T) -> K,
) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<(K, Vec<&'a T>)> = Vec::new();
    for item in items {
        let of = key(item);
        match groups.iter_mut().find(|(known, _)| *known == of) {
            Some((_, alike)) => alike.push(item),
            None => groups.push((of, vec![item])),
        }
    }
    groups.into_iter().map(|(_, alike)| alike).collect()
}

#[cfg(test)]
mod tests {
    use sexton_model::gap::Why;

    use super::*;

    #[test]
    fn the_same_reason_is_said_once() {
        let gaps = [
            Gap::new("exits", Why::Denied, "needs CAP_BPF").with_remedy("run as root"),
            Gap::new("memcg", Why::Unsupported, "two counts only"),
            Gap::new("napi", Why::Denied, "needs CAP_BPF").with_remedy("run as root"),
        ];
        let mut out = Vec::new();
        write(&mut out, 80, &gaps).expect("a vector takes all");
        assert_eq!(
            String::from_utf8_lossy(&out),
            "\nBlind spots\n  - exits, napi: needs CAP_BPF (denied)\n    to see it: run as root\n  \
             - two counts only (unsupported)\n"
        );
    }
}
