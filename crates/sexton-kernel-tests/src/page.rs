//! The page that benches write their figures to.

use std::fs;

use anyhow::{Context, Result};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md");

/// Puts a section in place of the old one, between the marks of that name.
pub fn write(name: &str, section: &str) -> Result<()> {
    let (begin, end) = (
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->"),
    );
    let page = fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE}"))?;
    let between = page
        .split_once(&begin)
        .and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    let (head, tail) = between.with_context(|| format!("{PAGE} has no place for {name}"))?;
    fs::write(PAGE, format!("{head}{begin}{section}{end}{tail}"))
        .with_context(|| format!("cannot write {PAGE}"))
}
