//! Names of images that a daemon tells by their id, as it does when a kubelet started the
//! container, or when the name has moved on to a newer image.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::container::{Identity, plain};

pub(super) const QUESTION: &str = "/images/json";

/// What begins an id.
const ID: &str = "sha256:";

/// An image without a name may come again and again: it is not asked for each time.
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
    /// Whether to ask for the name of its image.
    pub(super) fn is_asked_for(&self, identity: &Identity) -> bool {
        let is_due = self.asked.is_none_or(|asked| asked.elapsed() > PAUSE);
        is_due && identity.image.starts_with(ID) && !self.names.contains_key(&identity.image)
    }

    /// Takes the answer, if there was one.
    pub(super) fn learn(&mut self, answer: Option<&[u8]>) {
        self.asked = Some(Instant::now());
        self.names.extend(answer.map(names).unwrap_or_default());
    }

    /// Puts the name of its image in the place of the id. Without a name, the id stays.
    pub(super) fn name(&self, identity: &mut Identity) {
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
        if images.is_asked_for(&identity) {
            images.learn(answer);
        }
        images.name(&mut identity);
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
