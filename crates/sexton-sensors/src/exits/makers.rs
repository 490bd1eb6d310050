//! Tells whose children exit when very many processes do.
//!
//! They are counted in the kernel by the name of their parent and by cgroup. The counts are
//! read at the start and in seconds in which many processes exit, which one counter tells.

use std::collections::HashMap;

use sexton_bpf::prog::exits::Maker;
use sexton_model::fact::exit::{PROCESS_MAKER, ProcessMaker};
use sexton_model::moment::Moment;
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use crate::lineage::Lineage;

/// Fewer exits a second are not looked at.
///
/// Chosen: the rate at which TASK003 begins to look, on a node with one core.
const MANY: f64 = 50.0;

/// Makers that one poll reports.
const MAX_TOLD: usize = 8;

/// Those of a cgroup with a smaller part of all exits are not told. A tree of scripts has parents
/// of many names, so what counts is the cgroup.
const LEAST_PART: f64 = 0.05;

/// A maker: its cgroup, and the name of the parents.
type Key = (Vec<u8>, Vec<u8>);

/// What has been read so far.
#[derive(Debug, Default)]
pub(super) struct Makers {
    polled: Option<(Moment, u64)>,
    /// Counts of the last poll; empty unless it was the first, or many processes exited then too.
    before: HashMap<Key, (u64, u64)>,
}

impl Makers {
    /// One poll: all exits so far, and how to read who made them.
    pub(super) fn poll(&mut self, n_exits: u64, read: impl FnOnce() -> Vec<Maker>, out: &mut Sink) {
        let now = out.now();
        let Some((at, n_before)) = self.polled.replace((now, n_exits)) else {
            // What began before us is told from the next poll on.
            self.before = counts(&read());
            return;
        };
        let interval = now.since(at);
        let n_all = n_exits.saturating_sub(n_before);
        if (n_all as f64) < MANY * interval.as_secs_f64() {
            return self.before.clear();
        }
        let makers = read();
        let before = std::mem::replace(&mut self.before, counts(&makers));
        let mut grown: Vec<(u64, u64, &Maker)> = makers
            .iter()
            .filter_map(|maker| {
                let (n, n_short) = before.get(&key(maker))?;
                let grown = maker.n.saturating_sub(*n);
                Some((grown, maker.n_short.saturating_sub(*n_short), maker))
            })
            .filter(|(n, ..)| *n > 0)
            .collect();
        let mut of_cgroup: HashMap<&[u8], u64> = HashMap::new();
        for (n, _, maker) in &grown {
            *of_cgroup.entry(&maker.cgroup).or_default() += n;
        }
        grown
            .retain(|(.., maker)| of_cgroup[&maker.cgroup[..]] as f64 >= LEAST_PART * n_all as f64);
        grown.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| key(a.2).cmp(&key(b.2))));
        for (n, n_short, maker) in grown.into_iter().take(MAX_TOLD) {
            let says = ProcessMaker {
                n,
                n_short,
                n_all,
                interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX),
                ..describe(maker)
            };
            let subject = Subject::new(SubjectKind::Process, maker.parent.to_string());
            out.event(now, &subject, &PROCESS_MAKER, says);
        }
    }
}

fn counts(makers: &[Maker]) -> HashMap<Key, (u64, u64)> {
    let counts = makers
        .iter()
        .map(|maker| (key(maker), (maker.n, maker.n_short)));
    counts.collect()
}

fn key(maker: &Maker) -> Key {
    (maker.cgroup.clone(), maker.comm.clone())
}

fn describe(maker: &Maker) -> ProcessMaker {
    let cgroup = Some(&maker.cgroup[..]).filter(|cgroup| !cgroup.is_empty());
    let lineage = cgroup.map(Lineage::of).unwrap_or_default();
    let comm = |comm: &[u8]| Some(escape(comm)).filter(|comm| !comm.is_empty());
    ProcessMaker {
        comm: comm(&maker.comm),
        child_comm: comm(&maker.child),
        cgroup: cgroup.map(escape),
        unit: lineage.unit,
        container: lineage.container,
        n: 0,
        n_short: 0,
        n_all: 0,
        interval_ns: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker(unit: &str, comm: &str, n: u64) -> Maker {
        Maker {
            cgroup_id: 7,
            cgroup: format!("/system.slice/{unit}").into_bytes(),
            comm: comm.into(),
            parent: 12,
            child: b"true".to_vec(),
            n,
            n_short: n,
        }
    }

    /// Each second: all exits so far, and the makers. Told as `unit/comm +n of n`.
    #[track_caller]
    fn check(seconds: &[(u64, Vec<Maker>)], expected: &[&[&str]]) {
        let mut makers = Makers::default();
        for (second, ((n_exits, counted), expected)) in (1_u64..).zip(seconds.iter().zip(expected))
        {
            let mut out = Sink::new("exits", Moment::from_ns(second * 1_000_000_000));
            makers.poll(*n_exits, || counted.clone(), &mut out);
            let told = out.into_records();
            let told = told.iter().filter_map(|record| record.says(&PROCESS_MAKER));
            let told: Vec<String> = told
                .map(|says| {
                    let unit = says.unit.as_deref().unwrap_or("-");
                    let comm = says.comm.as_deref().unwrap_or("-");
                    format!("{unit}/{comm} +{} of {}", says.n, says.n_all)
                })
                .collect();
            assert_eq!(told, *expected, "second {second}");
        }
    }

    #[test]
    fn makers_are_told_while_many_processes_exit() {
        let both = |storm, quiet| {
            vec![
                maker("storm.service", "sh", storm),
                maker("b.service", "b", quiet),
            ]
        };
        check(
            &[
                (1_000, both(900, 100)),
                (1_020, both(910, 110)),
                (1_720, both(1_600, 120)),
                (2_420, both(2_290, 130)),
                (2_430, both(2_300, 130)),
            ],
            &[&[], &[], &[], &["storm.service/sh +690 of 700"], &[]],
        );
    }

    #[test]
    fn a_storm_that_was_there_before_is_told_from_the_second_poll_on() {
        let storm = |n| vec![maker("storm.service", "sh", n)];
        check(
            &[(1_000, storm(1_000)), (1_700, storm(1_700))],
            &[&[], &["storm.service/sh +700 of 700"]],
        );
    }

    #[test]
    fn a_tree_of_many_names_is_told_by_the_most_frequent_ones() {
        let tree = |n: u64| {
            let names = (0..30).map(|i| maker("tree.service", &format!("step-{i:02}"), n + n * i));
            names.collect::<Vec<_>>()
        };
        let all = |n: u64| (0..30).map(|i| n + n * i).sum::<u64>();
        let told = (0..8).map(|i| format!("tree.service/step-{} +{} of 465", 29 - i, 30 - i));
        let told: Vec<String> = told.collect();
        let told: Vec<&str> = told.iter().map(String::as_str).collect();
        check(&[(all(1), tree(1)), (all(2), tree(2))], &[&[], &told]);
    }

    #[test]
    fn a_parent_without_a_name_or_cgroup_is_told_without() {
        let nameless = |n| Maker {
            cgroup: Vec::new(),
            comm: Vec::new(),
            ..maker("", "", n)
        };
        let seconds = [
            (0, vec![]),
            (200, vec![nameless(200)]),
            (400, vec![nameless(400)]),
        ];
        check(&seconds, &[&[], &[], &["-/- +200 of 200"]]);
    }
}
