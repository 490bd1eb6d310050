//! Answers of a container daemon: HTTP, and JSON in it. The first byte is the length of the
//! pieces in which the rest comes.

use sexton_sensors::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "container_api",
    run,
};

fn run(bytes: &[u8]) {
    let Some((piece_bytes, answer)) = bytes.split_first() else {
        return;
    };
    let told = fuzzing::container_api(answer, usize::from(*piece_bytes));
    for record in &told {
        crate::shown::assert_plain(&record.subject.to_string());
    }
    let whole = fuzzing::container_api(answer, answer.len());
    assert_eq!(told, whole, "it depends on how the answer comes");
}
