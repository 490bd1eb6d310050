//! What an agent lives through: kills at any moment, and a ring whose files are damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sexton_model::timeline::Timeline as _;
use sexton_store::{Bundle, Ring};

use crate::agent::Place;

/// How often an agent is killed, and its ring damaged; more by `SEXTON_KILLS=1000`.
const ROUNDS: u64 = 12;

fn rounds() -> u64 {
    let asked = std::env::var("SEXTON_KILLS").ok();
    asked.map_or(ROUNDS, |text| text.parse().expect("a number"))
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1)
    }
}

/// All files of a ring but the lock, which holds nothing.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let is_lock = path.file_name().is_some_and(|name| name == "lock");
        match path.is_dir() {
            true => files(&path, found),
            false if !is_lock => found.push(path),
            false => {}
        }
    }
}

/// Texts of the gaps in the only boot of a ring.
fn gaps(ring: &Path) -> Vec<String> {
    let boots = Ring::at(ring).boots().expect("a ring");
    assert_eq!(boots.len(), 1, "{boots:?}");
    let records = Bundle::open(&boots[0].records)
        .expect("a bundle")
        .load(None, None);
    records.gaps().map(|(_, _, gap)| gap.text.clone()).collect()
}

#[test]
fn killed_again_and_again_it_goes_on_with_one_ring() {
    let place = Place::new("");
    let mut numbers = Numbers(0x5eed_0021);
    for _ in 0..rounds() {
        let running = place.start();
        // Some have kept records by then, and some have not.
        thread::sleep(Duration::from_millis(numbers.below(2_000)));
        drop(running);
    }
    let running = place.start();
    place.wait_for_records(20);
    let (code, log) = running.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
    let gaps = gaps(&place.ring());
    assert!(
        gaps.iter().any(|text| text.contains("was killed")),
        "{gaps:?}"
    );
    let damaged = gaps.iter().find(|text| text.contains("damaged"));
    assert_eq!(damaged, None, "a kill damages nothing");
}

#[test]
fn a_ring_that_is_damaged_at_random_bytes_is_gone_on_with() {
    let place = Place::new("");
    let mut numbers = Numbers(0x5eed_0022);
    let mut running = place.start();
    for round in 0..rounds() {
        // Of some rounds in a row something is sealed, so that there are segments, too.
        place.wait_for_records(30);
        match round % 2 {
            0 => drop(running),
            _ => drop(running.end("-TERM")),
        }
        let mut all = Vec::new();
        files(&place.ring(), &mut all);
        all.sort();
        let file = &all[numbers.below(all.len() as u64) as usize];
        let mut bytes = fs::read(file).expect("a file");
        if !bytes.is_empty() {
            for _ in 0..8 {
                let at = numbers.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << numbers.below(8);
            }
            fs::write(file, &bytes).expect("a file");
        }
        running = place.start();
        place.wait_for_records(1);
        let status = place.status().expect("it answers");
        assert!(
            status["disk_trouble"].is_null(),
            "{} in round {round}: {status:#}",
            file.display()
        );
    }
    let (code, log) = running.end("-TERM");
    assert_eq!(code, Some(0), "{log}");
}
