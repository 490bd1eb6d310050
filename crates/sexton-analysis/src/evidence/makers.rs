//! Who starts very many processes, and whom these are put down to.

use std::collections::BTreeMap;

use sexton_model::fact::exit::{PROCESS_MAKER, ProcessMaker};
use sexton_model::subject::{Subject, SubjectKind};

use crate::case::Case;
use crate::evidence::owners::Place;

/// Where those that start very many processes belong. Some of these processes are known by their
/// name alone: they were gone before anyone could ask, or are in no unit or cgroup.
pub(crate) struct MakersByName<'a> {
    /// By the name of the children or of their parent; `None` for several makers.
    owners: BTreeMap<&'a str, Option<Subject>>,
}

impl<'a> MakersByName<'a> {
    pub(crate) fn of(case: &Case<'a>) -> Self {
        let mut owners: BTreeMap<&str, Option<Subject>> = BTreeMap::new();
        for event in case.events(&PROCESS_MAKER) {
            // Those that have lost their parent do not tell who made them.
            let owner = maker_owner(event.says);
            if is_orphanage(event.subject, &owner) {
                continue;
            }
            let names = [&event.says.comm, &event.says.child_comm];
            for name in names.into_iter().filter_map(|name| name.as_deref()) {
                let known = owners.entry(name).or_insert_with(|| Some(owner.clone()));
                if known.as_ref() != Some(&owner) {
                    *known = None;
                }
            }
        }
        Self { owners }
    }

    /// Whose work a process of this name is. One that is known to be in no cgroup belongs to no
    /// maker in one.
    pub(crate) fn owner(&self, comm: &str, cgroup: Option<&str>) -> Option<Subject> {
        let owner = self.owners.get(comm)?.as_ref()?;
        let fits = cgroup.is_none() || owner.kind == SubjectKind::Task;
        fits.then(|| owner.clone())
    }
}

/// Whom the children of a maker are put down to.
pub(crate) fn maker_owner(says: &ProcessMaker) -> Subject {
    let place = [&says.container, &says.unit, &says.cgroup];
    Place::told(place, &says.comm).owner()
}

/// Whether these are children of the first process that no cgroup tells apart: most of them have
/// lost the parent that made them.
pub(crate) fn is_orphanage(parent: &Subject, owner: &Subject) -> bool {
    &*parent.name == "1" && owner.kind == SubjectKind::Task
}
