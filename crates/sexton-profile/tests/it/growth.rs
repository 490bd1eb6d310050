//! What is kept while reading grows with what differs in a recording, not with its length.

use std::io::{Cursor, Read};

use sexton_model::stack::{StackSample, StackTables};
use sexton_profile::import::{Importer, Sink};

use crate::support::{Names, bytes, perf, read};

/// Counts, and keeps nothing.
#[derive(Default)]
struct Count(u64);

impl Sink for Count {
    fn sample(&mut self, _: &StackSample, _: &StackTables) {
        self.0 += 1;
    }
}

/// Reads a text that repeats itself so often; it is never in memory as a whole.
fn repeated(text: &[u8], n: usize) -> (u64, [usize; 3]) {
    let mut stream: Box<dyn Read + Send> = Box::new(std::io::empty());
    for _ in 0..n {
        stream = Box::new(stream.chain(Cursor::new(text.to_vec())));
    }
    let (mut count, mut names) = (Count::default(), Names::new());
    let mut importer = Importer::new(&mut names, &mut count);
    let report = importer.read_stream(stream).unwrap();
    assert_eq!(report.stopped, None);
    let tables = importer.into_tables().into_tables();
    (count.0, sizes(&tables))
}

fn sizes(tables: &StackTables) -> [usize; 3] {
    [tables.names.len(), tables.frames.len(), tables.stacks.len()]
}

#[test]
fn a_text_of_thirty_times_the_length_keeps_no_more() {
    let text = bytes(&perf("fp.data.script"));
    let (n_once, kept_once) = repeated(&text, 1);
    let (n_often, kept_often) = repeated(&text, 30);
    assert_eq!((n_often, kept_often), (n_once * 30, kept_once));
}

#[test]
fn a_series_that_is_read_twice_has_all_samples_twice_and_all_else_once() {
    let series = [
        "series.data.2026111520352927",
        "series.data.2026111520353048",
        "series.data.2026111520353083",
    ];
    let files: Vec<Vec<u8>> = series.iter().map(|name| bytes(&perf(name))).collect();
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let once = read(&files);
    let again = read(&files);
    assert_eq!(once.samples, again.samples);
    assert_eq!(sizes(&once.tables), sizes(&again.tables));
    let twice = read(&[&files[..], &files[..]].concat());
    assert_eq!(twice.samples.len(), 2 * once.samples.len());
    assert_eq!(sizes(&twice.tables), sizes(&once.tables));
}
