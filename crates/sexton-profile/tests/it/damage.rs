//! Truncated and damaged files give what could be read, and say where they ended.

use std::io::Cursor;

use proptest::prelude::*;
use sexton_model::moment::Moment;
use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::import::{ImportError, Importer, Position, Report, Sink};
use sexton_profile::symbols::NoSymbols;

use crate::support::{RECORDINGS, bytes, fixtures, perf};

fn import(file: &[u8]) -> Result<(Vec<StackSample>, Report), ImportError> {
    let mut samples = Vec::new();
    let mut none = NoSymbols;
    let mut importer = Importer::new(&mut none, &mut samples);
    let report = importer.read_file(Cursor::new(file))?;
    drop(importer);
    Ok((samples, report))
}

/// When each sample was taken, on which core, of which thread.
#[derive(Default)]
struct Times(Taken);

impl Sink for Times {
    fn sample(&mut self, sample: &StackSample, _: &StackTables) {
        self.0.push((sample.at, sample.cpu, sample.tid));
    }

    fn wants_stacks(&self) -> bool {
        false
    }
}

type Taken = Vec<(Moment, u32, u32)>;

fn times(file: &[u8]) -> Result<(Taken, Report), ImportError> {
    let (mut times, mut none) = (Times::default(), NoSymbols);
    let report = Importer::new(&mut none, &mut times).read_file(Cursor::new(file))?;
    Ok((times.0, report))
}

#[test]
fn a_truncated_file_gives_what_is_there_and_says_where_it_ends() {
    let whole = bytes(&perf("fp.data"));
    let n_whole = import(&whole).unwrap().0.len();
    let cut = &whole[..whole.len() / 2];
    let (samples, report) = import(cut).unwrap();
    assert!(!samples.is_empty() && samples.len() < n_whole);
    assert_eq!(report.n_samples, samples.len() as u64);
    let stopped = report.stopped.expect("it ends early");
    let Position::Byte(at) = stopped.at else {
        panic!("perf.data has bytes, not lines");
    };
    // At the record that is not whole: behind the last whole one, before the end.
    assert!(
        at <= cut.len() as u64 && at + 65_536 > cut.len() as u64,
        "{at}"
    );
    assert!(stopped.why.contains("the file ends"), "{}", stopped.why);
}

#[test]
fn a_cut_at_every_tenth_byte_keeps_what_comes_before_it() {
    let whole = bytes(&perf("fp.data"));
    let all = times(&whole).unwrap().0;
    let offset = u64::from_le_bytes(whole[40..48].try_into().unwrap());
    let size = u64::from_le_bytes(whole[48..56].try_into().unwrap());
    let mut n_before = 0;
    for cut in (0..whole.len()).step_by(10) {
        let Ok((samples, report)) = times(&whole[..cut]) else {
            assert!(cut as u64 <= offset, "refused with {cut} bytes of it");
            continue;
        };
        assert!(samples.iter().all(|sample| all.contains(sample)), "{cut}");
        assert!(samples.len() >= n_before, "{cut}");
        n_before = samples.len();
        match report.stopped.map(|stopped| stopped.at) {
            None => assert!(cut as u64 >= offset + size, "{cut}"),
            Some(Position::Byte(at)) => assert!(at <= cut as u64, "{cut}: {at}"),
            Some(at) => panic!("{cut}: {at}"),
        }
    }
    assert_eq!(n_before, all.len());
}

#[test]
fn a_file_that_perf_did_not_finish_is_read_to_its_end() {
    let mut file = bytes(&perf("fp.data"));
    let n_whole = import(&file).unwrap().0.len();
    // The size of the records, which perf writes last; then what it writes behind them.
    let offset = u64::from_le_bytes(file[40..48].try_into().unwrap());
    let size = u64::from_le_bytes(file[48..56].try_into().unwrap());
    file.truncate(usize::try_from(offset + size).unwrap());
    file[48..56].fill(0);
    let (samples, report) = import(&file).unwrap();
    assert_eq!((samples.len(), report.stopped), (n_whole, None));
}

#[test]
fn damaged_text_says_in_which_line() {
    let (samples, report) = import(b"a;b 1\na;c 2\nnonsense\n").unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!(report.stopped.unwrap().at, Position::Line(3));
}

#[test]
fn what_is_no_recording_is_refused() {
    for (file, said) in [
        (&b""[..], "empty"),
        (b"\x7fELF\x02\x01\x01", "no recording"),
        (b"PERFILE2", "16 bytes"),
        (b"PERFILE2\x68\0\0\0\0\0\0\0", "104 bytes"),
        (b"2ELIFREP\0\0\0\0\0\0\0\0", "big-endian"),
    ] {
        let error = import(file).expect_err("it is refused").to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// Numbers that look random and are the same in every run (splitmix64).
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }
}

