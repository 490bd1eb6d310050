//! The processed format of the Firefox Profiler (<https://profiler.firefox.com>), in the
//! version that samply 0.13 writes. One thread for each thread; times in milliseconds.

use std::io::{self, Write};

use ahash::AHashMap;
use serde_json::{Value, json};
use sexton_model::stack::{CodeKind, FrameId, StackId, StackTables};

use super::rows::{Rows, Thread};
use crate::heatmap::Mark;
use crate::names::{self, Suffixes};
use crate::walk::Walk;

const VERSION: u32 = 24;
const PROCESSED_VERSION: u32 = 49;

/// Categories, by number: other, kernel, user.
const OTHER: usize = 0;
const KERNEL: usize = 1;
const USER: usize = 2;

/// Writes the samples, and marks on every thread.
pub fn write<W: Write>(
    out: &mut W,
    name: &str,
    rows: &Rows,
    tables: &StackTables,
    marks: &[Mark],
) -> io::Result<()> {
    let start_ns = rows.first_ns();
    let mut stacks = Walk::default();
    write!(
        out,
        r#"{{"meta":{},"libs":[],"pages":[],"counters":[],"profilerOverhead":[],"threads":["#,
        meta(name)
    )?;
    for (n, thread) in rows.threads().enumerate() {
        let comma = if n == 0 { "" } else { "," };
        let written = ThreadTables::new(tables, &mut stacks).thread(thread, start_ns, marks);
        write!(out, "{comma}{written}")?;
    }
    writeln!(out, "]}}")
}

fn meta(name: &str) -> Value {
    let category = |name: &str, color: &str| json!({ "name": name, "color": color, "subcategories": ["Other"] });
    json!({
        "version": VERSION,
        "preprocessedProfileVersion": PROCESSED_VERSION,
        "product": name,
        "processType": 0,
        "interval": 10.1,
        "startTime": 0,
        "stackwalk": 1,
        "debug": false,
        "symbolicated": true,
        "pausedRanges": [],
        "usesOnlyOneStackType": true,
        "doesNotUseFrameImplementation": true,
        "sourceCodeIsNotOnSearchfox": true,
        "extensions": { "baseURL": [], "id": [], "length": 0, "name": [] },
        "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
        "categories": [
            category("Other", "grey"),
            category("Kernel", "orange"),
            category("User", "yellow"),
        ],
        "markerSchema": [{
            "name": "Mark",
            "display": ["marker-chart", "marker-table", "timeline-overview"],
            "data": [{ "key": "name", "label": "Event", "format": "string" }],
        }],
    })
}

/// The tables of one thread: only what its samples use.
struct ThreadTables<'a> {
    tables: &'a StackTables,
    strings: Vec<String>,
    string_numbers: AHashMap<String, usize>,
    frames: AHashMap<FrameId, usize>,
    frame_names: Vec<(usize, usize)>,
    /// Shared by all threads: it has room for every stack of the recording.
    stacks: &'a mut Walk<Option<usize>>,
    stack_nodes: Vec<(Option<usize>, usize)>,
}

impl<'a> ThreadTables<'a> {
    fn new(tables: &'a StackTables, stacks: &'a mut Walk<Option<usize>>) -> Self {
        stacks.forget();
        Self {
            tables,
            strings: Vec::new(),
            string_numbers: AHashMap::new(),
            frames: AHashMap::new(),
            frame_names: Vec::new(),
            stacks,
            stack_nodes: Vec::new(),
        }
    }

    fn string(&mut self, text: &str) -> usize {
        if let Some(&number) = self.string_numbers.get(text) {
            return number;
        }
        let number = self.strings.len();
        self.strings.push(text.to_owned());
        self.string_numbers.insert(text.to_owned(), number);
        number
    }

    fn frame(&mut self, id: FrameId) -> usize {
        if let Some(&number) = self.frames.get(&id) {
            return number;
        }
        let frame = self.tables.frame(id);
        let name = frame.map_or_else(
            || names::UNKNOWN.to_owned(),
            |frame| names::of_frame(self.tables, frame, "", Suffixes::default()),
        );
        let category = match frame.map(|frame| frame.kind) {
            Some(CodeKind::Kernel) => KERNEL,
            Some(CodeKind::User) => USER,
            _ => OTHER,
        };
        let name = self.string(&name);
        let number = self.frame_names.len();
        self.frame_names.push((name, category));
        self.frames.insert(id, number);
        number
    }

