//! SQL on reports, by DataFusion in memory. Files are read by our own reader, so that SQL and
//! comparisons count the same rows, and damaged files cost both the same.

mod condition;
mod jobs;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use datafusion::arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    UInt32Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit, UInt32Type};
use datafusion::catalog::MemTable;
use datafusion::execution::context::SQLOptions;
use datafusion::prelude::{SessionConfig, SessionContext};
use sexton_lake::{LakeError, TextColumn, column};
use tokio::runtime::Runtime;

use crate::lake::{AllSets, Group, JOBS_FAILED, JOBS_SUCCEEDED, Lake, NO_NODE};
use crate::parallel;
pub use condition::classes;
use jobs::{JobsOfReports, table_of_jobs};

/// The number of a node, for our own questions.
const NODE_NUMBER: &str = "node_number";
const UTC: &str = "+00:00";

/// Columns that views and questions need.
const ALWAYS: &[&str] = &[
    column::NODE,
    column::BOOT,
    column::AT,
    column::KIND,
    column::UNIT_SET,
    column::SOFTWARE_SET,
    column::SEVERITY_RANK,
];

/// An engine over the reports of a lake.
pub struct Engine<'a> {
    context: SessionContext,
    runtime: &'a Runtime,
}

/// Whether a column is needed for a text of SQL: names that it does not have need not be read.
fn is_named(sql: &str) -> impl Fn(&str) -> bool + Sync {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = sql.split(|c: char| !is_word(c));
    let words: BTreeSet<String> = words.map(str::to_ascii_lowercase).collect();
    let all = sql.contains('*');
    move |name| all || ALWAYS.contains(&name) || words.contains(&name.to_ascii_lowercase())
}

impl<'a> Engine<'a> {
    /// With the columns that a text of SQL names.
    pub fn new(lake: &Lake, runtime: &'a Runtime, sql: &str) -> Result<Self> {
        let config = SessionConfig::new().with_target_partitions(parallel::n_threads());
        let context = SessionContext::new_with_config(config);
        let is_named = is_named(sql);
        let columns = Columns::of(lake, &is_named);
        for (name, reports) in [("reports", true), ("findings", false)] {
            let table = columns.table(lake, reports)?;
            context
                .register_table(name, Arc::new(table))
                .context("cannot set up SQL")?;
        }
        context
            .register_table("jobs", Arc::new(table_of_jobs(&lake.jobs)?))
            .context("cannot set up SQL")?;
        Ok(Self { context, runtime })
    }

    /// Adds the table of sets, and the views on it.
    pub fn with_sets(self, sets: &AllSets) -> Result<Self> {
        let rows = sets.rows();
        let columns = ["set", "kind", "item", "value"];
        let fields = columns.map(|name| Field::new(name, DataType::Utf8, true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.to_vec()));
        let column = |at: usize| -> ArrayRef {
            let texts = rows.iter().map(|row| row[at].as_str());
            Arc::new(StringArray::from_iter_values(texts))
        };
        let batch = RecordBatch::try_new(schema.clone(), (0..4).map(column).collect())?;
        let table = MemTable::try_new(schema, vec![vec![batch]])?;
        self.context.register_table("sets", Arc::new(table))?;
        for view in crate::commands::views_of_tables() {
            let create = self.context.sql(&view);
            self.runtime.block_on(create).context("cannot set up SQL")?;
        }
        Ok(self)
    }

    /// Runs one statement that only reads.
    pub fn run(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let run = async {
            let frame = self.context.sql_with_options(sql, only_reads()).await?;
            frame.collect().await
        };
        self.runtime
            .block_on(run)
            .with_context(|| format!("cannot run {sql:?}"))
    }
}

/// No statement may write a file, read one that is not of the bucket, or set an option.
fn only_reads() -> SQLOptions {
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
}

/// The columns of all files together.
struct Columns {
    texts: Vec<String>,
    numbers: Vec<String>,
    times: Vec<String>,
}

