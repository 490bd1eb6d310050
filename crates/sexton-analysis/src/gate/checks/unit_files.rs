//! Units that are on and that this shape of node has no use for, by their files.

use sexton_model::fact::unit::{UNIT_FILE, UNIT_SHAPE};
use sexton_model::gap::Why;
use sexton_model::record::Event;
use sexton_model::text::shell_word;

use super::{Counting, names, silence};
use crate::evidence::unit_files::Weighed;
use crate::gate::Seen;
use crate::gate::count::Count;
use crate::gate::policy::{GatePolicy, Limit};

pub(super) static UNWANTED_UNITS: Counting = Counting {
    limit: Limit {
        name: "unwanted_units",
        default: 0.0,
        range: (0.0, 1e6),
        title: "units that this shape of node has no use for",
        code: "UNIT004",
        why: "the founding incident began with one",
    },
    count: unwanted_units,
};

const SENSOR: &str = "unit_files";

fn unwanted_units(seen: &Seen<'_>, policy: &GatePolicy) -> Count {
    let Some(shape) = seen.records.of(&UNIT_SHAPE).last() else {
        let mut gaps = seen.records.gaps();
        let is_none = gaps.any(|(_, _, gap)| gap.sensor == SENSOR && gap.why == Why::Unsupported);
        return match is_none {
            true => Count::of(0.0, silence(seen, SENSOR)),
            false => Count::unknown(silence(seen, SENSOR)),
        };
    };
    let mut units: Vec<String> = seen
        .records
        .of(&UNIT_FILE)
        .filter_map(|record| Event::of(record, &UNIT_FILE))
        .filter(|event| Weighed(*event).is_unwanted())
        .map(|event| event.subject.name.to_string())
        .filter(|unit| !policy.ignores_unit(unit))
        .collect();
    units.sort();
    units.dedup();
    let n = units.len() as f64;
    let shape = shape.says(&UNIT_SHAPE);
    let shape = shape.and_then(|says| says.shape.as_deref());
    let mut unread = seen.records.gaps().filter(|gap| gap.2.sensor == SENSOR);
    let found = match (units.len(), shape) {
        (0, Some(shape)) => format!("every unit that is on may have a use on a {shape}"),
        (0, None) => "none is known to be of no use anywhere".to_owned(),
        (_, Some(shape)) => format!("of no use on a {shape}: {}", names(&units)),
        (_, None) => format!("of no use anywhere: {}", names(&units)),
    };
    // Without a shape nothing is expected of the node but what holds of any: that is judged,
    // and is no gap.
    let found = match shape {
        Some(_) => found,
        None => format!("{found}; what this node is for, --shape says"),
    };
    let count = match unread.next() {
        None => Count::of(n, found),
        Some((_, _, gap)) => {
            Count::at_least(n, format!("{found}; not all files were read: {}", gap.text))
        }
    };
    let next = units.first().map(|_| match &policy.shape {
        Some(given) => format!("sexton image audit / --shape {}", shell_word(given)),
        None => "sexton image audit /".to_owned(),
    });
    count.next(next).about(units)
}
