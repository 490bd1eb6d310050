//! Looks into JSON, and says what is there instead.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

pub(super) fn expect(value: &Value, pointer: &str, expected: impl Into<Value>) -> Result<()> {
    let (found, expected) = (value.pointer(pointer), expected.into());
    ensure!(
        found == Some(&expected),
        "{pointer}: expected {expected}, got {}",
        found.map_or_else(|| "nothing".to_owned(), Value::to_string)
    );
    Ok(())
}

pub(super) fn number(value: &Value, pointer: &str) -> Result<u64> {
    value
        .pointer(pointer)
        .and_then(Value::as_u64)
        .with_context(|| format!("{pointer} is no number in {value}"))
}

pub(super) fn list<'a>(census: &'a Value, name: &str) -> Result<&'a Vec<Value>> {
    census[name]
        .as_array()
        .with_context(|| format!("no {name}[]"))
}

/// The entry of a list whose `key` is `wanted`.
pub(super) fn find<'a>(
    census: &'a Value,
    name: &str,
    key: &str,
    wanted: &str,
) -> Result<&'a Value> {
    let entries = list(census, name)?;
    let names = || {
        entries
            .iter()
            .filter_map(|entry| entry[key].as_str())
            .take(20)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = entries.iter().find(|entry| entry[key] == wanted);
    found.with_context(|| format!("{wanted} is not in {name}[], which has {}", names()))
}
