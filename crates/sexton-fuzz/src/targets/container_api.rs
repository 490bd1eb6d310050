//! Answers of the Docker API, which are JSON. The first byte is the length of the pieces in
//! which the rest comes; what HTTP wraps it in is read before.

use sexton_runtimes::fuzzing::{docker_image, docker_list, docker_restart, texts};
use sexton_runtimes::{Identity, Listed, State};
use sexton_sensors::fuzzing;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "container_api",
    run,
};

fn run(bytes: &[u8]) {
    let Some((piece_bytes, body)) = bytes.split_first() else {
        return;
    };
    let told = fuzzing::container_api(body, usize::from(*piece_bytes));
    for record in &told {
        crate::shown::assert_plain(&record.subject.to_string());
    }
    let whole = fuzzing::container_api(body, body.len());
    assert_eq!(told, whole, "it depends on how the answer comes");
    docker_list(body)
        .iter()
        .for_each(|listed| check(&listed.identity));
    check_others(body);
}

/// The answers about images, and about a container that waits.
fn check_others(body: &[u8]) {
    let mut identity = Identity {
        image: "sha256:aa".into(),
        ..Identity::default()
    };
    docker_image(body, &mut identity);
    check(&identity);
    let listed = Listed {
        identity,
        state: State::Restarting,
        created_ns: None,
        started_ns: None,
    };
    docker_restart(body, &listed)
        .iter()
        .for_each(|told| check(&told.identity));
}

fn check(identity: &Identity) {
    texts(identity).for_each(crate::shown::assert_plain);
}
