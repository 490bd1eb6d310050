//! The door for a fuzz target.

use super::message::{Message, PREFIX_BYTES, length};
use super::property::{Properties, path_of_unit, properties, unit_name, unit_of_path};
use super::session::{Changed, Job, ListedUnit, listed};

/// All that a message can be read as, whatever it says it is.
#[derive(Debug)]
pub struct Readings {
    /// The unit that its path names, else some unit.
    pub unit: String,
    /// All properties of an interface.
    pub properties: Option<Properties>,
    /// An interface, and those of its properties that changed.
    pub changed: Option<(String, Properties)>,
    /// A listing.
    pub listed: Option<Vec<ListedUnit>>,
    /// The unit of a job, and how that ended.
    pub job: Option<(String, String)>,
}

/// Reads messages one after the other, until one has no end.
pub fn messages(mut bytes: &[u8]) -> Vec<Readings> {
    let mut all = Vec::new();
    while let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() {
        let Ok(length) = length(prefix) else { break };
        let Some((message, rest)) = bytes.split_at_checked(length) else {
            break;
        };
        bytes = rest;
        all.extend(
            Message::parse(message)
                .ok()
                .map(|message| readings(&message)),
        );
    }
    all
}

fn readings(message: &Message) -> Readings {
    let unit = unit_of_path(&message.path).unwrap_or_else(|| "a.service".into());
    assert_eq!(unit_of_path(&path_of_unit(&unit)), Some(unit.clone()));
    let changed = message.body::<Changed<'_>>().ok();
    let job = message.body::<Job<'_>>().ok();
    Readings {
        unit,
        properties: message.body().ok().map(|borrowed| properties(&borrowed)),
        changed: changed
            .map(|(interface, borrowed, _)| (interface.to_owned(), properties(&borrowed))),
        listed: listed(message).ok(),
        job: job.and_then(|(_, _, name, result)| {
            Some((unit_name(name.as_bytes())?, result.to_owned()))
        }),
    }
}
