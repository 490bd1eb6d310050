//! Paths of the cgroups that samples name by their number.

use std::collections::HashMap;
use std::sync::Arc;

use sexton_host::Host;
use sexton_host::process::Place;
use sexton_model::text::escape;

/// Cgroups that are known; beyond that all are forgotten and asked for anew.
const MAX_KNOWN: usize = 4096;

/// Cgroups by their number.
#[derive(Debug, Default)]
pub(super) struct Homes {
    known: HashMap<u64, Arc<str>>,
}

impl Homes {
    /// The path of a cgroup, learned from a process in it; its number when that process is
    /// gone and none was seen before.
    pub(super) fn path(&mut self, host: &Host, id: u64, pid: u32) -> Option<Arc<str>> {
        if id == 0 {
            return None;
        }
        if let Some(known) = self.known.get(&id) {
            return Some(Arc::clone(known));
        }
        let places = Place::read_all(host, pid).unwrap_or_default();
        let Some(path) = home(&places) else {
            return Some(id.to_string().into());
        };
        let path: Arc<str> = escape(path).into();
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(id, Arc::clone(&path));
        Some(path)
    }
}

/// The same cgroup that the BPF program names: that of the memory controller, or at the
/// root of a v1 hierarchy that in v2.
fn home(places: &[Place]) -> Option<&[u8]> {
    let of = |name: &str| places.iter().find(|place| place.is_of(name));
    let memory = of("memory").filter(|place| place.path != b"/");
    memory
        .or_else(|| of(""))
        .or_else(|| of("memory"))
        .map(|place| &place.path[..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(places: &[(&str, &[u8])], expected: Option<&[u8]>) {
        let places: Vec<Place> = places
            .iter()
            .map(|(controllers, path)| Place {
                hierarchy: 0,
                controllers: (*controllers).into(),
                path: path.to_vec(),
            })
            .collect();
        assert_eq!(home(&places), expected);
    }

    #[test]
    fn memory_tells_most_unless_it_is_the_root() {
        check(&[("", b"/v2"), ("memory", b"/m")], Some(b"/m"));
        check(&[("", b"/v2"), ("memory", b"/")], Some(b"/v2"));
        check(&[("memory", b"/")], Some(b"/"));
        check(&[("", b"/v2")], Some(b"/v2"));
        check(&[], None);
    }
}
