//! Which other names a link may give a unit.

use std::path::Path;

use crate::unit_file::name::{self, Form};

/// A link may give a unit another name of the same sort and form, and a template an instance.
pub(crate) fn validate(link: &Path, target: &Path) -> Result<(), String> {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let (link, target) = (
        name(link).unwrap_or_default(),
        name(target).unwrap_or_default(),
    );
    let (link_form, target_form) = (name::form(&link), name::form(&target));
    let fits = match (link_form, target_form) {
        (Some(Form::Instance), Some(Form::Template)) => true,
        (Some(Form::Instance), Some(Form::Instance)) => {
            name::instance(&link) == name::instance(&target)
        }
        (Some(one), Some(other)) => one == other,
        _ => false,
    };
    if fits && name::sort(&link) == name::sort(&target) && name::may_alias(name::sort(&link)) {
        Ok(())
    } else {
        Err(format!(
            "it leads to {target}, which it cannot be another name of"
        ))
    }
}
