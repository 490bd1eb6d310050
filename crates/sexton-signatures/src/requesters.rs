//! Who is known to stand behind cgroups and containers that another made: data, in
//! `signatures/requesters.toml`.

use std::sync::LazyLock;

use serde::Deserialize;
use sexton_model::glob;

const FILE: &str = include_str!("../../../signatures/requesters.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    between: Vec<String>,
    client: Vec<String>,
    follower: Vec<String>,
    requester: Vec<Known>,
}

/// A unit whose program runs containers of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The unit.
    pub unit: String,
    images: Vec<String>,
    names: Vec<String>,
    /// Why its containers come from it.
    pub why: String,
    /// Where this is known from.
    pub source: String,
}

/// Parsed once. The file is part of the program, and a test reads it.
static KNOWN: LazyLock<File> = LazyLock::new(|| toml::from_str(FILE).unwrap_or_default());

/// Whether a unit or a process only does what others ask of it.
pub fn is_between(name: &str) -> bool {
    // A unit of a user comes with its manager: `user@1000.service/loop.service`.
    let name = name.rsplit_once('/').map_or(name, |(_, unit)| unit);
    KNOWN.between.iter().any(|known| known == name)
}

/// Whether a process of that name asks a daemon for a container and waits for it.
pub fn is_client(name: &str) -> bool {
    KNOWN.client.iter().any(|known| known == name)
}

/// Whether a unit writes to the journal because containers come and go.
pub fn is_follower(name: &str) -> bool {
    KNOWN.follower.iter().any(|known| known == name)
}

/// The unit that runs containers of that image or name.
pub fn by_container(image: Option<&str>, name: Option<&str>) -> Option<&'static Known> {
    let plain = image.map(plain_image);
    KNOWN.requester.iter().find(|known| {
        let has_image = plain.is_some_and(|image| known.images.iter().any(|own| own == image));
        let has_name =
            name.is_some_and(|name| known.names.iter().any(|own| glob::matches(own, name)));
        has_image || (has_name && plain.is_none_or(|image| is_alike(image, known)))
    })
}

/// A name alone may be anybody's; with another image it is.
fn is_alike(image: &str, known: &Known) -> bool {
    let stem = |image: &str| image.rsplit('/').next().unwrap_or_default().to_owned();
    let own = stem(image);
    let is_own = |image: &String| stem(image).contains(&own) || own.contains(&stem(image));
    known.images.iter().any(is_own) || known.names.contains(&own)
}

/// The name of an image without registry, tag and digest: `amazon/amazon-ecs-agent`.
pub fn plain_image(image: &str) -> &str {
    let image = image.split('@').next().unwrap_or_default();
    let image = match image.rsplit_once(':') {
        // What follows a colon before a slash is a port.
        Some((before, tag)) if !tag.contains('/') => before,
        _ => image,
    };
    match image.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => rest,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_in_order() {
        let file: File = toml::from_str(FILE).expect("it parses");
        for known in &file.requester {
            assert!(!known.source.is_empty() && !known.why.is_empty());
            assert!(!is_between(&known.unit), "{} is both", known.unit);
        }
    }

    fn check(image: Option<&str>, name: Option<&str>, unit: Option<&str>) {
        let found = by_container(image, name).map(|known| known.unit.as_str());
        assert_eq!(found, unit, "{image:?} {name:?}");
    }

    #[test]
    fn images_and_names_lead_to_units() {
        let ecs = Some("ecs.service");
        check(Some("amazon/amazon-ecs-agent:latest"), Some("x"), ecs);
        check(
            Some("public.ecr.aws:443/amazon/amazon-ecs-agent@sha256:00"),
            None,
            ecs,
        );
        check(Some("ecs-agent:latest"), Some("ecs-agent"), ecs);
        check(None, Some("ecs-agent"), ecs);
        check(Some("nginx"), Some("ecs-agent"), None);
        check(Some("nginx"), Some("web"), None);
        check(None, None, None);
    }

    #[test]
    fn images_are_compared_without_registry_and_tag() {
        assert_eq!(plain_image("localhost:5000/a/b:1.2"), "a/b");
        assert_eq!(plain_image("busybox"), "busybox");
        assert_eq!(plain_image("a/b@sha256:0"), "a/b");
    }
}
