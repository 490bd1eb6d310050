//! Whom work on a core is put down to: a container, a unit, a cgroup, or else a name.

use std::borrow::Cow;

use sexton_model::origin::Origin;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text;

use crate::words::unit_name;

/// What is known of the place of a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place<'a> {
    pub(crate) container: Option<&'a str>,
    pub(crate) unit: Option<&'a str>,
    pub(crate) cgroup: Option<&'a str>,
    pub(crate) comm: &'a str,
}

/// Where a process is that some sensor has looked up.
impl<'a> Place<'a> {
    pub(crate) fn told(
        [container, unit, cgroup]: [&'a Option<String>; 3],
        comm: &'a Option<String>,
    ) -> Self {
        Self {
            container: container.as_deref(),
            unit: unit.as_deref(),
            cgroup: cgroup.as_deref(),
            comm: comm.as_deref().unwrap_or("a process"),
        }
    }
}

impl Place<'_> {
    /// A container, if it is in one; else its unit; else its cgroup; else only its name.
    pub(crate) fn owner(self) -> Subject {
        let path = self.cgroup.map(text::unescape);
        let origin = path.as_deref().map(Origin::of);
        let by_path = origin.as_ref().and_then(|origin| origin.container());
        let container = self.container.map(Cow::Borrowed);
        let container = container.or_else(|| by_path.map(|it| Cow::Owned(it.id.to_owned())));
        if let Some(id) = container {
            return Subject::new(SubjectKind::Container, &*id);
        }
        let unit = self.cgroup.and_then(unit_name::of_path);
        if let Some(unit) = unit.or_else(|| self.unit.map(str::to_owned)) {
            return Subject::new(SubjectKind::Unit, unit);
        }
        match self.cgroup.filter(|path| *path != "/") {
            Some(path) => Subject::new(SubjectKind::Cgroup, path),
            None => Subject::new(SubjectKind::Task, self.comm),
        }
    }
}

/// `build.service`, `container 0a1b2c3d4e5f`, `cgroup /a/b`, `cc1`.
pub(crate) fn words(owner: &Subject) -> String {
    match owner.kind {
        SubjectKind::Container => {
            let id = owner.name.get(..12).unwrap_or(&owner.name);
            format!("container {id}")
        }
        SubjectKind::Cgroup => format!("cgroup {}", owner.name),
        SubjectKind::Node => "the node".into(),
        _ => owner.name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: Place<'_>, kind: SubjectKind, name: &str) {
        assert_eq!(place.owner(), Subject::new(kind, name), "{place:?}");
    }

    #[test]
    fn the_narrowest_name_that_lasts_is_the_owner() {
        let comm = "cc1";
        let id = "0a1b2c3d4e5f".repeat(5) + "0a1b";
        let docker = format!("/system.slice/docker-{id}.scope");
        let of = |cgroup| Place {
            cgroup: Some(cgroup),
            comm,
            ..Place::default()
        };
        check(of(&docker), SubjectKind::Container, &id);
        check(
            of("/system.slice/build.service"),
            SubjectKind::Unit,
            "build.service",
        );
        check(of("/build"), SubjectKind::Cgroup, "/build");
        check(of("/"), SubjectKind::Task, "cc1");
        let told = Place {
            unit: Some("a.service"),
            ..of("/")
        };
        check(told, SubjectKind::Unit, "a.service");
    }
}
