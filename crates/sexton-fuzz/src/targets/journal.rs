//! Files of systemd's journal.

use sexton_systemd::journal::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "journal",
    run,
};

fn run(content: &[u8]) {
    for (unit, n) in fuzzing::journal_file(content) {
        crate::shown::assert_plain(&unit);
        assert!(n <= 128, "{n}");
    }
}
