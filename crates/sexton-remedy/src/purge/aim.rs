//! What a purge is about: dying cgroups by the pattern of their paths.

use sexton_model::census::{Census, CgroupIx, State};
use sexton_model::origin::pattern_component;

/// Which dying cgroups to free.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aim {
    patterns: Vec<Vec<Vec<u8>>>,
    /// Nothing is to be freed, not even what cannot be told apart.
    is_off: bool,
}

impl Aim {
    /// Those of these patterns, as `sexton zombies` shows them, and what lies below.
    pub fn at<'a>(patterns: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let components = |pattern: &[u8]| pattern.split(is_slash).map(<[u8]>::to_vec).collect();
        Self {
            patterns: patterns.into_iter().map(components).collect(),
            is_off: false,
        }
    }

    /// Nothing: the source is stopped, and what it left stays.
    pub fn off() -> Self {
        Self {
            patterns: Vec::new(),
            is_off: true,
        }
    }

    /// Whether nothing is to be freed.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// Whether it is about nothing.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether it is about that cgroup. A cgroup is matched component by component rather
    /// than by its group: groups change when most of their members are gone.
    pub fn covers(&self, path: &[u8]) -> bool {
        let names: Vec<&[u8]> = path.split(is_slash).collect();
        self.patterns.iter().any(|pattern| {
            pattern.len() <= names.len()
                && pattern
                    .iter()
                    .zip(&names)
                    .all(|(wanted, name)| wanted == name || *wanted == pattern_component(name))
        })
    }

    /// Whether a live cgroup may be the parent of one that it is about: it lies on the way to
    /// them, or is one of them. The root is the parent of all and says nothing.
    pub fn leads_through(&self, path: &[u8]) -> bool {
        let names: Vec<&[u8]> = path.split(is_slash).collect();
        let is_root = names.iter().all(|name| name.is_empty());
        let is_above = self.patterns.iter().any(|pattern| {
            names.len() < pattern.len()
                && names
                    .iter()
                    .zip(pattern)
                    .all(|(name, wanted)| wanted == name || *wanted == pattern_component(name))
        });
        !is_root && (is_above || self.covers(path))
    }

    /// The dying cgroups that it is about.
    pub fn dying(&self, census: &Census) -> Vec<CgroupIx> {
        let dying = census.tree.iter().filter(|(_, c)| c.state == State::Dying);
        dying
            .map(|(ix, _)| ix)
            .filter(|ix| self.covers(&census.tree.path(*ix)))
            .collect()
    }
}

fn is_slash(byte: &u8) -> bool {
    *byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, path: &str, expected: bool) {
        let aim = Aim::at([pattern.as_bytes()]);
        assert_eq!(aim.covers(path.as_bytes()), expected, "{pattern} {path}");
    }

    #[test]
    fn patterns_cover_what_is_like_them_and_what_lies_below() {
        check("/a/job-<n>", "/a/job-17", true);
        check("/a/job-<n>", "/a/job-17/inner", true);
        check("/a/job-<n>", "/b/job-17", false);
        check("/a/job-<n>", "/a", false);
        check("/a/job-17", "/a/job-17", true);
        check("/a/job-17", "/a/job-18", false);
        check("/a", "/ab", false);
    }

    #[test]
    fn parents_lie_on_the_way() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let aim = Aim::at([pattern.as_bytes()]);
            assert_eq!(
                aim.leads_through(path.as_bytes()),
                expected,
                "{pattern} {path}"
            );
        };
        check("/docker/<id>", "/docker", true);
        check("/docker", "/docker", true);
        check("/kubepods/pod<n>/<id>", "/kubepods/pod7", true);
        check("/docker/<id>", "/system.slice", false);
        check("/docker/<id>", "/", false);
        check("/docker", "/docker/inner", true);
    }

    #[test]
    fn no_pattern_covers_nothing() {
        assert!(Aim::default().is_empty());
        assert!(!Aim::default().covers(b"/a"));
        assert!(!Aim::default().is_off() && Aim::off().is_off());
        assert!(!Aim::off().covers(b"/a"));
    }
}
