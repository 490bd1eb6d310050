//! What the sensor says of each core is what `mpstat` says, and a hog is found.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sexton_host::{Host, clock};
use sexton_kernel_tests::hog::{Hog, come_first, last_core};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::core as fact;
use sexton_model::moment::Moment;
use sexton_model::record::{Record, Sink};
use sexton_sensors::SENSORS;

const SECONDS: u64 = 10;

/// Points of a hundred by which the two may differ: they do not look at the very same
/// moments, and each counter is cut to ticks of 10 ms.
const TOLERANCE: f64 = 2.0;

/// Our facts and the columns of `mpstat` that are the same thing.
const COLUMNS: [(&str, &[&str]); 9] = [
    ("core_user_ratio", &["%usr"]),
    ("core_nice_ratio", &["%nice"]),
    ("core_system_ratio", &["%sys"]),
    ("core_irq_ratio", &["%irq"]),
    ("core_softirq_ratio", &["%soft"]),
    ("core_iowait_ratio", &["%iowait"]),
    ("core_steal_ratio", &["%steal"]),
    ("core_guest_ratio", &["%guest", "%gnice"]),
    ("core_idle_ratio", &["%idle"]),
];

/// Percent by core and fact.
type Table = BTreeMap<(String, &'static str), f64>;

/// Work in the program itself.
fn spin() {
    (0..1000).for_each(|_| std::hint::spin_loop());
}

/// Work in the kernel.
fn read_zeros() {
    use std::io::Read as _;
    let mut zeros = vec![0; 1 << 20];
    std::fs::File::open("/dev/zero")
        .and_then(|mut zero| zero.read_exact(&mut zeros))
        .expect("zeros");
}

/// Polls the sensor for so long, as often as it asks for.
fn watch(time: Duration) -> Vec<Record> {
    let host = Host::live().expect("a mount table");
    let spec = SENSORS
        .iter()
        .find(|spec| spec.name == "cores")
        .expect("there is one");
    let mut sensor = (spec.open)(&host).expect("it opens");
    let begin = Instant::now();
    let mut records = Vec::new();
    let mut n_polls = 0;
    loop {
        let mut out = Sink::new(spec.name, clock::now());
        sensor.poll(&host, &mut out);
        records.extend(out.into_records());
        n_polls += 1;
        let next = spec.every * n_polls;
        if next > time {
            return records;
        }
        thread::sleep(next.saturating_sub(begin.elapsed()));
    }
}

/// The mean of every mode of every core over the first seconds. A sample covers the time
/// since the one before.
fn means(records: &[Record]) -> Table {
    let begin = records.first().expect("records").at;
    let end = begin.after(Duration::from_secs(SECONDS));
    let mut sums: BTreeMap<(String, &'static str), (f64, f64, Moment)> = BTreeMap::new();
    for record in records {
        let (Some(fact), Some(value)) = (record.fact(), record.value()) else {
            continue;
        };
        let key = (record.subject.name.to_string(), fact.name);
        let (sum, all, before) = sums.entry(key).or_insert((0.0, 0.0, begin));
        let covers = record.at.min(end).since(*before).as_secs_f64();
        *sum += value * 100.0 * covers;
        *all += covers;
        *before = record.at;
    }
    sums.into_iter()
        .map(|(key, (sum, all, _))| (key, sum / all))
        .collect()
}

/// The averages at the end of what `mpstat` prints.
fn averages(printed: &str) -> Table {
    let rows = printed
        .lines()
        .filter_map(|line| line.strip_prefix("Average:"));
    let mut rows = rows.map(|row| row.split_whitespace().collect::<Vec<_>>());
    let header = rows.next().expect("a header");
    let mut table = Table::new();
    for row in rows.filter(|row| row[0] != "all") {
        for (fact, columns) in COLUMNS {
            let column = |name: &&str| {
                let at = header.iter().position(|head| head == name);
                row[at.expect("mpstat has this column")]
                    .parse::<f64>()
                    .expect("a number")
            };
            let percent = columns.iter().map(column).sum();
            table.insert((row[0].to_owned(), fact), percent);
        }
    }
    table
}

#[test]
#[ignore = "needs root and mpstat: run cargo xtask test kernel"]
fn every_mode_of_every_core_is_what_mpstat_says() {
    require(Need::Root);
    require(Need::Program("mpstat"));
    come_first();
    let mpstat = Command::new("mpstat")
        .args(["-P", "ALL", "1", &SECONDS.to_string()])
        .env("LC_ALL", "C")
        .stdout(Stdio::piped())
        .spawn()
        .expect("mpstat starts");
    let hog = thread::spawn(|| {
        thread::sleep(Duration::from_secs(2));
        let _hog = Hog::on(last_core(), spin);
        thread::sleep(Duration::from_secs(4));
    });
    let ours = means(&watch(Duration::from_secs(SECONDS + 2)));
    hog.join().expect("the hog ends");
    let printed = mpstat.wait_with_output().expect("mpstat ends").stdout;
    let theirs = averages(&String::from_utf8(printed).expect("text"));
    assert!(theirs.len() >= COLUMNS.len(), "mpstat said nothing");
    for (key, theirs) in theirs {
        let ours = *ours
            .get(&key)
            .unwrap_or_else(|| panic!("nothing of {key:?}"));
        assert!(
            (ours - theirs).abs() <= TOLERANCE,
            "{key:?}: {ours:.2} of ours, {theirs:.2} of mpstat"
        );
    }
}

/// How often each core was the worst.
fn worst(records: &[Record], of: &'static sexton_model::fact::Fact) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    let told = records.iter().filter(|record| record.fact() == Some(of));
    for record in told {
        *counts.entry(record.subject.name.to_string()).or_default() += 1;
    }
    counts
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn a_hog_in_the_kernel_is_named_as_the_worst_core() {
    require(Need::Root);
    come_first();
    let core = last_core();
    let hog = Hog::on(core, read_zeros);
    let records = watch(Duration::from_secs(4));
    drop(hog);
    let counts = worst(&records, &fact::CORE_WORST_SYSTEM_RATIO);
    let named = counts.get(&core.to_string()).copied().unwrap_or(0);
    assert!(
        named * 2 > counts.values().sum(),
        "core {core} among {counts:?}"
    );
}
