//! Messages of containerd and of CRI. The first byte says which one the rest is; what gRPC
//! wraps it in is read before.

use sexton_runtimes::Identity;
use sexton_runtimes::fuzzing::{containerd_container, containerd_event, cri_status, texts};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "container_messages",
    run,
};

fn run(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else {
        return;
    };
    match kind % 3 {
        0 => containerd_container(message).iter().for_each(check),
        1 => {
            let event = containerd_event(message);
            event.iter().for_each(|event| check(&event.identity));
        }
        _ => {
            let lives = cri_status(message);
            lives.iter().for_each(|event| check(&event.identity));
        }
    }
}

fn check(identity: &Identity) {
    texts(identity).for_each(crate::shown::assert_plain);
}
