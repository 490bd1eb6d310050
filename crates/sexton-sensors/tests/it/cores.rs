//! Cores that work, rest, come, go and begin anew.

use proptest::prelude::*;
use sexton_model::record::Record;
use sexton_sensors::Sensor;

use crate::node::{Node, open, poll, show};

/// A `/proc/stat` of cores that have user, system and idle ticks.
fn stat(cores: &[(u32, [u64; 3])]) -> String {
    let mut text = String::from("cpu  1 2 3 4 5 6 7 8 9 10\n");
    for (number, [user, system, idle]) in cores {
        text += &format!("cpu{number} {user} 0 {system} {idle} 0 0 0 0 0 0\n");
    }
    text + "intr 1 2 3\nctxt 4\n"
}

/// A sequence of looks at one node, 100 ms apart.
struct Looks {
    node: Node,
    sensor: Box<dyn Sensor>,
    ms: u64,
}

impl Looks {
    fn begin(name: &str, cores: &[(u32, [u64; 3])]) -> Self {
        let node = Node::new(name);
        node.write("proc/stat", stat(cores));
        let sensor = open("cores", &node.host()).expect("it opens");
        let mut looks = Self {
            node,
            sensor,
            ms: 1000,
        };
        assert_eq!(looks.look(), [""; 0], "one look is no interval");
        looks
    }

    fn look(&mut self) -> Vec<String> {
        show(&self.poll())
    }

    fn poll(&mut self) -> Vec<Record> {
        self.ms += 100;
        let host = self.node.host();
        poll("cores", self.sensor.as_mut(), &host, self.ms)
    }

    fn records(&mut self, stat: impl AsRef<[u8]>) -> Vec<Record> {
        self.node.write("proc/stat", stat);
        self.poll()
    }

    fn then(&mut self, stat: impl AsRef<[u8]>) -> Vec<String> {
        self.node.write("proc/stat", stat);
        self.look()
    }
}

/// Those that say more than zero, and that are no ratio of a mode.
fn telling(lines: &[String]) -> Vec<&str> {
    let lines = lines.iter().map(String::as_str);
    lines.filter(|line| !line.ends_with(" 0.00")).collect()
}

#[test]
fn the_worst_core_is_named_among_many() {
    let mut looks = Looks::begin("worst", &[(0, [0, 0, 0]), (1, [0, 0, 0]), (2, [0, 0, 0])]);
    let lines = looks.then(stat(&[(0, [10, 0, 0]), (1, [1, 8, 1]), (2, [0, 1, 9])]));
    assert_eq!(lines.len(), 3 * 10 + 2);
    assert_eq!(
        telling(&lines),
        [
            "core_user_ratio cpu 0 1.00",
            "core_user_ratio cpu 1 0.10",
            "core_system_ratio cpu 1 0.80",
            "core_idle_ratio cpu 1 0.10",
            "core_system_ratio cpu 2 0.10",
            "core_idle_ratio cpu 2 0.90",
            "core_worst_busy_ratio cpu 0 1.00",
            "core_worst_system_ratio cpu 1 0.80",
        ]
    );
}

/// Ten looks are one second; it began at 1100 ms.
#[test]
fn quiet_looks_are_told_as_one_and_others_each() {
    let cores = |user: u64, system: u64, idle: u64| stat(&[(0, [user, system, idle])]);
    let mut looks = Looks::begin("seconds", &[(0, [0, 0, 0])]);
    assert_eq!(
        looks.then(cores(0, 0, 10)).len(),
        10 + 2,
        "the first is told"
    );
    for n in 2..=8 {
        let lines = looks.then(cores(n, 0, n * 9));
        assert_eq!(lines.len(), 2, "the worst of all at {} ms", looks.ms);
    }
    assert_eq!(looks.ms, 1900);
    // The second is over: what was held back is told up to its last look.
    let over = looks.records(cores(9, 0, 81));
    let split: Vec<_> = over
        .iter()
        .filter(|record| record.value() > Some(0.0))
        .map(|record| {
            (
                record.at.as_ns() / 1_000_000,
                record.fact().expect("a sample").name,
            )
        })
        .collect();
    assert_eq!(
        split,
        [
            (1900, "core_user_ratio"),
            (1900, "core_idle_ratio"),
            (2000, "core_worst_busy_ratio"),
        ]
    );
    // A hot look is told for itself, and before it what was held back.
    looks.then(cores(9, 0, 91));
    let hot = looks.records(cores(9, 9, 92));
    let system = |record: &&Record| {
        record
            .fact()
            .is_some_and(|fact| fact.name == "core_system_ratio")
    };
    let told: Vec<_> = hot
        .iter()
        .filter(system)
        .map(|record| (record.at.as_ns() / 1_000_000, record.value()))
        .collect();
    assert_eq!(told, [(2100, Some(0.0)), (2200, Some(0.9))]);
}

/// A program that takes a quiet core for a part of a second is not blurred.
#[test]
fn a_change_ends_what_is_told_as_one() {
    let mut looks = Looks::begin("change", &[(0, [0, 0, 0])]);
    let (mut user, mut idle, mut told) = (0, 0, Vec::new());
    for n in 0..20 {
        if (4..7).contains(&n) {
            user += 10
        } else {
            idle += 10
        }
        for record in looks.records(stat(&[(0, [user, 0, idle])])) {
            if record
                .fact()
                .is_some_and(|fact| fact.name == "core_user_ratio")
            {
                told.push((record.at.as_ns() / 1_000_000, record.value()));
            }
        }
    }
    let expected = [
        (1200, 0.0),
        (1500, 0.0),
        (1800, 1.0),
        (1900, 0.0),
        (2900, 0.0),
    ];
    assert_eq!(told, expected.map(|(at, user)| (at, Some(user))));
}

