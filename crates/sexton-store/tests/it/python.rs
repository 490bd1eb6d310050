//! DuckDB and pandas read a bundle as it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use sexton_model::fact::exit::{PROCESS_FAILED, ProcessExit};
use sexton_model::gap::Why;

use crate::support::*;

/// Both read all segments, and must see the same.
const SCRIPT: &str = r#"
import glob, json, sys
import duckdb, pandas
pattern = sys.argv[1] + "/records/*.parquet"
files = sorted(glob.glob(pattern))
frame = pandas.concat([pandas.read_parquet(file) for file in files])
def sql(query):
    query = query.replace("BUNDLE", f"'{pattern}'")
    return duckdb.connect().execute(query).fetchone()[0]
events = frame[frame.kind == "event"]
samples = frame[frame.kind == "sample"]
polls = frame[frame.fact == "sexton_poll_ns"]
gaps = frame[frame.kind == "gap"]
print(json.dumps({
    "columns": list(frame.columns),
    "pandas": [len(frame), float(polls.value.sum()), int(frame.time_ns.max()),
               str(json.loads(events.details.iloc[0])["exit_code"]), gaps.gap_why.iloc[0],
               int(samples.wall_ns.max()), int(frame.value.isna().sum())],
    "duckdb": [sql("SELECT count(*) FROM BUNDLE"), sql("SELECT sum(value) FROM BUNDLE WHERE fact = 'sexton_poll_ns'"),
               sql("SELECT max(time_ns) FROM BUNDLE"),
               sql("SELECT details ->> 'exit_code' FROM BUNDLE WHERE kind = 'event'"),
               sql("SELECT gap_why FROM BUNDLE WHERE kind = 'gap'"),
               sql("SELECT max(wall_ns) FROM BUNDLE WHERE kind = 'sample'"),
               sql("SELECT count(*) FROM BUNDLE WHERE value IS NULL")],
}))
"#;

/// The interpreter that `cargo xtask test setup` prepares.
fn python() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let python = target.join("python/bin/python");
    let imports = Command::new(&python)
        .args(["-c", "import duckdb, pandas, pyarrow"])
        .output();
    match imports {
        Ok(output) if output.status.success() => python,
        Ok(_) => panic!(
            "sexton-missing: python: it has no duckdb, pandas and pyarrow; run cargo xtask test setup"
        ),
        Err(_) => panic!("sexton-missing: python: none was prepared; run cargo xtask test setup"),
    }
}

#[test]
fn duckdb_and_pandas_read_a_bundle() {
    let python = python();
    let dir = tempfile::tempdir().unwrap();
    let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
    // 2^60 and so many nanoseconds have a floating-point form of their own.
    let boot_wall_ns = 1_u64 << 60;
    writer
        .append(&[sample(1024, "/a", WALL, (boot_wall_ns + 1024) as f64)])
        .unwrap();
    for i in 0..40_000 {
        writer
            .append(&[sample(2000 + i, "/a", POLL, i as f64)])
            .unwrap();
    }
    let exit = ProcessExit {
        exit_code: Some(137),
        unit: Some("ü\"\n".into()),
        ..ProcessExit::default()
    };
    let exit = happened(50_000, &PROCESS_FAILED, exit);
    writer
        .append(&[exit, gap(50_001, "test", Why::Lost(5))])
        .unwrap();
    let summary = writer.finish(at(60_000)).unwrap();
    assert!(summary.segments >= 1);
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen["pandas"], seen["duckdb"]);
    let seen = &seen["duckdb"];
    assert_eq!(seen[0], 40_003);
    assert_eq!(seen[1], (0..40_000).sum::<u64>() as f64);
    assert_eq!(seen[2], 50_001);
    assert_eq!(seen[3], "137");
    assert_eq!(seen[4], "lost 5");
    assert_eq!(seen[5], boot_wall_ns + 41_999);
    assert_eq!(seen[6], 2);
}

/// The statements of the manual, as they stand there.
fn documented(bundle: &Path) -> Vec<String> {
    let page = include_str!("../../../../docs/recording.md");
    let blocks = page.split("```sql\n").skip(1);
    let statements = blocks.filter_map(|block| block.split("```").next());
    statements
        .map(|sql| sql.replace("FOLDER", &bundle.display().to_string()))
        .collect()
}

#[test]
fn duckdb_joins_stacks_as_the_manual_says() {
    const SCRIPT: &str = r#"
import json, sys
import duckdb
print(json.dumps([duckdb.connect().execute(sql).fetchall() for sql in sys.argv[1:]]))
"#;
    let python = python();
    let dir = tempfile::tempdir().unwrap();
    // Two segments, whose numbers overlap.
    for i in 0..2 {
        let mut writer = create(dir.path(), limits(64 << 20), 0).unwrap();
        let (samples, tables) = crate::stacks::busy_stacks(1 + i * 1000, 1000);
        writer.append_stacks(&samples, &tables).unwrap();
        writer.finish(at(u64::MAX)).unwrap();
    }
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .args(documented(dir.path()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let (mut leaves, mut stacks) = (BTreeMap::new(), BTreeMap::new());
    let (samples, tables) = crate::stacks::busy_stacks(1, 2000);
    for sample in &samples {
        let frames: Vec<_> = tables.frames_of(sample.stack).collect();
        let name = |frame| tables.name(tables.frame(frame).unwrap().symbol.unwrap());
        let mut names: Vec<&str> = frames.into_iter().map(name).collect();
        if sample.state != sexton_model::stack::CoreState::Idle {
            let key = (tables.name(sample.comm).to_owned(), names[0].to_owned());
            *leaves.entry(key).or_insert(0_u64) += 1;
        }
        names.reverse();
        *stacks.entry(names.join(";")).or_insert(0_u64) += 1;
    }
    let rows = |i: usize| seen[i].as_array().unwrap().iter();
    assert_eq!((rows(0).count(), rows(1).count()), (20, 12));
    for row in rows(0) {
        let text = |i: usize| row[i].as_str().unwrap().to_owned();
        assert_eq!(row[2], leaves[&(text(0), text(1))], "{row}");
    }
    for row in rows(1) {
        assert_eq!(row[1], stacks[row[0].as_str().unwrap()], "{row}");
    }
}
