//! What tracefs says of a tracepoint: which fields its programs are given, and where.

use std::path::PathBuf;

use crate::{Host, HostError};

/// Where tracefs is when the mount table does not show it: below debugfs it is mounted
/// when someone looks.
const PLACES: [&str; 2] = ["kernel/tracing", "kernel/debug/tracing"];

/// One field of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Bytes from the start.
    pub offset: usize,
    /// Bytes it takes.
    pub size: usize,
}

/// The fields of a tracepoint, `cgroup/cgroup_mkdir`.
pub fn fields(host: &Host, tracepoint: &str) -> Result<Vec<Field>, HostError> {
    let path = tracefs(host)?
        .join("events")
        .join(tracepoint)
        .join("format");
    let text = host.read_text(&path)?;
    let fields: Option<Vec<Field>> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("field:"))
        .map(parse)
        .collect();
    fields
        .filter(|fields| !fields.is_empty())
        .ok_or_else(|| HostError::Malformed {
            path,
            what: "its fields are not written as we know it".to_owned(),
        })
}

fn tracefs(host: &Host) -> Result<PathBuf, HostError> {
    if let Some(mount) = host.mounts().of_type("tracefs") {
        return Ok(mount.point.clone());
    }
    for below in PLACES {
        let place = host.sys(below)?;
        if host.list(place.join("events")).is_ok() {
            return Ok(place);
        }
    }
    Err(HostError::NotMounted("tracefs"))
}

/// `__data_loc char[] path; offset:24; size:4; signed:0;`, with tabs between.
fn parse(line: &str) -> Option<Field> {
    let mut parts = line.split(';').map(str::trim);
    let declared = parts.next()?;
    let name = declared.rsplit([' ', '*']).next()?;
    let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
    Some(Field {
        name: name.split('[').next()?.to_owned(),
        offset: number("offset:")?,
        size: number("size:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<(&str, usize, usize)>) {
        let field = parse(line);
        let shown = field
            .as_ref()
            .map(|field| (field.name.as_str(), field.offset, field.size));
        assert_eq!(shown, expected);
    }

    #[test]
    fn fields_of_a_format() {
        check(
            "unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;",
            Some(("common_type", 0, 2)),
        );
        check(
            "__data_loc char[] path;\toffset:24;\tsize:4;\tsigned:0;",
            Some(("path", 24, 4)),
        );
        check(
            "char comm[16];\toffset:8;\tsize:16;\tsigned:0;",
            Some(("comm", 8, 16)),
        );
        check("char *name;\toffset:8;\tsize:8;", Some(("name", 8, 8)));
        check("int root;\toffset:x;\tsize:4;", None);
        check("int root", None);
    }
}
