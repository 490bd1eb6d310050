//! What a cgroup's path tells about who made it.
//!
//! Source: the path below the root of its hierarchy, v1 or v2, live or dying. The
//! shapes are conventions of systemd, the kubelet and the container runtimes; they
//! are listed in `shapes`, each with a row in the table of tests.
//! Blind to: whether the maker really is who the name says. Anyone may `mkdir` a
//! `docker-<id>.scope`.

mod mask;
mod name;
mod part;
mod shapes;
#[cfg(test)]
mod tests;

pub use mask::pattern_component;
pub use part::{Container, Kind, Part, Pod, PodName, Qos, Role, Runtime};

/// A cgroup path, taken apart.
///
/// ```
/// use sexton_model::origin::{Kind, Origin};
///
/// let origin = Origin::of(b"/system.slice/ecs.service/worker/3");
/// assert_eq!(origin.kind(), Kind::Unit);
/// assert_eq!(origin.unit(), Some("ecs.service"));
/// assert_eq!(origin.pattern(), b"/system.slice/ecs.service/worker/<n>");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    parts: Vec<Part<'a>>,
}

impl<'a> Origin<'a> {
    /// Reads a path below the root of its hierarchy, `/system.slice/foo.service`.
    /// Takes any bytes; what it does not know is [`Kind::ByHand`].
    pub fn of(path: &'a [u8]) -> Origin<'a> {
        let mut parts = Vec::with_capacity(8);
        for name in path.split(|&b| b == b'/') {
            let role = shapes::role(name, &parts);
            parts.push(Part { name, role });
        }
        Origin { parts }
    }

    /// The components, outermost first, with empty ones where slashes begin, end or
    /// meet.
    pub fn parts(&self) -> &[Part<'a>] {
        &self.parts
    }

    /// The path this was read from, byte for byte.
    pub fn path(&self) -> Vec<u8> {
        let names: Vec<_> = self.parts.iter().map(|part| part.name).collect();
        names.join(&b'/')
    }

    /// The path with every component masked by [`pattern_component`], so that alike
    /// cgroups of alike parents have the same.
    pub fn pattern(&self) -> Vec<u8> {
        let masks: Vec<_> = self
            .parts
            .iter()
            .map(|part| pattern_component(part.name))
            .collect();
        masks.join(&b'/')
    }

    /// What kind of thing the cgroup belongs to, by the innermost component that
    /// tells. A plain directory belongs to what it lies in, unless that is the root
    /// or a slice, in which only its manager should make one: then it is
    /// [`Kind::ByHand`].
    pub fn kind(&self) -> Kind {
        let mut kind = Kind::Root;
        let mut user_manager = false;
        for part in &self.parts {
            let collects = matches!(kind, Kind::Root | Kind::Slice);
            kind = match part.role {
                Role::Slice => Kind::Slice,
                Role::Group if collects => Kind::Slice,
                Role::Other if collects => Kind::ByHand,
                Role::Blank | Role::Group | Role::Other => kind,
                Role::Unit if user_manager => Kind::UserUnit,
                Role::Unit => Kind::Unit,
                Role::Session(_) => Kind::UserSession,
                Role::Container(..) => Kind::Container,
                Role::Pod(_) => Kind::Pod,
                Role::Machine(_) => Kind::Machine,
            };
            // A container or machine has managers of its own.
            let border = matches!(part.role, Role::Container(..) | Role::Machine(_));
            user_manager = !border && (user_manager || name::uid_of_manager(part.name).is_some());
        }
        kind
    }

    /// The innermost systemd unit whose cgroup this is or lies in: a service, scope,
    /// socket, mount or swap. The scope of a container is none; see
    /// [`container`](Self::container).
    ///
    /// Inside a container that runs systemd it is a unit of that systemd. Ask
    /// [`host_unit`](Self::host_unit) before giving the name to `systemctl`.
    pub fn unit(&self) -> Option<&'a str> {
        self.parts.iter().rev().find_map(unit_of)
    }

    /// The innermost unit outside any container or machine: one that this node's
    /// systemd knows, or its manager of [`user`](Self::user) if the kind is
    /// [`Kind::UserUnit`]. The unit that is a machine counts.
    pub fn host_unit(&self) -> Option<&'a str> {
        let border = |part: &Part<'_>| matches!(part.role, Role::Container(..) | Role::Machine(_));
        let first = self.parts.iter().position(border);
        let outside = &self.parts[..first.map_or(self.parts.len(), |at| at + 1)];
        outside.iter().rev().find_map(unit_of)
    }

    /// The innermost systemd slice, a pod's included.
    pub fn slice(&self) -> Option<&'a str> {
        self.parts.iter().rev().find_map(|part| match part.role {
            Role::Slice | Role::Pod(_) => name::slice(part.name),
            _ => None,
        })
    }

    /// The innermost container whose cgroup this is or lies in.
    pub fn container(&self) -> Option<Container<'a>> {
        self.parts.iter().rev().find_map(|part| match part.role {
            Role::Container(container, _) => Some(container),
            _ => None,
        })
    }

    /// The innermost Kubernetes pod whose cgroup this is or lies in.
    pub fn pod(&self) -> Option<Pod> {
        let pod = self.parts.iter().rev().find_map(|part| match part.role {
            Role::Pod(pod) => Some(pod),
            Role::Container(_, pod) => pod,
            _ => None,
        });
        pod.map(Pod::from)
    }

    /// The name of the innermost machine, as `machinectl` or `virsh` know it.
    pub fn machine(&self) -> Option<Vec<u8>> {
        self.parts.iter().rev().find_map(|part| match part.role {
            Role::Machine(name) => Some(name::undo_unit_escape(name)),
            _ => None,
        })
    }

    /// The id of the user whose slice or manager this lies in.
    pub fn user(&self) -> Option<u32> {
        let mut names = self.parts.iter().rev().map(|part| part.name);
        names.find_map(name::uid)
    }

    /// The id of the login session, `3` or `c1`.
    pub fn session(&self) -> Option<&'a str> {
        self.parts.iter().rev().find_map(|part| match part.role {
            Role::Session(id) => Some(id),
            _ => None,
        })
    }
}

fn unit_of<'a>(part: &Part<'a>) -> Option<&'a str> {
    match part.role {
        Role::Unit | Role::Session(_) | Role::Machine(_) => name::unit(part.name),
        _ => None,
    }
}
