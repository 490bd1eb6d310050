//! For the fuzz targets.

use zbus::ObjectPath;

use super::ledger::{Ledger, Row, UNIT};
use super::message::{Message, PREFIX_BYTES, Properties, length};
use super::property::{path_of_unit, unit_name, unit_of_path};
use super::session::{ListedUnit, values};

/// Takes messages of the bus, one after the other, into a ledger, whatever they carry.
/// Gives back how many notes came of them.
pub fn bus_messages(mut bytes: &[u8]) -> usize {
    let mut ledger = Ledger::new(1 << 50, None);
    let mut n_notes = 0;
    while let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() {
        let Ok(length) = length(prefix) else { break };
        let Some((message, rest)) = bytes.split_at_checked(length) else {
            break;
        };
        bytes = rest;
        if let Ok(message) = Message::parse(message) {
            n_notes += take(&mut ledger, &message);
        }
    }
    n_notes + ledger.settle_failures().len()
}

fn take(ledger: &mut Ledger, message: &Message) -> usize {
    let name = unit_of_path(&message.path).unwrap_or_else(|| "a.service".into());
    let path = path_of_unit(&name);
    assert_eq!(unit_of_path(&path), Some(name.clone()), "{path}");
    let mut n_notes = 0;
    if let Ok(properties) = message.body::<Properties<'_>>() {
        let values = values(&properties);
        n_notes += ledger.looked(&name, &values, &values).len();
    }
    if let Ok((interface, properties, _)) = message.body::<(&str, Properties<'_>, Vec<&str>)>() {
        let values = values(&properties);
        n_notes += ledger.changed(&name, interface, &values).len();
        n_notes += ledger.changed(&name, UNIT, &values).len();
    }
    if let Ok(listed) = message.body::<Vec<ListedUnit<'_>>>() {
        let rows = listed
            .iter()
            .filter_map(|(name, _, load, active, sub, ..)| {
                Some(Row {
                    name: unit_name(name.as_bytes())?,
                    load: (*load).to_owned(),
                    active: (*active).to_owned(),
                    sub: (*sub).to_owned(),
                })
            });
        let rows: Vec<Row> = rows.collect();
        ledger.list(&rows, &mut Vec::new());
        n_notes += rows
            .iter()
            .map(|row| ledger.believe(row).len())
            .sum::<usize>();
    }
    if let Ok((_, _, name, result)) = message.body::<(u32, ObjectPath<'_>, &str, &str)>()
        && let Some(name) = unit_name(name.as_bytes())
    {
        ledger.removed(&name);
        n_notes += usize::from(ledger.job_ended(&name, result).is_some());
    }
    n_notes
}