    /// The number of a stack; `None` for none.
    fn stack(&mut self, stack: StackId) -> Option<usize> {
        let mut stacks = std::mem::take(self.stacks);
        let number = stacks.walk(self.tables, stack, None, |prefix, frame| {
            let frame = self.frame(frame);
            self.stack_nodes.push((prefix, frame));
            Some(self.stack_nodes.len() - 1)
        });
        *self.stacks = stacks;
        number
    }

    fn thread(mut self, thread: &Thread, start_ns: u64, marks: &[Mark]) -> Value {
        let mut rows = thread.rows.clone();
        rows.sort_by_key(|row| row.at_ns);
        let stacks: Vec<Option<usize>> = rows.iter().map(|row| self.stack(row.stack)).collect();
        let times: Vec<f64> = rows.iter().map(|row| ms(row.at_ns, start_ns)).collect();
        let comm = self.tables.name(thread.comm).to_owned();
        let markers = self.markers(marks, start_ns);
        json!({
            "name": comm,
            "processName": comm,
            "processType": "default",
            "isMainThread": thread.pid == thread.tid,
            "pid": thread.pid.to_string(),
            "tid": thread.tid,
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pausedRanges": [],
            "showMarkersInTimeline": !marks.is_empty(),
            "samples": {
                "length": rows.len(),
                "stack": stacks,
                "time": times,
                "weight": vec![1; rows.len()],
                "weightType": "samples",
            },
            "markers": markers,
            "frameTable": self.frame_table(),
            "funcTable": self.func_table(),
            "stackTable": self.stack_table(),
            "nativeSymbols": { "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [] },
            "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
            "stringArray": self.strings,
        })
    }

    fn markers(&mut self, marks: &[Mark], start_ns: u64) -> Value {
        let name = self.string("event");
        let data = marks
            .iter()
            .map(|mark| json!({ "type": "Mark", "name": mark.text }));
        json!({
            "length": marks.len(),
            "name": vec![name; marks.len()],
            "category": vec![OTHER; marks.len()],
            "data": data.collect::<Vec<_>>(),
            "phase": vec![0; marks.len()],
            "startTime": marks.iter().map(|mark| ms(mark.at_ns, start_ns)).collect::<Vec<_>>(),
            "endTime": vec![Value::Null; marks.len()],
        })
    }

    fn frame_table(&self) -> Value {
        let n = self.frame_names.len();
        json!({
            "length": n,
            "address": vec![-1; n],
            "inlineDepth": vec![0; n],
            "category": self.frame_names.iter().map(|frame| frame.1).collect::<Vec<_>>(),
            "subcategory": vec![0; n],
            "func": (0..n).collect::<Vec<_>>(),
            "nativeSymbol": vec![Value::Null; n],
            "innerWindowID": vec![Value::Null; n],
            "implementation": vec![Value::Null; n],
            "line": vec![Value::Null; n],
            "column": vec![Value::Null; n],
        })
    }

    fn func_table(&self) -> Value {
        let n = self.frame_names.len();
        json!({
            "length": n,
            "name": self.frame_names.iter().map(|frame| frame.0).collect::<Vec<_>>(),
            "isJS": vec![false; n],
            "relevantForJS": vec![false; n],
            "resource": vec![-1; n],
            "fileName": vec![Value::Null; n],
            "lineNumber": vec![Value::Null; n],
            "columnNumber": vec![Value::Null; n],
        })
    }

    fn stack_table(&self) -> Value {
        let category = |(_, frame): &(Option<usize>, usize)| self.frame_names[*frame].1;
        json!({
            "length": self.stack_nodes.len(),
            "prefix": self.stack_nodes.iter().map(|node| node.0).collect::<Vec<_>>(),
            "frame": self.stack_nodes.iter().map(|node| node.1).collect::<Vec<_>>(),
            "category": self.stack_nodes.iter().map(category).collect::<Vec<_>>(),
            "subcategory": vec![0; self.stack_nodes.len()],
        })
    }
}

fn ms(at_ns: u64, start_ns: u64) -> f64 {
    let ns = at_ns.saturating_sub(start_ns);
    #[allow(clippy::cast_precision_loss, reason = "exact for 104 days")]
    let ns = ns as f64;
    ns / 1e6
}
