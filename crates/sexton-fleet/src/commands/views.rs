//! `fleet views`: the same tables for other engines.

use std::io::Write;

use anyhow::{Context as _, Result};
use clap::ValueEnum;

#[derive(Debug, clap::Args)]
pub(crate) struct ViewsArgs {
    /// The engine
    #[arg(long, default_value = "datafusion")]
    dialect: Dialect,
    /// The bucket with the reports: a folder, file://, s3://, gs:// or az://
    #[arg(long, value_name = "URL", env = "SEXTON_LAKE")]
    lake: Option<String>,
    /// With the view of jobs: for a bucket to which jobs were imported
    #[arg(long)]
    jobs: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Dialect {
    Datafusion,
    Spark,
    Clickhouse,
    Duckdb,
    Trino,
}

pub(super) fn run(args: &ViewsArgs, out: &mut dyn Write) -> Result<u8> {
    let url = args.lake.as_deref();
    let url = url.context("no bucket given: add --lake URL, or set SEXTON_LAKE")?;
    let statements = statements(args.dialect, url.trim_end_matches('/'), args.jobs);
    if args.json {
        serde_json::to_writer_pretty(&mut *out, &statements)?;
        writeln!(out)?;
        return Ok(0);
    }
    for statement in statements {
        writeln!(out, "{statement};\n")?;
    }
    Ok(0)
}

fn statements(dialect: Dialect, url: &str, with_jobs: bool) -> Vec<String> {
    let mut statements = base_tables(dialect, url);
    if !with_jobs {
        statements.retain(|statement| !statement.contains("sexton_jobs"));
    }
    let quote = |name: &str| match dialect {
        Dialect::Spark => format!("`{name}`"),
        _ => format!("\"{name}\""),
    };
    let set = quote("set");
    let value = quote("value");
    let at = quote("at");
    statements.extend([
        format!("CREATE VIEW reports AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY node, boot, {at} ORDER BY {at}) AS copy_number FROM sexton_rows WHERE kind = 'report') AS numbered WHERE copy_number = 1"),
        format!("CREATE VIEW findings AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY node, boot, {at}, finding ORDER BY {at}) AS copy_number FROM sexton_rows WHERE kind = 'finding') AS numbered WHERE copy_number = 1"),
        format!("CREATE VIEW sets AS SELECT DISTINCT {set}, kind, item, {value} FROM sexton_sets"),
    ]);
    statements.extend(views(&set, &value, &at));
    if with_jobs {
        statements.push("CREATE VIEW jobs AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY source, job, ended, node ORDER BY ended) AS copy_number FROM sexton_jobs) AS numbered WHERE copy_number = 1".to_owned());
    }
    if dialect == Dialect::Spark {
        // There, a lasting view must not use one that is not.
        for statement in &mut statements {
            *statement = statement.replacen("CREATE VIEW", "CREATE TEMPORARY VIEW", 1);
        }
    }
    statements
}

/// Where the files are: what differs most between engines.
fn base_tables(dialect: Dialect, url: &str) -> Vec<String> {
    let url = url.replace('\'', "''");
    let path = match dialect {
        // They read paths as such.
        Dialect::Duckdb | Dialect::Clickhouse | Dialect::Datafusion => {
            url.strip_prefix("file://").unwrap_or(&url)
        }
        _ => &url,
    };
    let is_cloud = path.contains("://");
    match dialect {
        Dialect::Duckdb => vec![
            format!(
                "CREATE VIEW sexton_rows AS SELECT * FROM read_parquet('{path}/day=*/*.parquet', union_by_name = true, hive_partitioning = true)"
            ),
            format!(
                "CREATE VIEW sexton_sets AS SELECT * FROM read_parquet('{path}/sets/*.parquet')"
            ),
            format!(
                "CREATE VIEW sexton_jobs AS SELECT * FROM read_parquet('{path}/jobs/day=*/*.parquet', union_by_name = true)"
            ),
        ],
        Dialect::Clickhouse => {
            let source = if is_cloud { "s3" } else { "file" };
            vec![
                format!(
                    "CREATE VIEW sexton_rows AS SELECT * FROM {source}('{path}/day=*/*.parquet', 'Parquet') SETTINGS schema_inference_mode = 'union'"
                ),
                format!(
                    "CREATE VIEW sexton_sets AS SELECT * FROM {source}('{path}/sets/*.parquet', 'Parquet')"
                ),
                format!(
                    "CREATE VIEW sexton_jobs AS SELECT * FROM {source}('{path}/jobs/day=*/*.parquet', 'Parquet') SETTINGS schema_inference_mode = 'union'"
                ),
            ]
        }
        Dialect::Spark => vec![
            format!(
                "CREATE TEMPORARY VIEW sexton_rows USING parquet OPTIONS (path '{path}/day=*', basePath '{path}', mergeSchema 'true')"
            ),
            format!("CREATE TEMPORARY VIEW sexton_sets USING parquet OPTIONS (path '{path}/sets')"),
            format!(
                "CREATE TEMPORARY VIEW sexton_jobs USING parquet OPTIONS (path '{path}/jobs/day=*', basePath '{path}/jobs', mergeSchema 'true')"
            ),
        ],
        Dialect::Datafusion => tables_of_datafusion(path, is_cloud),
        Dialect::Trino => vec![format!(
            "-- in a Hive or Iceberg catalog: a table sexton_rows over {path}/ partitioned by day,\n-- and a table sexton_sets over {path}/sets/, both STORED AS PARQUET with columns by name"
        )],
    }
}

fn tables_of_datafusion(path: &str, is_cloud: bool) -> Vec<String> {
    // A pattern holds for the names of files below `day=…`, and leaves out all other folders. A URL of a
    // cloud can have none; there it passes over folders without `=` by itself.
    let files = if is_cloud { "" } else { "*.parquet" };
    vec![
        format!(
            "CREATE EXTERNAL TABLE sexton_rows STORED AS PARQUET PARTITIONED BY (day) LOCATION '{path}/{files}'"
        ),
        format!(
            "CREATE EXTERNAL TABLE sexton_sets STORED AS PARQUET LOCATION '{path}/sets/{files}'"
        ),
        format!(
            "CREATE EXTERNAL TABLE sexton_jobs STORED AS PARQUET PARTITIONED BY (day) LOCATION '{path}/jobs/{files}'"
        ),
    ]
}

/// Views on `reports`, `findings` and `sets`, in SQL that all engines take.
fn views(set: &str, value: &str, at: &str) -> Vec<String> {
    vec![
        format!(
            "CREATE VIEW units AS SELECT reports.node AS node, reports.boot AS boot, reports.{at} AS {at}, sets.item AS unit, sets.{value} AS state FROM reports JOIN sets ON reports.unit_set = sets.{set} WHERE sets.kind = 'unit'"
        ),
        format!(
            "CREATE VIEW software AS SELECT reports.node AS node, reports.boot AS boot, reports.{at} AS {at}, sets.kind AS kind, sets.item AS item, sets.{value} AS version FROM reports JOIN sets ON reports.software_set = sets.{set}"
        ),
        format!(
            "CREATE VIEW nodes AS SELECT node, count(*) AS n_reports, min({at}) AS first_at, max({at}) AS last_at, max(severity_rank) AS severity_rank FROM reports GROUP BY node"
        ),
    ]
}

/// The views that SQL of our own has: tables are there already, each report once.
pub(crate) fn views_of_tables() -> Vec<String> {
    views("\"set\"", "\"value\"", "\"at\"")
}

#[cfg(test)]
mod tests {
    use datafusion::datasource::listing::ListingTableUrl;
    use object_store::path::Path;

