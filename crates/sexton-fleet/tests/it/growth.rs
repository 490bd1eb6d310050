//! What `fleet top` says of things that grow.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use sexton_lake::{Cell, Table, column, parquet_of};
use sexton_model::wall::unix_ns;

use crate::support::*;

const NODES: u32 = 40;
const HOURS: i64 = 24;
/// On these `memcg_dying` grows, and each has MCG001 one hour later than the one before.
const LEAKING: u32 = 12;
const PER_HOUR: f64 = 100.0;

/// A day of a fleet in which something grows. Other facts go up and down.
fn write_fleet(lake: &Path) {
    let mut table = Table::default();
    let text = |text: &str| Cell::Text(Arc::from(text));
    let begin = i64::try_from(unix_ns("2026-11-17T00:00:00Z").unwrap() / 1000).unwrap();
    for node in 0..NODES {
        for hour in 0..HOURS {
            let wobble = f64::from((node * 7 + hour as u32 * 11) % 13);
            let dying = match node < LEAKING {
                true => 1_000.0 + PER_HOUR * hour as f64,
                false => 1_000.0 + wobble,
            };
            let own = || {
                [
                    (column::SCHEMA, Cell::Number(1.0)),
                    (column::NODE, text(&format!("web{node:02}"))),
                    (column::BOOT, text("b00t")),
                    (column::AT, Cell::Time(begin + hour * 3_600_000_000)),
                ]
            };
            let report = [
                (column::KIND, text("report")),
                ("memcg_dying", Cell::Number(dying)),
                ("memcg_live", Cell::Number(1_000.0 + 100.0 * wobble)),
            ];
            table.push(own().into_iter().chain(report));
            if node < LEAKING && hour > i64::from(node) {
                let finding = [
                    (column::KIND, text("finding")),
                    (column::FINDING, text("MCG001:/")),
                    (column::CODE, text("MCG001")),
                    (column::SEVERITY_RANK, Cell::Number(2.0)),
                ];
                table.push(own().into_iter().chain(finding));
            }
        }
    }
    let folder = lake.join("day=2026-11-17");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("part-0.parquet"), parquet_of(table).unwrap()).unwrap();
}

#[test]
fn what_grows_is_named_with_its_nodes_and_its_rate() {
    let lake = tempfile::tempdir().unwrap();
    write_fleet(lake.path());
    let url = lake.path().to_str().unwrap();
    let top = json(&fleet(&["top", "--lake", url, "--json"]));
    let growing = top["growing"].as_array().unwrap();
    assert_eq!(growing.len(), 1, "{growing:?}");
    assert_eq!(growing[0]["fact"], "memcg_dying");
    assert_eq!(growing[0]["nodes"], LEAKING);
    assert_eq!(growing[0]["nodes_known"], NODES);
    let rate = growing[0]["median_per_hour"].as_f64().unwrap();
    assert!((rate - PER_HOUR).abs() < 0.02 * PER_HOUR, "{rate}");
    let names = growing[0]["fastest"].as_array().unwrap();
    assert!(
        names
            .iter()
            .all(|grown| grown["node"].as_str() < Some("web12"))
    );

    let spreading = &top["spreading"][0];
    assert_eq!(spreading["code"], "MCG001");
    let share = f64::from(LEAKING) / f64::from(NODES);
    assert!(
        (spreading["share"].as_f64().unwrap() - share).abs() < 1e-9,
        "{spreading}"
    );
    assert!(
        spreading["hours_to_half"].as_f64() > Some(0.0),
        "{spreading}"
    );

    let text = stdout(&fleet(&["top", "--lake", url]));
    assert!(
        text.contains("memcg_dying: grows on 12 of 40 nodes, by 100/h"),
        "{text}"
    );
    assert!(
        text.contains("MCG001: on 30 % of nodes that report, +"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn chance_does_not_grow() {
    for seed in 1..=3 {
        let lake = tempfile::tempdir().unwrap();
        simulate(lake.path(), 300, 24, seed, "none");
        let url = lake.path().to_str().unwrap();
        let top = json(&fleet(&["top", "--lake", url, "--json"]));
        assert_eq!(top["growing"], serde_json::json!([]), "seed {seed}");
    }
}

#[test]
fn hours_that_are_too_few_tell_nothing() {
    let lake = tempfile::tempdir().unwrap();
    write_fleet(lake.path());
    let url = lake.path().to_str().unwrap();
    let top = json(&fleet(&["top", "--lake", url, "--json", "--since", "6h"]));
    assert_eq!(
        (&top["growing"], &top["spreading"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
}
