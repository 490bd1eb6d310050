//! Fields of older recordings, in which every list was one text.

use std::borrow::Cow;

use crate::payload::{Fields, Value};

/// The same fields, with the texts of these names cut into lists.
pub(crate) fn lists(fields: &Fields, names: &[(&str, &str)]) -> Fields {
    let cut = |(name, value): &(Cow<'static, str>, Value)| {
        let separator = names.iter().find(|(known, _)| known == name);
        let value = match (separator, value) {
            (Some((_, separator)), Value::Text(text)) => list(text, separator),
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    fields.iter().map(cut).collect()
}

fn list(text: &str, separator: &str) -> Value {
    let parts = text.split(separator).filter(|part| !part.is_empty());
    Value::List(parts.map(|part| Value::Text(part.to_owned())).collect())
}
