use prost::Message as _;
use sexton_model::stack::{CodeKind, CoreState, Frame};

use super::*;
use crate::export::{otlp, pprof_window};
use crate::proto::otlp::{KeyValue, ProfilesData};
use crate::proto::pprof::Profile;
use crate::tables::TableBuilder;
use crate::testing::sample_at;

/// Samples of `n` cgroups: of the cgroup `i` there are `i + 1`, each of two stacks.
fn window(n: u64, most: usize) -> (Vec<WindowProfile>, u64) {
    let mut tables = TableBuilder::default();
    let event = tables.name("cpu-clock");
    let frame = |tables: &mut TableBuilder, name: &str| {
        let frame = Frame {
            kind: CodeKind::Kernel,
            symbol: Some(tables.name(name)),
            module: Some(tables.name("[kernel]")),
            address: 0x10,
            is_inlined: false,
        };
        tables.frame(frame)
    };
    let (outer, inner) = (frame(&mut tables, "outer"), frame(&mut tables, "inner"));
    let stacks = [tables.stack(&[outer]), tables.stack(&[inner, outer])];
    let mut samples = Vec::new();
    for i in 0..n {
        let cgroup = tables.name(&format!("/system.slice/u{i}.service"));
        for stack in stacks {
            for _ in 0..=i {
                samples.push(StackSample {
                    cgroup: Some(cgroup),
                    event,
                    stack,
                    weight: 1_000,
                    ..sample_at(5, 0)
                });
            }
        }
    }
    samples.push(StackSample {
        state: CoreState::Idle,
        ..sample_at(5, 0)
    });
    let mut by_owner = ByOwner::new(|path: Option<&[u8]>| {
        let path = path.map(|path| String::from_utf8_lossy(path).into_owned());
        vec![("unit", path.unwrap_or_default())]
    });
    let mut merger = Merger::default();
    merger.feed(1, &samples, tables.tables(), &mut by_owner);
    let other = vec![("unit", OTHER.to_owned())];
    by_owner.finish(merger, (7_000, 15), most, other)
}

#[test]
fn samples_are_added_up_by_owner_and_idle_cores_are_left_out() {
    let (profiles, n_folded) = window(3, 10);
    assert_eq!(n_folded, 0);
    let counts: Vec<(&str, u64)> = profiles
        .iter()
        .map(|it| (it.labels[0].1.as_str(), it.n_samples()))
        .collect();
    assert_eq!(
        counts,
        [
            ("/system.slice/u0.service", 2),
            ("/system.slice/u1.service", 4),
            ("/system.slice/u2.service", 6)
        ]
    );
    assert_eq!(profiles[0].kind(), ("cpu".to_owned(), "nanoseconds"));
}

#[test]
fn owners_with_the_fewest_samples_are_folded() {
    let (profiles, n_folded) = window(10, 4);
    assert_eq!(profiles.len(), 4);
    assert_eq!(n_folded, (1..=7).map(|n| 2 * n).sum::<u64>());
    let all: u64 = profiles.iter().map(WindowProfile::n_samples).sum();
    assert_eq!(all, (1..=10).map(|n| 2 * n).sum::<u64>());
    assert_eq!(profiles[3].labels[0].1, OTHER);
}

#[test]
fn pprof_of_a_window_says_the_same_and_cuts_deep_stacks() {
    let (profiles, _) = window(1, 10);
    let encoded = pprof_window::encode(&profiles[0], 1_000);
    assert_eq!(encoded.n_cut, 0);
    let profile = Profile::decode(&encoded.bytes[..]).expect("it is pprof");
    assert_eq!((profile.time_nanos, profile.duration_nanos), (7_000, 15));
    assert_eq!(profile.period, 1_000);
    let names: Vec<Vec<&str>> = profile
        .sample
        .iter()
        .map(|sample| {
            let functions = sample.location_id.iter().map(|id| {
                let location = &profile.location[*id as usize - 1];
                let function = &profile.function[location.line[0].function_id as usize - 1];
                profile.string_table[function.name as usize].as_str()
            });
            functions.collect()
        })
        .collect();
    assert_eq!(names, [vec!["outer"], vec!["inner", "outer"]]);
    assert!(profile.sample.iter().all(|it| it.value == [1, 1_000]));
    let cut = pprof_window::encode(&profiles[0], 1);
    assert_eq!(cut.n_cut, 1);
}

#[test]
fn halves_have_all_samples_and_other_times() {
    let (profiles, _) = window(1, 10);
    let (first, second) = profiles[0].split().expect("two stacks");
    assert_eq!(first.n_samples() + second.n_samples(), 2);
    assert_ne!(first.start_ns, second.start_ns);
    assert!(first.split().is_none());
}

#[test]
fn tables_of_otlp_begin_with_the_zero_value() {
    let (profiles, _) = window(3, 10);
    let attributes = |it: &WindowProfile| vec![KeyValue::new("unit", it.labels[0].1.as_str())];
    let (data, n_cut) = otlp::encode(&profiles, "1", 128, attributes);
    assert_eq!(n_cut, 0);
    let data = ProfilesData::decode(&data.encode_to_vec()[..]).expect("it is OTLP");
    let tables = data.dictionary.expect("tables");
    assert_eq!(tables.string_table[0], "");
    assert!(tables.stack_table[0].location_indices.is_empty());
    assert!(tables.location_table[0].lines.is_empty());
    // Three owners share two stacks and two functions.
    assert_eq!(
        (tables.stack_table.len(), tables.function_table.len()),
        (3, 3)
    );
    assert_eq!(data.resource_profiles.len(), 3);
    let profile = &data.resource_profiles[2].scope_profiles[0].profiles[0];
    let values: Vec<i64> = profile
        .samples
        .iter()
        .flat_map(|it| &it.values)
        .copied()
        .collect();
    assert_eq!(values, [3_000, 3_000]);
}