    use super::*;

    /// The files of a bucket that each table of DataFusion takes.
    fn taken(url: &str, folder: &str) -> Vec<String> {
        let files = [
            "day=2026-11-17/13-web7-5f2a.parquet",
            "sets/5f2a.parquet",
            "jobs/day=2026-11-17/ray-5f2a.parquet",
        ];
        let tables = base_tables(Dialect::Datafusion, url)
            .into_iter()
            .map(|table| {
                let (_, location) = table.split_once("LOCATION '").unwrap();
                let location = ListingTableUrl::parse(location.trim_end_matches('\'')).unwrap();
                assert!(location.is_collection(), "{table}");
                let is_taken =
                    |file: &&str| location.contains(&Path::from(format!("{folder}{file}")), true);
                let files: Vec<&str> = files.iter().copied().filter(is_taken).collect();
                files.join(" ")
            });
        tables.collect()
    }

    #[test]
    fn each_table_of_datafusion_takes_its_own_files() {
        let expected = [
            "day=2026-11-17/13-web7-5f2a.parquet",
            "sets/5f2a.parquet",
            "jobs/day=2026-11-17/ray-5f2a.parquet",
        ];
        assert_eq!(taken("/srv/lake", "srv/lake/"), expected);
        assert_eq!(taken("file:///srv/lake", "srv/lake/"), expected);
        assert_eq!(taken("s3://reports/prod", "prod/"), expected);
        let rows = base_tables(Dialect::Datafusion, "/srv/lake").remove(0);
        let (_, location) = rows.split_once("LOCATION '").unwrap();
        let location = ListingTableUrl::parse(location.trim_end_matches('\'')).unwrap();
        assert!(!location.contains(&Path::from("srv/lake/truth.json"), true));
    }
}
