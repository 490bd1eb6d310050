use std::io::Write as _;

use proptest::prelude::*;
use sexton_model::fact::napi::NAPI_STARVED;
use sexton_model::record::Record;
use sexton_testkit::arbitrary;

use super::*;

/// A log of these batches; every third begins a block. Also where each batch ends.
fn log(batches: &[Vec<Record>]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = file_header(7).to_vec();
    let mut ends = Vec::new();
    let mut encoder = Encoder::default();
    for (i, batch) in batches.iter().enumerate() {
        let begins = i % 3 == 0;
        if begins {
            encoder.begin_block();
        }
        let mut payload = Vec::new();
        for record in batch {
            encoder.record(&mut payload, &Outgoing::of(record));
        }
        bytes.extend(frame(&payload, batch.len(), begins));
        ends.push(bytes.len());
    }
    (bytes, ends)
}

fn scan(bytes: &[u8]) -> Option<Log> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Log::scan(file).unwrap()
}

/// All records, block by block, last block first: blocks do not need each other.
fn replay(bytes: &[u8]) -> Vec<Record> {
    let Some(mut log) = scan(bytes) else {
        return Vec::new();
    };
    let mut blocks: Vec<Vec<Record>> = Vec::new();
    for block in log.blocks.clone().iter().rev() {
        let rows = log.rows(block).unwrap().into_iter();
        blocks.push(rows.map(|row| row.into_record().unwrap()).collect());
    }
    blocks.into_iter().rev().flatten().collect()
}

fn any_batches() -> impl Strategy<Value = Vec<Vec<Record>>> {
    proptest::collection::vec(proptest::collection::vec(arbitrary::record(), 1..6), 1..8)
}

/// As many records as the batches that end within `bytes`.
fn whole(batches: &[Vec<Record>], ends: &[usize], bytes: usize) -> Vec<Record> {
    let n = ends.iter().filter(|end| **end <= bytes).count();
    batches[..n].concat()
}

proptest! {
    #[test]
    fn what_is_written_is_read(batches in any_batches()) {
        let (bytes, _) = log(&batches);
        prop_assert_eq!(replay(&bytes), batches.concat());
        prop_assert_eq!(scan(&bytes).unwrap().torn, None);
    }

    #[test]
    fn no_record_is_longer_than_its_bound(record in arbitrary::record()) {
        let mut bytes = Vec::new();
        let outgoing = Outgoing::of(&record);
        Encoder::default().record(&mut bytes, &outgoing);
        prop_assert!(bytes.len() <= outgoing.size_bound(), "{}", bytes.len());
    }

    #[test]
    fn a_log_can_be_continued(batches in any_batches(), more in any_batches()) {
        let (mut bytes, _) = log(&batches);
        let (_, mut encoder) = scan(&bytes).unwrap().into_writer();
        encoder.begin_block();
        for (i, batch) in more.iter().enumerate() {
            let mut payload = Vec::new();
            for record in batch {
                encoder.record(&mut payload, &Outgoing::of(record));
            }
            bytes.extend(frame(&payload, batch.len(), i == 0));
        }
        prop_assert_eq!(replay(&bytes), [batches.concat(), more.concat()].concat());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for is_typed in [false, true] {
            let _ = Decoder::default().batch(&bytes, is_typed, &mut Vec::new());
        }
        let mut log = file_header(1).to_vec();
        log.extend(frame(&bytes, bytes.len() / 3, true));
        replay(&log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_cut_at_any_byte_leaves_the_whole_batches(batches in any_batches()) {
        let (bytes, ends) = log(&batches);
        for cut in 0..bytes.len() {
            let expected = whole(&batches, &ends, cut);
            prop_assert_eq!(replay(&bytes[..cut]), expected, "cut at {}", cut);
            let at_an_end = cut == HEADER_BYTES as usize || ends.contains(&cut);
            let torn = scan(&bytes[..cut]).is_some_and(|log| log.torn.is_none());
            prop_assert_eq!(torn, at_an_end, "cut at {}", cut);
        }
    }

    #[test]
    fn a_changed_byte_never_makes_a_wrong_record(batches in any_batches(), change in 1_u8..) {
        let (bytes, ends) = log(&batches);
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= change;
            let expected = if at < HEADER_BYTES as usize {
                Vec::new()
            } else {
                whole(&batches, &ends, at)
            };
            prop_assert_eq!(replay(&broken), expected, "changed at {}", at);
        }
    }
}

/// A batch as sexton wrote it before fields had types.
fn frame_of_texts(payload: &[u8], n_records: usize) -> Vec<u8> {
    let mut frame = frame(payload, n_records, true);
    frame[6..8].copy_from_slice(&BEGINS_BLOCK.to_le_bytes());
    let crc = crc32c(0, &frame[..12]);
    frame[12..16].copy_from_slice(&crc.to_le_bytes());
    frame
}

#[test]
fn a_log_from_before_fields_had_types_is_read() {
    const NEW: u8 = 1;
    let mut payload = vec![NEW, 1];
    let put = |payload: &mut Vec<u8>, text: &str| {
        payload.push(u8::try_from(text.len()).unwrap());
        payload.extend_from_slice(text.as_bytes());
    };
    for word in ["napi_starved", "cpu", "3", "napi", ""] {
        payload.push(NEW);
        put(&mut payload, word);
    }
    payload.extend([2 * 5, 2]);
    for (name, text) in [("waited_ns", "612000000"), ("stack", "entry;do_idle")] {
        payload.push(NEW);
        put(&mut payload, name);
        put(&mut payload, text);
    }
    let mut bytes = file_header(1).to_vec();
    bytes.extend(frame_of_texts(&payload, 1));
    let records = replay(&bytes);
    let delay = records[0].says(&NAPI_STARVED).unwrap();
    assert_eq!(delay.waited_ns, Some(612_000_000));
    assert_eq!(delay.stack, ["entry", "do_idle"]);
    assert_eq!((records.len(), records[0].at.as_ns()), (1, 5));
}
