//! Files in which container runtimes keep their state.

use sexton_host::runtimes;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "runtime_state",
    run,
};

fn run(bytes: &[u8]) {
    let host = crate::node::saying_in_turn(bytes);
    for state in runtimes::states(&host) {
        for error in state.unread {
            error.chain();
        }
    }
}
