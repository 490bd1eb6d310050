//! Heat maps are those of FlameScope, cell for cell. What it said was recorded from its own
//! code: see the fixtures' `capture.toml`.

use serde_json::Value;
use sexton_profile::filter::{EventChoice, Filter};
use sexton_profile::heatmap::Shape;
use sexton_profile::heatmap::facets::{By, Facets};

use crate::support::{ask, bytes, fixtures, perf, read, series};

fn check(text: &[u8], flamescope: &[u8]) {
    let read = read(&[text]);
    let filter = Filter {
        event: EventChoice::All,
        ..Filter::default()
    };
    let mut facets = Facets::new(By::All, Shape::default(), filter);
    ask(&read, &mut facets);
    let ours = json(&facets);
    let theirs: Value = serde_json::from_slice(flamescope).unwrap();
    assert!(theirs["maxvalue"].as_u64() > Some(1));
    for key in ["rows", "columns", "values", "maxvalue"] {
        assert_eq!(ours[key], theirs[key], "{key}");
    }
}

/// The first picture, as other programs get it.
fn json(facets: &Facets) -> Value {
    let grids = facets.grids().unwrap();
    serde_json::to_value(grids[0].1.json()).unwrap()
}

#[test]
fn cells_are_those_of_flamescope() {
    let folder = fixtures().join("synthetic/perf-script");
    check(
        &bytes(&folder.join("stacks.txt.gz")),
        &bytes(&folder.join("flamescope.json")),
    );
    let scripts = series()
        .iter()
        .map(|name| bytes(&perf(&format!("{name}.script"))));
    check(
        &scripts.collect::<Vec<_>>().concat(),
        &bytes(&perf("series.flamescope.json")),
    );
}

#[test]
fn perf_data_has_the_same_cells_as_its_text() {
    let data: Vec<Vec<u8>> = series().iter().map(|name| bytes(&perf(name))).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut facets = Facets::new(By::All, Shape::default(), Filter::default());
    ask(&read(&data), &mut facets);
    let theirs: Value = serde_json::from_slice(&bytes(&perf("series.flamescope.json"))).unwrap();
    assert_eq!(json(&facets)["values"], theirs["values"]);
}