#[test]
fn whole_files_are_whole() {
    for name in RECORDINGS {
        let (_, report) = times(&bytes(&perf(name))).unwrap();
        assert!(report.is_whole(), "{name}: {report:?}");
    }
}

/// Five flipped bits in each of 70 copies of each recording: what is lost is said.
#[test]
fn no_sample_is_lost_without_a_word() {
    let mut seeded = Seeded(25);
    let (mut n_files, mut n_less) = (0, 0);
    for name in RECORDINGS {
        let whole = bytes(&perf(name));
        let n_whole = times(&whole).unwrap().0.len();
        for copy in 0..70 {
            let mut damaged = whole.clone();
            for _ in 0..5 {
                let at = seeded.below(damaged.len());
                damaged[at] ^= 1 << seeded.below(8);
            }
            n_files += 1;
            let Ok((samples, report)) = times(&damaged) else {
                n_less += 1;
                continue;
            };
            n_less += usize::from(samples.len() < n_whole);
            assert!(
                samples.len() >= n_whole || !report.is_whole(),
                "{name}, copy {copy}: {} of {n_whole} samples; {report:?}",
                samples.len()
            );
        }
    }
    assert_eq!(n_files, 630);
    assert!(n_less > 100, "{n_less} damaged files lost samples");
}

/// A record's kind and length are where damage hides a sample: every bit of them, one by one.
#[test]
fn no_flipped_bit_of_a_samples_header_hides_it() {
    let whole = bytes(&perf("fp.data"));
    let n_whole = times(&whole).unwrap().0.len();
    let mut at = usize::try_from(u64::from_le_bytes(whole[40..48].try_into().unwrap())).unwrap();
    let mut n_flipped = 0;
    while n_flipped < 1000 {
        let kind = u32::from_le_bytes(whole[at..at + 4].try_into().unwrap());
        let size = u16::from_le_bytes(whole[at + 6..at + 8].try_into().unwrap());
        if kind == 9 {
            for bit in (0..32).chain(48..64) {
                let mut damaged = whole.clone();
                damaged[at + bit / 8] ^= 1 << (bit % 8);
                n_flipped += 1;
                let (samples, report) = times(&damaged).unwrap();
                assert!(
                    samples.len() == n_whole || !report.is_whole(),
                    "bit {bit} of the header at {at}: {} of {n_whole}; {report:?}",
                    samples.len()
                );
            }
        }
        at += usize::from(size);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Any cut and any damaged bytes: no panic, and never more samples than a file of that
    /// length can hold.
    #[test]
    fn damage_never_panics(
        which in 0..RECORDINGS.len(),
        cut in 0.0f64..1.0,
        damage in prop::collection::vec((0.0f64..1.0, any::<u8>()), 0..6),
    ) {
        let mut file = bytes(&perf(RECORDINGS[which]));
        let len = file.len();
        for (at, byte) in damage {
            file[(at * len as f64) as usize] = byte;
        }
        file.truncate((cut * len as f64) as usize);
        if let Ok((samples, report)) = import(&file) {
            prop_assert_eq!(samples.len() as u64, report.n_samples);
        }
    }

    /// A text cut anywhere gives the samples before the cut.
    #[test]
    fn cut_text_gives_what_comes_before(cut in 0.0f64..1.0) {
        let text = bytes(&perf("fp.data.script"));
        let whole = import(&text).unwrap().0;
        let cut = &text[..(cut * text.len() as f64) as usize];
        if let Ok((samples, _)) = import(cut) {
            let n_before = samples.len().saturating_sub(1);
            for (part, all) in samples[..n_before].iter().zip(&whole) {
                prop_assert_eq!((part.at, part.tid), (all.at, all.tid));
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = import(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a-z ;:./0-9\\[\\]()+\n\t-]{0,300}") {
        let _ = import(text.as_bytes());
    }
}

#[test]
fn a_damaged_gzip_stops() {
    let mut packed = bytes(&fixtures().join("synthetic/perf-script/stacks.txt.gz"));
    let n_whole = import(&packed).unwrap().0.len();
    packed.truncate(packed.len() / 2);
    let (samples, report) = import(&packed).unwrap();
    assert!(!samples.is_empty() && samples.len() < n_whole);
    assert!(matches!(report.stopped.unwrap().at, Position::Line(_)));
}