/// The time that samples cover is all the time there was, and their sum all that was booked.
#[test]
fn what_is_told_adds_up() {
    let mut looks = Looks::begin("sums", &[(0, [0, 0, 0])]);
    let (mut booked, mut expected, mut told) = ([0_u64; 3], Vec::new(), Vec::new());
    for n in 0..95_u64 {
        let system = (n * 7919) % 11;
        booked[1] += system;
        booked[2] += 10 - system.min(10);
        expected.push(system.min(10));
        for record in looks.records(stat(&[(0, booked)])) {
            if record
                .fact()
                .is_some_and(|fact| fact.name == "core_system_ratio")
            {
                told.push((
                    record.at.as_ns() / 1_000_000,
                    record.value().expect("a value"),
                ));
            }
        }
    }
    let mut until = 1100;
    for (at, ratio) in told {
        let looks = &expected[(until as usize - 1100) / 100..(at as usize - 1100) / 100];
        let sum: u64 = looks.iter().sum();
        let all = looks.len() as f64 * 10.0;
        assert!(
            (ratio - sum as f64 / all).abs() < 0.02,
            "from {until} to {at}: {ratio}"
        );
        until = at;
    }
    assert!(until > 1100 + 8_000, "told up to {until}");
}

#[test]
fn ninety_six_cores_make_few_records() {
    let cores = |n: u64| -> Vec<(u32, [u64; 3])> {
        let quiet = |cpu: u32| (cpu, [n, (n + u64::from(cpu)) / 10, n * 9]);
        (0..96).map(quiet).collect()
    };
    let mut looks = Looks::begin("many", &cores(0));
    looks.then(stat(&cores(1)));
    let n: usize = (2..102).map(|n| looks.then(stat(&cores(n))).len()).sum();
    // Ten seconds. Each look at each core would be 96,020.
    assert_eq!(n, 96 * 10 * 10 + 2 * 100);
}

#[test]
fn a_core_that_comes_or_goes_is_an_event_and_no_spike() {
    let mut looks = Looks::begin("hotplug", &[(0, [0, 0, 0]), (1, [500, 500, 500])]);
    let gone = looks.then(stat(&[(0, [0, 0, 10])]));
    assert_eq!(
        telling(&gone),
        ["core_idle_ratio cpu 0 1.00", "core_offline cpu 1"]
    );
    let back = looks.then(stat(&[(0, [0, 0, 20]), (1, [900, 900, 0])]));
    assert_eq!(telling(&back), ["core_online cpu 1"]);
    let after = looks.then(stat(&[(0, [0, 0, 30]), (1, [900, 910, 0])]));
    assert!(
        after.contains(&"core_worst_system_ratio cpu 1 1.00".to_owned()),
        "{after:?}"
    );
}

#[test]
fn a_reset_is_a_new_start_for_that_core_alone() {
    let mut looks = Looks::begin("reset", &[(0, [900, 0, 0]), (1, [900, 0, 900])]);
    let lines = looks.then(stat(&[(0, [910, 0, 0]), (1, [901, 0, 3])]));
    assert_eq!(
        telling(&lines),
        [
            "gap cpu 1 lost 1: a counter of core 1 went backwards; this interval is not known",
            "core_user_ratio cpu 0 1.00",
            "core_worst_busy_ratio cpu 0 1.00",
        ]
    );
    let after = looks.then(stat(&[(0, [910, 0, 10]), (1, [901, 0, 13])]));
    assert!(after.contains(&"core_idle_ratio cpu 1 1.00".to_owned()));
}

#[test]
fn what_makes_no_sense_is_a_gap_and_takes_no_core_away() {
    let mut looks = Looks::begin("nonsense", &[(0, [0, 0, 0]), (1, [0, 0, 0])]);
    let broken = looks.then("cpu0 0 0 0 10 0 0 0 0 0 0\ncpu1 what\n");
    let [.., gap] = &broken[..] else {
        panic!("nothing was told")
    };
    assert!(gap.starts_with("gap node malformed: cannot make sense of 1 of the cores"));
    let empty = looks.then("");
    assert_eq!(empty.len(), 1);
    assert!(empty[0].starts_with("gap node malformed"), "{empty:?}");
    let whole = looks.then(stat(&[(0, [0, 0, 20]), (1, [30, 0, 0])]));
    assert!(whole.contains(&"core_user_ratio cpu 1 1.00".to_owned()));
    looks.node.remove("proc/stat");
    assert!(looks.look()[0].starts_with("gap node vanished: cannot read /proc/stat"));
}

proptest! {
    #[test]
    fn any_two_files_do(first: Vec<u8>, lines in "(cpu[0-3]( [0-9]{1,3}){10}\n){0,4}") {
        let node = Node::new("any-stat");
        node.write("proc/stat", &first);
        let host = node.host();
        let mut sensor = open("cores", &host).expect("the file is there");
        for (ms, stat) in [(0, &first[..]), (100, lines.as_bytes()), (200, &first)] {
            node.write("proc/stat", stat);
            for record in poll("cores", sensor.as_mut(), &host, ms) {
                prop_assert!(record.value().is_none_or(|value| (0.0..=1.0).contains(&value)));
            }
        }
    }
}
