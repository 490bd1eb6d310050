//! rpm's database up to RHEL 8 and Amazon Linux 2: a hash of Berkeley DB. Long values lie on
//! chains of overflow pages. The layout is that of Berkeley DB's `dbinc/db_page.h`.

use super::rpm::{Database, HEADER_BYTES_MAX};

const MAGIC: u32 = 0x0006_1561;
const PAGE_HEADER: usize = 26;
const SORT_HASH: [u8; 2] = [2, 13];
const SORT_OVERFLOW: u8 = 7;
/// An item that says on which page its value begins.
const ITEM_OFFPAGE: u8 = 3;

pub(super) fn read(database: &Database<'_>, each: &mut dyn FnMut(&[u8])) -> Result<(), String> {
    let head = database.bytes(0, 72)?;
    if word(&head, 12) != MAGIC {
        return Err("it is no hash of Berkeley DB in this machine's byte order".into());
    }
    let page_bytes = word(&head, 20) as usize;
    if !page_bytes.is_power_of_two() || !(512..=65_536).contains(&page_bytes) {
        return Err("its page size cannot be".into());
    }
    let n_pages = database.len / page_bytes as u64;
    for number in 1..n_pages {
        let page = database.bytes(number * page_bytes as u64, page_bytes)?;
        if !SORT_HASH.contains(&page[25]) {
            continue;
        }
        let n_items = usize::from(half(&page, 20));
        // Keys and values take turns; the values are the headers.
        for n in (1..n_items).step_by(2) {
            let index = PAGE_HEADER + 2 * n;
            if index + 2 > page.len() {
                break;
            }
            let at = usize::from(half(&page, index));
            let Some(item) = page.get(at..at + 12).filter(|item| item[0] == ITEM_OFFPAGE) else {
                continue;
            };
            let value = overflow(database, page_bytes, word(item, 4), word(item, 8) as usize)?;
            each(&value);
        }
    }
    Ok(())
}

fn overflow(
    database: &Database<'_>,
    page_bytes: usize,
    first: u32,
    len: usize,
) -> Result<Vec<u8>, String> {
    if len > HEADER_BYTES_MAX {
        return Err("a header that is too long".into());
    }
    let mut value = Vec::new();
    let mut next = first;
    while next != 0 && value.len() < len {
        let page = database.bytes(u64::from(next) * page_bytes as u64, page_bytes)?;
        let used = usize::from(half(&page, 22));
        if page[25] != SORT_OVERFLOW || used == 0 || PAGE_HEADER + used > page.len() {
            return Err("a header that breaks off".into());
        }
        value.extend_from_slice(&page[PAGE_HEADER..PAGE_HEADER + used]);
        next = word(&page, 16);
    }
    value.truncate(len);
    Ok(value)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