impl Columns {
    fn of(lake: &Lake, is_named: &dyn Fn(&str) -> bool) -> Self {
        // What docs/fleet.md lists is there, even if no node says it: a fleet without systemd
        // has no units, and a query for them no rows.
        let known = |names: &[&str]| -> BTreeSet<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let mut texts = known(&[column::ATTRIBUTES, column::OTHER_TEXT].concat());
        let mut numbers = known(column::OTHER_NUMBERS);
        numbers.extend([JOBS_SUCCEEDED, JOBS_FAILED].map(str::to_owned));
        let mut times = known(column::TIMES);
        for group in &lake.claimed.groups {
            texts.extend(group.file.text_columns().map(str::to_owned));
            numbers.extend(group.file.number_columns().map(str::to_owned));
            times.extend(group.file.time_columns().map(str::to_owned));
        }
        // A name has one type: that of the first of these.
        numbers.retain(|name| !texts.contains(name));
        times.retain(|name| !texts.contains(name) && !numbers.contains(name));
        let named = |names: BTreeSet<String>| -> Vec<String> {
            names.into_iter().filter(|name| is_named(name)).collect()
        };
        Self {
            texts: named(texts),
            numbers: named(numbers),
            times: named(times),
        }
    }

    fn schema(&self) -> SchemaRef {
        let text = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
        let time = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
        let of = |names: &[String], kind: &DataType| -> Vec<Field> {
            let fields = names
                .iter()
                .map(|name| Field::new(name, kind.clone(), true));
            fields.collect()
        };
        let mut fields = of(&self.texts, &text);
        fields.extend(of(&self.numbers, &DataType::Float64));
        fields.extend(of(&self.times, &time));
        fields.push(Field::new(NODE_NUMBER, DataType::UInt32, false));
        Arc::new(Schema::new(fields))
    }

    fn table(&self, lake: &Lake, reports: bool) -> Result<MemTable> {
        let schema = self.schema();
        let jobs = JobsOfReports::of(lake);
        let batches = parallel::map(&lake.claimed.groups, |group| {
            self.batch(&schema, group, reports, &jobs)
        });
        let batches = batches.into_iter().collect::<Result<Vec<_>>>()?;
        let partitions = batches.into_iter().map(|batch| vec![batch]).collect();
        Ok(MemTable::try_new(schema, partitions)?)
    }

    fn batch(
        &self,
        schema: &SchemaRef,
        group: &Group,
        reports: bool,
        jobs: &JobsOfReports,
    ) -> Result<RecordBatch> {
        let rows: Vec<usize> = (0..group.nodes.len())
            .filter(|row| group.nodes[*row] != NO_NODE && group.is_report[*row] == reports)
            .collect();
        let (file, at) = (&group.file, group.group);
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for name in &self.texts {
            arrays.push(text_array(&file.texts(at, name)?, &rows)?);
        }
        for name in &self.numbers {
            if matches!(&**name, JOBS_SUCCEEDED | JOBS_FAILED) {
                let numbers = rows.iter().map(|row| jobs.number(name, group, *row));
                arrays.push(Arc::new(numbers.collect::<Float64Array>()));
                continue;
            }
            let numbers = file.numbers(at, name)?;
            let numbers = rows
                .iter()
                .map(|row| Some(numbers[*row]).filter(|n| !n.is_nan()));
            arrays.push(Arc::new(numbers.collect::<Float64Array>()));
        }
        for name in &self.times {
            let times = file.times(at, name)?;
            let times = rows.iter().map(|row| times[*row]);
            let times: TimestampMicrosecondArray = times.collect();
            arrays.push(Arc::new(times.with_timezone(UTC)));
        }
        let nodes = rows.iter().map(|row| group.nodes[*row]);
        arrays.push(Arc::new(UInt32Array::from_iter_values(nodes)));
        Ok(RecordBatch::try_new(schema.clone(), arrays)?)
    }
}

fn text_array(texts: &TextColumn, rows: &[usize]) -> Result<ArrayRef, anyhow::Error> {
    let ids = rows.iter().map(|row| {
        let id = texts.ids[*row];
        (id != TextColumn::NONE).then_some(id)
    });
    let ids: UInt32Array = ids.collect();
    let values = texts.values.iter().map(|text| &**text);
    let values = StringArray::from_iter_values(values);
    let array = DictionaryArray::<UInt32Type>::try_new(ids, Arc::new(values))
        .map_err(|error| LakeError::Malformed(error.to_string()))?;
    Ok(Arc::new(array))
}
