//! What the page shows, worked out once for each reading of the bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use sexton_lake::column;

use crate::bucket::Bucket;
use crate::lake::{self, AllSets, Attribute, Hours, Lake, Nodes, Read, digests_of};

/// A node without a value of a column.
pub(super) const NONE: u32 = u32::MAX;

/// Values of a column of texts, and the last that each node had.
pub(super) struct Column {
    pub(super) values: Vec<Arc<str>>,
    pub(super) of_node: Vec<u32>,
}

/// What the page shows.
pub(super) struct View {
    read: Read,
    pub(super) url: String,
    pub(super) read_at_us: i64,
    /// How many hours were asked for.
    pub(super) n_hours: u64,
    pub(super) hours: Hours,
    pub(super) columns: BTreeMap<String, Column>,
}

impl View {
    /// Reads a bucket.
    pub(super) fn read_bucket(bucket: &Bucket, n_hours: u64, now_us: i64) -> Result<Self> {
        let (mut lake, nodes) = lake::read(bucket, n_hours, now_us)?;
        let sets = AllSets::fetch(bucket, &digests_of(&nodes), &mut lake.problems)?;
        let hours = Hours::of(&lake).context("cannot read findings")?;
        Ok(Self {
            url: bucket.url().to_owned(),
            read_at_us: now_us,
            n_hours,
            hours,
            columns: columns_of(&nodes),
            read: Read { lake, nodes, sets },
        })
    }

    /// All that was read.
    pub(super) fn read(&self) -> &Read {
        &self.read
    }

    /// The name of each node.
    pub(super) fn names(&self) -> &[String] {
        &self.read.nodes.names
    }

    /// Its reports, and what was wrong with the bucket.
    pub(super) fn lake(&self) -> &Lake {
        &self.read.lake
    }
}

/// Columns that nodes can be chosen and grouped by.
fn columns_of(nodes: &Nodes) -> BTreeMap<String, Column> {
    let n_nodes = nodes.names.len();
    let named = nodes
        .attributes
        .iter()
        .filter(|(name, _)| !matches!(&***name, column::UNIT_SET | column::SOFTWARE_SET));
    named
        .map(|(name, attribute)| (name.clone(), last_of(attribute, n_nodes)))
        .collect()
}

fn last_of(attribute: &Attribute, n_nodes: usize) -> Column {
    let mut of_node = vec![NONE; n_nodes];
    // By node and time: the last change of a node stays.
    for change in &attribute.changes {
        of_node[change.node as usize] = change.value;
    }
    Column {
        values: attribute.values.clone(),
        of_node,
    }
}
