//! Files that are damaged, or made to do harm: read without panic, within memory and time.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use sexton_symbols::code::Code;
use sexton_symbols::debug_file::Wanted;
use sexton_symbols::elf::{Headers, Limits};
use sexton_symbols::source::Source;

/// This test itself: a real file whose functions are known.
fn own() -> Vec<u8> {
    static OWN: LazyLock<Vec<u8>> = LazyLock::new(|| std::fs::read("/proc/self/exe").unwrap());
    OWN.clone()
}

fn walk(file: &dyn Source) -> usize {
    let Some(headers) = Headers::read(file) else {
        return 0;
    };
    Wanted::of(&headers, file).is_met_by(&headers, file);
    let code = Code::read(&headers, file, Some((&headers, file)), Limits::LIVE);
    let offsets = (0..1 << 20).step_by(1 << 14).chain([u64::MAX, 1 << 63]);
    let named = offsets.filter_map(|offset| code.name(code.find(offset)?, |_| Some(file)));
    named.count()
}

#[test]
fn our_own_functions_are_found() {
    let file = own();
    let headers = Headers::read(&file).unwrap();
    let code = Code::read(&headers, &file, None, Limits::LIVE);
    let functions = headers.functions(&file, Limits::LIVE).unwrap();
    assert!(functions.len() > 100 && !functions.is_empty());
    let ours = functions.some(functions.len()).into_iter().any(|function| {
        let offset = headers.offset_of(function.start);
        let name = offset.and_then(|offset| code.name(code.find(offset)?, |_| Some(&file)));
        name.is_some_and(|name| name.ends_with("our_own_functions_are_found"))
    });
    assert!(ours, "this function is not among {}", functions.len());
}

/// A file that says it has as much of everything as fits, and answers every read: each of its
/// sections is a table of symbols without end, each symbol a function of its own with a name
/// without end, and all of them refer to each other.
struct Endless;

const SECTIONS_AT: u64 = 1 << 20;
const SYMBOLS_AT: u64 = 1 << 30;
const NAMES_AT: u64 = 1 << 50;

impl Endless {
    fn byte(at: u64) -> u8 {
        let field = |at: u64, fields: &[(u64, u64)]| {
            let field = fields.iter().rev().find(|(start, _)| *start <= at);
            let (start, value) = field.copied().unwrap_or_default();
            value.checked_shr(8 * (at - start) as u32).unwrap_or(0) as u8
        };
        match at {
            0..64 => field(
                at,
                &[
                    (0, u64::from_le_bytes(*b"\x7fELF\x02\x01\0\0")),
                    (16, 0x3e_0003),
                    (32, 64),
                    (40, SECTIONS_AT),
                    (54, 0xffff_0038),
                    (58, 0xffff_0040),
                    (62, 3),
                ],
            ),
            64..SECTIONS_AT => field((at - 64) % 56, &[(0, 0x5_0000_0001), (32, u64::MAX)]),
            SECTIONS_AT..SYMBOLS_AT => {
                let n = (at - SECTIONS_AT) / 64;
                let (kind, offset) = if n.is_multiple_of(2) {
                    (2, SYMBOLS_AT)
                } else {
                    (3, NAMES_AT)
                };
                let fields = [
                    (0, kind << 32 | 1),
                    (8, 4),
                    (24, offset),
                    (32, u64::MAX),
                    (40, 1),
                ];
                field((at - SECTIONS_AT) % 64, &fields)
            }
            SYMBOLS_AT..NAMES_AT => {
                let n = (at - SYMBOLS_AT) / 24;
                let fields = [(0, 0x1_0012_0000_0001 | n << 3), (8, n * 16), (16, 16)];
                field((at - SYMBOLS_AT) % 24, &fields)
            }
            NAMES_AT.. => b'x',
        }
    }
}

impl Source for Endless {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> std::io::Result<usize> {
        for (byte, at) in bytes.iter_mut().zip(offset..) {
            *byte = Self::byte(at);
        }
        Ok(bytes.len())
    }
}

#[test]
fn a_file_without_end_is_read_in_time() {
    let begun = Instant::now();
    let headers = Headers::read(&Endless).unwrap();
    let code = Code::read(&headers, &Endless, None, Limits::LIVE);
    assert_eq!(code.bytes(), 12 * Limits::LIVE.functions);
    let name = code.name(code.find(0x1000).unwrap(), |_| Some(&Endless));
    assert_eq!(name.unwrap().len(), 512);
    walk(&Endless);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn damaged_files_are_read_without_panic(
        changes in prop::collection::vec((0_usize..4096, any::<u8>()), 1..40),
        cut in 64_usize..200_000,
    ) {
        let mut file = own();
        let n = file.len();
        for (at, byte) in changes {
            // The headers are at both ends.
            file[at] = byte;
            file[n - 1 - at] = byte;
        }
        walk(&file);
        file.truncate(cut);
        walk(&file);
    }

    #[test]
    fn any_bytes_are_read_without_panic(tail in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1];
        file.extend(tail);
        walk(&file);
    }

    /// A small program whose every table is within reach of the damage.
    #[test]
    fn a_small_damaged_program_is_read_without_panic(
        changes in prop::collection::vec((0_usize..16_000, any::<u8>()), 1..20),
        cut in 64_usize..20_000,
    ) {
        let path = "../../fixtures/6.18-debian12/perf/root/tmp/burn/burn";
        let mut file = std::fs::read(path).unwrap();
        for (at, byte) in changes {
            if let Some(place) = file.get_mut(at) {
                *place = byte;
            }
        }
        walk(&file);
        file.truncate(cut);
        walk(&file);
    }
}
