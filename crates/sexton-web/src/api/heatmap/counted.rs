//! Counts the picture of a heat map and the parts that one can choose from.

use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::filter::Filter;
use sexton_profile::flame::StackCounts;
use sexton_profile::heatmap::facets::{By, Facets};
use sexton_profile::heatmap::{Grid, Shape};
use sexton_profile::import::Sink;
use sexton_profile::top;

use super::{Asked, Part, PartView, View};

/// Parts that are told.
const MAX_PARTS: usize = 100;

/// Characters of a container's id that are shown.
const SHORT_ID: usize = 12;

/// The picture and its parts, counted at once.
pub(super) struct Counted {
    pub(super) grids: Facets,
    facets: Option<Facets>,
    functions: Option<StackCounts>,
}

impl Counted {
    pub(super) fn new(asked: &Asked) -> Self {
        let only = Filter {
            cpus: asked.only.cpus.clone(),
            pids: asked.only.pids.clone(),
            tids: asked.only.tids.clone(),
            unit: asked.only.unit.clone(),
            container: asked.only.container.clone(),
            pod: asked.only.pod.clone(),
            function: asked.only.function.clone(),
            ..asked.filter()
        };
        // One cell for each part: only its sum is wanted.
        let whole = Shape {
            rows: 1,
            column_ns: 1 << 62,
        };
        let facet = |by| Some(Facets::new(by, whole, asked.filter()));
        let (facets, functions) = match asked.by {
            Part::All => (None, None),
            Part::Core => (facet(By::Core), None),
            Part::Process => (facet(By::Process), None),
            Part::Thread => (facet(By::Thread), None),
            Part::Unit => (facet(By::Unit), None),
            Part::Container => (facet(By::Container), None),
            Part::Pod => (facet(By::Pod), None),
            Part::Function => (None, Some(StackCounts::new(asked.filter()))),
        };
        let plan = asked.plan();
        let (grids_by, shape) = match asked.view {
            View::Threads => {
                let column_ns = plan.step_ns;
                (By::Thread, Shape { rows: 1, column_ns })
            }
            View::Offset | View::Long => (By::All, plan.shape()),
        };
        Self {
            grids: Facets::new(grids_by, shape, only),
            facets,
            functions,
        }
    }

    pub(super) fn parts(&self, by: Part, tables: &StackTables) -> (Vec<PartView>, usize) {
        let mut parts: Vec<PartView> = match (&self.facets, &self.functions) {
            (Some(facets), _) => {
                let grids = facets.grids().unwrap_or_default().into_iter();
                grids
                    .filter_map(|(label, grid)| part(by, label, &grid))
                    .collect()
            }
            (None, Some(functions)) => functions_of(functions, tables),
            (None, None) => Vec::new(),
        };
        if by != Part::Core {
            parts.sort_by(|a, b| b.samples.cmp(&a.samples).then(a.label.cmp(&b.label)));
        }
        let n_left_out = parts.len().saturating_sub(MAX_PARTS);
        parts.truncate(MAX_PARTS);
        (parts, n_left_out)
    }
}

pub(super) fn part(by: Part, label: String, grid: &Grid) -> Option<PartView> {
    // A core is called `core 1`, a process by its name and number, a thread by that of both.
    let number = |sign: char| label.rsplit(sign).next()?.parse::<u32>().ok();
    let value = match by {
        Part::Core | Part::Process => number(' ')?.to_string(),
        Part::Thread => number('/')?.to_string(),
        _ if label.starts_with('(') => return None,
        _ => label.clone(),
    };
    let label = match by {
        // As the programs of containers show it.
        Part::Container => label.chars().take(SHORT_ID).collect(),
        _ => label,
    };
    Some(PartView {
        value,
        label,
        samples: grid.total(),
    })
}

fn functions_of(counts: &StackCounts, tables: &StackTables) -> Vec<PartView> {
    let mut functions = top::functions(counts, tables);
    functions.sort_by_key(|function| std::cmp::Reverse(function.total.samples));
    functions.truncate(MAX_PARTS * 4);
    let parts = functions.into_iter().map(|function| PartView {
        value: format!("^{}$", regex::escape(&function.name)),
        label: function.name,
        samples: function.total.samples,
    });
    parts
        .filter(|part| part.value.chars().count() <= 512)
        .collect()
}

impl Sink for Counted {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        self.grids.sample(sample, tables);
        if let Some(facets) = &mut self.facets {
            facets.sample(sample, tables);
        }
        if let Some(functions) = &mut self.functions {
            functions.sample(sample, tables);
        }
    }
}
