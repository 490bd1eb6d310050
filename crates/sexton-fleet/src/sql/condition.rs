//! Conditions on reports, which say which nodes are bad and which are good.
//!
//! A condition is parsed as one expression, and that takes the place of the condition of a query of
//! ours: as text in that query it could end the condition and go on with a query of its own.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use datafusion::arrow::array::{Int64Array, RecordBatch, UInt32Array};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement as Parsed};
use sexton_lake::column;
use tokio::runtime::Runtime;

use super::{Engine, only_reads};
use crate::lake::Lake;
use crate::question::Classes;

/// What is asked; the condition takes the place of `true`.
const QUERY: &str =
    "SELECT node_number, CAST(min(at) AS BIGINT) FROM reports WHERE true GROUP BY node_number";

/// Where a condition holds, and what it asks for.
struct Held {
    /// Nodes that it holds for in any report, and when first.
    first: Vec<(u32, i64)>,
    /// The columns that it names.
    columns: BTreeSet<String>,
}

/// Which nodes are bad and good by conditions of SQL on their reports: a node is bad if any
/// report is, and good if it is not bad and any report says so.
pub fn classes(lake: &Lake, runtime: &Runtime, bad: &str, good: Option<&str>) -> Result<Classes> {
    let named = format!("{bad} {}", good.unwrap_or_default());
    let engine = Engine::new(lake, runtime, &named)?;
    let n_nodes = lake.claimed.names.len();
    let bad = engine.held(bad)?;
    let good = good.map(|good| engine.held(good)).transpose()?;
    let severity = [column::SEVERITY, column::SEVERITY_RANK];
    let mut classes = Classes {
        bad_at: vec![None; n_nodes],
        is_good: vec![good.is_none(); n_nodes],
        asked_severity: severity.iter().any(|name| bad.columns.contains(*name)),
        asked: bad.columns.into_iter().collect(),
    };
    for (node, at) in bad.first {
        classes.bad_at[node as usize] = Some(at);
    }
    if let Some(good) = good {
        for (node, _) in good.first {
            classes.is_good[node as usize] = true;
        }
        classes.asked.extend(good.columns);
    }
    Ok(classes)
}

impl Engine<'_> {
    fn held(&self, condition: &str) -> Result<Held> {
        let run = async {
            let plan = self.plan_of(condition).await?;
            let columns = columns_of(&plan)?;
            let frame = self.context.execute_logical_plan(plan).await?;
            Ok::<_, DataFusionError>((frame.collect().await?, columns))
        };
        let (batches, columns) = self
            .runtime
            .block_on(run)
            .with_context(|| format!("cannot use {condition:?} as a condition on reports"))?;
        Ok(Held {
            first: rows_of(&batches)?,
            columns,
        })
    }

    async fn plan_of(&self, condition: &str) -> Result<LogicalPlan, DataFusionError> {
        let state = self.context.state();
        let dialect = state.config().options().sql_parser.dialect;
        let mut query = state.sql_to_statement(QUERY, &dialect)?;
        if let Some(place) = place_of_condition(&mut query) {
            *place = state.sql_to_expr(condition, &dialect)?;
        }
        let plan = state.statement_to_plan(query).await?;
        only_reads().verify_plan(&plan)?;
        Ok(plan)
    }
}

fn place_of_condition(query: &mut Statement) -> Option<&mut Expr> {
    let Statement::Statement(parsed) = query else {
        return None;
    };
    let Parsed::Query(query) = &mut **parsed else {
        return None;
    };
    match &mut *query.body {
        SetExpr::Select(select) => select.selection.as_mut(),
        _ => None,
    }
}

/// The columns that conditions of a plan name; those of queries in a condition, too.
fn columns_of(plan: &LogicalPlan) -> Result<BTreeSet<String>, DataFusionError> {
    let mut columns = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Filter(filter) = node {
            let named = filter.predicate.column_refs();
            columns.extend(named.into_iter().map(|column| column.name.clone()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(columns)
}

fn rows_of(batches: &[RecordBatch]) -> Result<Vec<(u32, i64)>> {
    let mut found = Vec::new();
    for batch in batches {
        let nodes = batch.column(0).as_any().downcast_ref::<UInt32Array>();
        let times = batch.column(1).as_any().downcast_ref::<Int64Array>();
        let (Some(nodes), Some(times)) = (nodes, times) else {
            bail!("DataFusion returned columns of unexpected types");
        };
        let times = times.values().iter().copied();
        found.extend(nodes.values().iter().copied().zip(times));
    }
    Ok(found)
}
