//! SQL of users: it only reads, and a condition is a condition.

use std::path::Path;

use serde_json::Value;

use crate::support::*;

fn run(lake: &Path, query: &str) -> (i32, String) {
    let output = fleet(&["sql", query, "--json", "--lake", lake.to_str().unwrap()]);
    (output.status.code().unwrap(), stderr(&output))
}

fn compared(lake: &Path, bad: &str) -> Value {
    let (_, answer) = compare(lake, &["--bad", bad]);
    answer
}

#[test]
fn sql_only_reads() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 40, 2, 1, "founding");
    let copy = lake.path().join("copy.csv");
    let secret = lake.path().join("secret.csv");
    std::fs::write(&secret, "name\nhidden\n").unwrap();
    let (copy_to, secret) = (copy.to_str().unwrap(), secret.to_str().unwrap());
    for query in [
        format!("COPY reports TO '{copy_to}' STORED AS CSV"),
        format!("CREATE EXTERNAL TABLE secret STORED AS CSV LOCATION '{secret}'"),
        "CREATE TABLE more AS SELECT * FROM reports".to_owned(),
        "DROP TABLE reports".to_owned(),
        "INSERT INTO sets VALUES ('a', 'b', 'c', 'd')".to_owned(),
        "SET datafusion.execution.batch_size = 1".to_owned(),
        format!("EXPLAIN ANALYZE COPY reports TO '{copy_to}' STORED AS CSV"),
    ] {
        let (exit, why) = run(lake.path(), &query);
        assert_eq!(exit, 2, "{query}");
        assert!(why.contains("not supported"), "{query}: {why}");
    }
    assert!(!copy.exists());
    assert_eq!(run(lake.path(), &format!("SELECT * FROM '{secret}'")).0, 2);
    assert_eq!(run(lake.path(), "EXPLAIN SELECT node FROM reports").0, 0);
}

#[test]
fn a_condition_is_one_expression() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 400, 2, 1, "founding");
    let url = lake.path().to_str().unwrap();
    let union = "false) GROUP BY node_number UNION ALL SELECT arrow_cast(4000000000,'UInt32'), \
                 CAST(0 AS BIGINT) FROM reports WHERE (true";
    for bad in [union, "true) OR (true", "true; DROP TABLE reports", ""] {
        let output = fleet(&["compare", "--lake", url, "--bad", bad]);
        assert_eq!(output.status.code(), Some(2), "{bad}");
        assert!(
            stderr(&output).contains("as a condition on reports"),
            "{bad}: {}",
            stderr(&output)
        );
    }
    let plain = compared(lake.path(), "nic_resets > 0");
    let said = compared(lake.path(), "nic_resets > 0 -- the NIC was reset");
    assert_eq!(plain["differences"], said["differences"]);
    let of_findings = compared(
        lake.path(),
        "node IN (SELECT node FROM findings WHERE code = 'NIC001')",
    );
    assert!(of_findings["bad"].as_u64() > Some(0), "{of_findings}");
}

#[test]
fn words_in_texts_are_no_columns() {
    let lake = tempfile::tempdir().unwrap();
    simulate(lake.path(), 400, 2, 1, "founding");
    let zone = compared(lake.path(), "zone = 'us-east-1a'");
    let words = "zone = 'us-east-1a' OR zone = 'image-kernel-os-severity'";
    let said = compared(lake.path(), words);
    assert_eq!(said["tests"], zone["tests"]);
    assert_eq!(said["differences"], zone["differences"]);
    // Columns may be written in capitals.
    let rank = compared(lake.path(), "severity_rank >= 3");
    let capitals = compared(lake.path(), "SEVERITY_RANK >= 3");
    assert_eq!(rank["differences"], capitals["differences"]);
}
