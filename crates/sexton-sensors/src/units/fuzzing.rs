//! For the fuzz targets.

use sexton_systemd::bus::fuzzing::{Readings, messages};

use super::ledger::{Ledger, UNIT};

/// Takes messages of the bus, one after the other, into a ledger, whatever they carry.
/// Gives back how many notes came of them.
pub fn bus_messages(bytes: &[u8]) -> usize {
    let mut ledger = Ledger::new(1 << 50, None);
    let messages = messages(bytes);
    let notes = messages.iter().map(|message| take(&mut ledger, message));
    let n_notes: usize = notes.sum();
    n_notes + ledger.settle_failures().len()
}

fn take(ledger: &mut Ledger, message: &Readings) -> usize {
    let name = &message.unit;
    let mut n_notes = 0;
    if let Some(values) = &message.properties {
        n_notes += ledger.looked(name, values, values).len();
    }
    if let Some((interface, values)) = &message.changed {
        n_notes += ledger.changed(name, interface, values).len();
        n_notes += ledger.changed(name, UNIT, values).len();
    }
    if let Some(rows) = &message.listed {
        ledger.list(rows, &mut Vec::new());
        n_notes += rows
            .iter()
            .map(|row| ledger.believe(row).len())
            .sum::<usize>();
    }
    if let Some((unit, result)) = &message.job {
        ledger.removed(unit);
        n_notes += usize::from(ledger.job_ended(unit, result).is_some());
    }
    n_notes
}
