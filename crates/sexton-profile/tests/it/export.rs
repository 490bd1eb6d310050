//! What is written for other viewers holds together. Their own readers are asked in
//! sexton's own tests and in `cargo xtask bench profile`.

use serde_json::Value;
use sexton_profile::export::rows::Rows;
use sexton_profile::export::{firefox, html, speedscope, svg};
use sexton_profile::filter::{EventChoice, Filter};
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::heatmap::Mark;
use sexton_profile::names::Suffixes;

use crate::support::{Read, ask, bytes, perf, read};

fn all() -> Filter {
    Filter {
        idle: true,
        event: EventChoice::All,
        ..Filter::default()
    }
}

fn fixture() -> (Read, Rows) {
    let read = read(&[&bytes(&perf("fp.data"))]);
    let mut rows = Rows::new(all());
    ask(&read, &mut rows);
    (read, rows)
}

#[test]
fn speedscope_has_every_sample_once() {
    let (read, rows) = fixture();
    let mut out = Vec::new();
    speedscope::write(&mut out, "name", &rows, &read.tables).unwrap();
    let json: Value = serde_json::from_slice(&out).unwrap();
    let n_frames = json["shared"]["frames"].as_array().unwrap().len() as u64;
    let mut n = 0;
    for profile in json["profiles"].as_array().unwrap() {
        let samples = profile["samples"].as_array().unwrap();
        assert_eq!(samples.len(), profile["weights"].as_array().unwrap().len());
        n += samples.len();
        let frames = samples.iter().flat_map(|sample| sample.as_array().unwrap());
        assert!(
            frames
                .into_iter()
                .all(|frame| frame.as_u64().unwrap() < n_frames)
        );
    }
    assert_eq!(n, read.samples.len());
}

#[test]
fn firefox_tables_refer_to_what_is_there() {
    let (read, rows) = fixture();
    let mark = Mark {
        at_ns: read.samples[3].at.as_ns(),
        text: "eth0 was reset".into(),
    };
    let mut out = Vec::new();
    firefox::write(&mut out, "name", &rows, &read.tables, &[mark]).unwrap();
    let json: Value = serde_json::from_slice(&out).unwrap();
    let mut n = 0;
    for thread in json["threads"].as_array().unwrap() {
        for table in [
            "samples",
            "markers",
            "frameTable",
            "funcTable",
            "stackTable",
        ] {
            let length = thread[table]["length"].as_u64().unwrap();
            for (name, column) in thread[table].as_object().unwrap() {
                if let Some(column) = column.as_array() {
                    assert_eq!(column.len() as u64, length, "{table}.{name}");
                }
            }
        }
        let column = |table: &str, name: &str| thread[table][name].as_array().unwrap().clone();
        let below = |values: Vec<Value>, table: &str| {
            let length = thread[table]["length"].as_u64().unwrap();
            values.iter().filter_map(Value::as_u64).all(|n| n < length)
        };
        assert!(below(column("samples", "stack"), "stackTable"));
        assert!(below(column("stackTable", "prefix"), "stackTable"));
        assert!(below(column("stackTable", "frame"), "frameTable"));
        assert!(below(column("frameTable", "func"), "funcTable"));
        let n_strings = thread["stringArray"].as_array().unwrap().len() as u64;
        let names = column("funcTable", "name");
        assert!(
            names
                .iter()
                .filter_map(Value::as_u64)
                .all(|n| n < n_strings)
        );
        n += thread["samples"]["length"].as_u64().unwrap();
        assert_eq!(thread["markers"]["length"], 1);
    }
    assert_eq!(n, read.samples.len() as u64);
}

#[test]
fn pages_and_pictures_load_nothing_and_hold_hostile_names() {
    let text = b"a</script><script>alert(1)</script>;b\"onload=\"x;c&<d> 5\n";
    let read = read(&[text]);
    let mut counts = StackCounts::new(all());
    ask(&read, &mut counts);
    let tree = Tree::of(&counts, &read.tables, Suffixes::default());
    let (mut page, mut picture) = (Vec::new(), Vec::new());
    html::write(&mut page, "t<i>tle", &tree, false).unwrap();
    svg::write(&mut picture, "t<i>tle", &tree, false).unwrap();
    let page = String::from_utf8(page).unwrap();
    let picture = String::from_utf8(picture).unwrap();
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("t<i>tle"));
    assert!(!picture.contains("<script") && !picture.contains("t<i>tle"));
    assert!(picture.contains("c&amp;&lt;d&gt;"));
}
