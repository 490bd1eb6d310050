//! `fleet sql`: SQL on the reports of a time.

use std::io::Write;

use anyhow::Result;
use datafusion::arrow::array::{Array as _, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Map, Value};

use super::{LakeArgs, TimeArgs};
use crate::lake::{self, AllSets, digests_of};
use crate::show;
use crate::sql::Engine;

#[derive(Debug, clap::Args)]
pub(crate) struct SqlArgs {
    /// One statement: SELECT zone, count(*) FROM reports GROUP BY zone
    query: String,
    #[command(flatten)]
    lake: LakeArgs,
    #[command(flatten)]
    time: TimeArgs,
}

pub(super) fn run(args: &SqlArgs, out: &mut dyn Write) -> Result<u8> {
    let bucket = args.lake.bucket()?;
    let (mut lake, nodes) = lake::read(&bucket, args.time.since, args.time.now_us())?;
    let sets = AllSets::fetch(&bucket, &digests_of(&nodes), &mut lake.problems)?;
    let engine = Engine::new(&lake, bucket.runtime(), &args.query)?.with_sets(&sets)?;
    let batches = engine.run(&args.query)?;
    let (names, rows) = rows_of(&batches)?;
    if args.lake.json {
        let objects = rows.iter().map(|row| {
            let cells = names.iter().cloned().zip(row.iter().cloned());
            Value::Object(cells.collect::<Map<String, Value>>())
        });
        let objects: Vec<Value> = objects.collect();
        serde_json::to_writer_pretty(&mut *out, &objects)?;
        writeln!(out)?;
        return Ok(0);
    }
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(text).collect())
        .collect();
    show::table(out, &names, &rows)?;
    show::problems(out, &lake.problems)?;
    Ok(0)
}

fn rows_of(batches: &[RecordBatch]) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
    let fields = batches.first().map(|batch| batch.schema());
    let names = fields.iter().flat_map(|schema| {
        let fields = schema.fields().iter();
        fields.map(|field| field.name().clone()).collect::<Vec<_>>()
    });
    let names = names.collect();
    let mut rows = Vec::new();
    for batch in batches {
        let options = FormatOptions::default();
        let columns = batch.columns().iter();
        let columns = columns
            .map(|column| Ok((column, ArrayFormatter::try_new(column.as_ref(), &options)?)))
            .collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|(column, format)| {
                if column.is_null(row) {
                    return Value::Null;
                }
                let text = format.value(row).to_string();
                match is_number(column.data_type()) {
                    true => serde_json::from_str(&text).unwrap_or(Value::String(text)),
                    false => Value::String(text),
                }
            });
            rows.push(cells.collect());
        }
    }
    Ok((names, rows))
}

fn is_number(kind: &DataType) -> bool {
    kind.is_numeric() || matches!(kind, DataType::Boolean)
}
