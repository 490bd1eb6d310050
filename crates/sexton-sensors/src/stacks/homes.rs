//! Paths of the cgroups of samples, which name them by an id or by a process in them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sexton_host::Host;
use sexton_host::cgroup::by_id::ById;
use sexton_host::process::Place;
use sexton_model::moment::Moment;
use sexton_model::text::escape;

/// Cgroups that are known; beyond that all are forgotten and asked for anew.
const MAX_KNOWN: usize = 4096;

/// Processes rarely move to another cgroup; what one is in is asked for again after this time.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// Cgroups by their id, or by the process.
#[derive(Debug, Default)]
pub(super) struct Homes {
    by_id: Option<ById>,
    known: HashMap<Id, Arc<str>>,
    of_process: HashMap<(u32, u64), Asked>,
}

/// The id of a cgroup, and whether it is one of v2.
type Id = (u64, bool);

/// What one process is in, and when it was asked for; `None` when it was gone.
type Asked = (Option<Arc<str>>, Moment);

impl Homes {
    /// The path of a cgroup. The kernel tells it by the id, whether or not the process is still
    /// there; where it must not, the process is asked. The id itself where neither is possible.
    pub(super) fn path(&mut self, host: &Host, id: Id, pid: Option<u32>) -> Option<Arc<str>> {
        if id.0 == 0 {
            return None;
        }
        if let Some(known) = self.known.get(&id) {
            return Some(Arc::clone(known));
        }
        let by_id = self.by_id.get_or_insert_with(|| ById::open(host));
        let path = by_id.path(id.0, id.1).or_else(|| {
            let places = pid.and_then(|pid| Place::read_all(host, pid).ok());
            home(&places.unwrap_or_default()).map(<[u8]>::to_vec)
        });
        let Some(path) = path else {
            return Some(id.0.to_string().into());
        };
        let path: Arc<str> = escape(&path).into();
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(id, Arc::clone(&path));
        Some(path)
    }

    /// The path of the cgroup that a process is in, for samples that do not say; `None` when it
    /// was gone before anyone could ask. The second number tells programs of a process apart.
    pub(super) fn of_process(
        &mut self,
        host: &Host,
        process: (u32, u64),
        now: Moment,
    ) -> Option<Arc<str>> {
        if process.0 == 0 {
            return None;
        }
        let last = self.of_process.get(&process);
        if let Some((path, asked)) = last
            && now.since(*asked) < ASK_AGAIN
        {
            return path.clone();
        }
        let places = Place::read_all(host, process.0).unwrap_or_default();
        let now_at = home(&places).map(|path| Arc::from(escape(path)));
        // One that has exited was where it was seen last.
        let path = now_at.or_else(|| last.and_then(|(path, _)| path.clone()));
        if self.of_process.len() >= MAX_KNOWN {
            self.of_process.clear();
        }
        self.of_process.insert(process, (path.clone(), now));
        path
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
