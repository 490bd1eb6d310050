//! Cores that work, rest, come, go and begin anew.

use proptest::prelude::*;
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
        self.ms += 100;
        let host = self.node.host();
        show(&poll("cores", self.sensor.as_mut(), &host, self.ms))
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

#[test]
fn a_core_that_comes_or_goes_is_an_event_and_no_spike() {
    let mut looks = Looks::begin("hotplug", &[(0, [0, 0, 0]), (1, [500, 500, 500])]);
    let gone = looks.then(stat(&[(0, [0, 0, 10])]));
    assert_eq!(
        telling(&gone),
        ["core_idle_ratio cpu 0 1.00", "core_offline cpu 1"]
    );
    let back = looks.then(stat(&[(0, [0, 0, 20]), (1, [900, 900, 0])]));
    assert_eq!(
        telling(&back),
        ["core_idle_ratio cpu 0 1.00", "core_online cpu 1"]
    );
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
            "core_user_ratio cpu 0 1.00",
            "gap cpu 1 lost 1: a counter of core 1 went backwards; this interval is not known",
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
