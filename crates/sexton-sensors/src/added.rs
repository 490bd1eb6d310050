//! A sensor that only test builds have (feature `test-build`). It is added as any sensor is: this
//! file, and its lines in `lib.rs`.
//!
//! Source: itself. Blind to: nothing. Overhead: none in what is shipped.

use std::time::Duration;

use sexton_host::Host;
use sexton_model::fact::added::{ADDED_BEGAN, ADDED_LEVEL, AddedBegan};
use sexton_model::gap::Gap;
use sexton_model::record::Sink;
use sexton_model::sight::Sight;
use sexton_model::subject::Subject;

use crate::{Sensor, SensorSpec};

pub(crate) static SPEC: SensorSpec = SensorSpec {
    name: "added",
    watches: "nothing: it shows that a sensor and its facts are added in one place",
    emits: &[&ADDED_LEVEL, &ADDED_BEGAN.fact],
    every: Duration::from_millis(200),
    deadline: Duration::from_secs(1),
    examine: |_| vec![Sight::sees("its own level", "it is in this program")],
    open: |_| Ok::<_, Gap>(Box::new(Added::default())),
};

#[derive(Default)]
struct Added {
    level: f64,
}

impl Sensor for Added {
    fn poll(&mut self, _: &Host, out: &mut Sink) {
        let node = Subject::node();
        if self.level == 0.0 {
            let word = "hello".to_owned();
            out.event(out.now(), &node, &ADDED_BEGAN, AddedBegan { word });
        }
        self.level += 1.0;
        out.sample(&node, &ADDED_LEVEL, self.level);
    }
}
