//! rpm's database on SUSE: slots that say where each header lies. The layout is that of
//! rpm's `lib/backend/ndb/rpmpkg.c`.

use super::rpm::{Database, HEADER_BYTES_MAX};

const SLOT: usize = 16;
const PAGE: usize = 4096;

/// More pages of slots than 256 hold more packages than there are.
const N_PAGES_MAX: u32 = 2_048;

pub(super) fn read(database: &Database<'_>, each: &mut dyn FnMut(&[u8])) -> Result<(), String> {
    let head = database.bytes(0, 32)?;
    if !head.starts_with(b"RpmP") {
        return Err("it is no database of rpm".into());
    }
    let n_pages = word(&head, 12);
    if n_pages == 0 || n_pages > N_PAGES_MAX {
        return Err("its size cannot be".into());
    }
    let slots = database.bytes(0, n_pages as usize * PAGE)?;
    // The header takes two slots.
    for slot in slots.chunks_exact(SLOT).skip(2) {
        let (number, block) = (word(slot, 4), word(slot, 8));
        if !slot.starts_with(b"Slot") || number == 0 || block == 0 {
            continue;
        }
        let at = u64::from(block) * SLOT as u64;
        let head = database.bytes(at, 16)?;
        let len = word(&head, 12) as usize;
        if !head.starts_with(b"BlbS") || word(&head, 4) != number || len > HEADER_BYTES_MAX {
            return Err("a header that is not where it should be".into());
        }
        each(&database.bytes(at + 16, len)?);
    }
    Ok(())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
