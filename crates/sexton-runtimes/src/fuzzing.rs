//! Doors for the fuzz targets: what runtimes answer, read as their clients read it. What HTTP
//! and gRPC wrap it in is hyper's and tonic's to read.

use crate::container::{Happening, Identity, Listed};
use crate::docker::api::{self, Lines};

pub use crate::containerd::fuzzing::{containerd_container, containerd_event};
pub use crate::cri::fuzzing::cri_status;
pub use crate::docker::fuzzing::{docker_image, docker_restart};

/// What events of the Docker API say that come in pieces of this length.
pub fn docker_events(body: &[u8], piece_bytes: usize) -> Vec<Happening> {
    let mut told = Vec::new();
    let mut take = |line: Option<&[u8]>| {
        if let Some(Ok(Some(happening))) = line.map(api::event) {
            told.push(happening);
        }
    };
    let mut lines = Lines::default();
    for piece in body.chunks(piece_bytes.max(1)) {
        lines.feed(piece, &mut take);
    }
    lines.end(&mut take);
    told
}

/// What a list of the Docker API says.
pub fn docker_list(body: &[u8]) -> Vec<Listed> {
    api::list(body).unwrap_or_default()
}

/// What is shown of an identity.
pub fn texts(identity: &Identity) -> impl Iterator<Item = &str> {
    let Identity {
        id,
        name,
        image,
        namespace,
        pod,
        pod_namespace,
        pod_uid,
        attempt: _,
        compose_project,
    } = identity;
    let maybe = [
        name,
        namespace,
        pod,
        pod_namespace,
        pod_uid,
        compose_project,
    ];
    let maybe = maybe.into_iter().flatten();
    [id, image].into_iter().chain(maybe).map(String::as_str)
}
