//! Recordings of stacks, read and asked as the program does it.

use std::io::Cursor;

use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::export::{folded, html, svg};
use sexton_profile::filter::{EventChoice, Filter};
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::heatmap::Shape;
use sexton_profile::heatmap::facets::{By, Facets};
use sexton_profile::import::{Importer, Sink};
use sexton_profile::names::Suffixes;
use sexton_profile::symbols::NoSymbols;

/// Questions that see all there is.
struct Questions {
    counts: StackCounts,
    cells: Facets,
    n_samples: u64,
}

impl Sink for Questions {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        self.counts.sample(sample, tables);
        self.cells.sample(sample, tables);
        self.n_samples += 1;
    }
}

/// Reads a file, and asks what the program asks.
pub(crate) fn import(bytes: &[u8]) {
    let filter = Filter {
        event: EventChoice::All,
        idle: true,
        ..Filter::default()
    };
    let mut questions = Questions {
        counts: StackCounts::new(filter.clone()),
        cells: Facets::new(By::Process, Shape::default(), filter),
        n_samples: 0,
    };
    let mut none = NoSymbols;
    let mut importer = Importer::new(&mut none, &mut questions);
    let Ok(report) = importer.read_file(Cursor::new(bytes)) else {
        return;
    };
    let tables = importer.into_tables().into_tables();
    assert_eq!(report.n_samples, questions.n_samples);
    assert_eq!(questions.counts.total().samples, questions.n_samples);
    for name in &tables.names {
        crate::shown::assert_plain(name);
    }
    let tree = Tree::of(&questions.counts, &tables, Suffixes::default());
    let mut out = Vec::new();
    folded::write(&mut out, &tree, false).expect("memory takes it");
    svg::write(&mut out, "fuzz", &tree, true).expect("memory takes it");
    html::write(&mut out, "fuzz", &tree, true).expect("memory takes it");
    let _ = questions.cells.grids();
}
