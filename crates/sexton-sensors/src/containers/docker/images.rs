//! Names of images that a daemon tells by their id, as it does when a kubelet started the
//! container, or when the name has moved on to a newer image.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::super::api::{Identity, plain};

pub(super) const QUESTION: &str = "/images/json";

/// What begins an id.
const ID: &str = "sha256:";

/// An image that nobody named may come again and again: it is not asked for each time.
const PAUSE: Duration = Duration::from_secs(30);

/// Names by id, as far as they were asked for.
#[derive(Debug, Default)]
pub(super) struct Images {
    names: HashMap<String, String>,
    asked: Option<Instant>,
}

#[derive(Deserialize)]
struct RawImage {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "RepoTags", default)]
    names: Option<Vec<String>>,
}

impl Images {
    /// Puts the name of its image in the place of the id; `ask` is called for one that is not
    /// known. Without an answer, or a name, the id stays.
    pub(super) fn name(&mut self, identity: &mut Identity, ask: impl FnOnce() -> Option<Vec<u8>>) {
        if !identity.image.starts_with(ID) {
            return;
        }
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() > PAUSE);
        if is_due && !self.names.contains_key(&identity.image) {
            self.asked = Some(Instant::now());
            self.names
                .extend(ask().map(|body| names(&body)).unwrap_or_default());
        }
        if let Some(name) = self.names.get(&identity.image) {
            identity.image.clone_from(name);
        }
    }
}

/// The first name of each image that has one.
fn names(body: &[u8]) -> HashMap<String, String> {
    let raw: Vec<RawImage> = serde_json::from_slice(body).unwrap_or_default();
    let named = raw.into_iter().filter_map(|image| {
        let mut names = image.names.unwrap_or_default().into_iter();
        let name = names.find(|name| !name.starts_with("<none>"))?;
        Some((plain(&image.id), plain(&name)))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] = br#"[{"Id":"sha256:aa","RepoTags":["agent:1","agent:latest"]},
        {"Id":"sha256:bb","RepoTags":["<none>:<none>"]},{"Id":"sha256:cc","RepoTags":null}]"#;

    fn check(images: &mut Images, image: &str, answer: Option<&[u8]>, expected: &str) {
        let mut identity = Identity {
            image: image.into(),
            ..Identity::default()
        };
        images.name(&mut identity, || answer.map(<[u8]>::to_vec));
        assert_eq!(identity.image, expected);
    }

    #[test]
    fn an_id_is_told_by_its_name_if_it_has_one() {
        let mut images = Images::default();
        check(&mut images, "busybox:1", Some(b"{"), "busybox:1");
        check(&mut images, "sha256:aa", Some(ANSWER), "agent:1");
        // What was asked is known from now on, also that there is no name.
        for (image, expected) in [
            ("sha256:aa", "agent:1"),
            ("sha256:bb", "sha256:bb"),
            ("sha256:cc", "sha256:cc"),
        ] {
            check(&mut images, image, None, expected);
        }
        check(
            &mut Images::default(),
            "sha256:aa",
            Some(b"no"),
            "sha256:aa",
        );
        check(&mut Images::default(), "sha256:aa", None, "sha256:aa");
    }
}
