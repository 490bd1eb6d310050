//! Facts that only test builds have (feature `test-build`). They are added as any fact is: this
//! file, and its line in `fact.rs`. A test of the binary finds them on every surface.

use super::show::{Group, KERNEL_LOG, Mark, SECOND, Series, Show};
use crate::payload;
use crate::subject::Subject;

payload! {
    /// The sensor of test builds began.
    pub struct AddedBegan {
        /// what it was told to say
        pub word: String,
    }
}

fn began(subject: &Subject, said: &AddedBegan) -> Option<Mark> {
    let text = format!("{subject}: the added sensor says {}", said.word);
    Some(Mark::new(&KERNEL_LOG, text))
}

const LEVEL: Series = Series::line("added.level", Group::Pressure, "added-level", "added");

facts! {
    /// level that the sensor of test builds counts up
    gauge ADDED_LEVEL = "added_level" in Count,
        shown: Show::Series(LEVEL.every(SECOND / 10, 5 * SECOND));
    /// the sensor of test builds began
    event ADDED_BEGAN = "added_began" of AddedBegan,
        shown: marks!(AddedBegan, began);
}
