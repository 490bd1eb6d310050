//! The list of all that is in the binary, in the form of CycloneDX: the crates that it was linked
//! from, by cargo, and the C libraries of the machine that built it, by dpkg.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{Release, sha256, write};
use crate::{command, workspace};

/// Libraries that are linked into it, by the packages that bring them.
pub(super) const LIBRARIES: &[&str] = &["libc6-dev", "libelf-dev", "zlib1g-dev", "libgcc-12-dev"];

/// Of the binary of a package; `name` is what it is called where it is put.
pub(super) fn make(release: &Release, package: &str, name: &str, libraries: &[&str]) -> Result<()> {
    let mut cargo = workspace::cargo(&["metadata", "--format-version=1", "--locked"]);
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = command::output(cargo.args(["--filter-platform", &target]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is no JSON")?;
    let linked = linked(&metadata, package)?;
    let packages = metadata["packages"].as_array().context("packages")?;
    let is_linked = |package: &&Value| package["id"].as_str().is_some_and(|id| linked.contains(id));
    let mut components: Vec<Value> = packages.iter().filter(is_linked).map(component).collect();
    components.extend(libraries.iter().filter_map(|package| library(package)));
    let sbom = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": {
            "type": "application", "name": package, "version": release.version,
            "bom-ref": package,
            "hashes": [{ "alg": "SHA-256", "content": sha256(&release.out.join(name))? }],
        } },
        "components": components,
    });
    let file = release.out.join(format!("{name}.cdx.json"));
    write(&file, &serde_json::to_string_pretty(&sbom)?, 0o644)
}

/// The crates that the binary of a package is linked from: what it uses, and what that uses, without what only
/// builds or tests need.
fn linked<'a>(metadata: &'a Value, package: &str) -> Result<BTreeSet<&'a str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("nodes")?;
    let nodes: BTreeMap<&str, &Value> = nodes
        .iter()
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let packages = metadata["packages"].as_array().context("packages")?;
    let ours = packages.iter().find(|known| known["name"] == *package);
    let ours = ours.and_then(|known| known["id"].as_str());
    let mut waiting = vec![ours.with_context(|| format!("there is no package {package}"))?];
    let mut linked = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !linked.insert(id) {
            continue;
        }
        let uses = nodes.get(id).and_then(|node| node["deps"].as_array());
        for used in uses.into_iter().flatten() {
            let kinds = used["dep_kinds"].as_array();
            let is_linked =
                kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()));
            waiting.extend(used["pkg"].as_str().filter(|_| is_linked));
        }
    }
    Ok(linked)
}

fn component(package: &Value) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let mut component = json!({
        "type": "library",
        "bom-ref": text("id"),
        "name": text("name"),
        "version": text("version"),
        "purl": format!("pkg:cargo/{}@{}", text("name"), text("version")),
    });
    if let Some(license) = package["license"].as_str() {
        // Written with a slash before there were expressions.
        component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
    }
    component
}

/// A library by its package, on a machine that has one of that name.
fn library(package: &str) -> Option<Value> {
    let mut dpkg = Command::new("dpkg-query");
    dpkg.args(["--show", "--showformat=${Version}", package]);
    let version = command::output(&mut dpkg).ok()?;
    Some(json!({
        "type": "library",
        "bom-ref": format!("deb:{package}"),
        "name": package,
        "version": version,
        "purl": format!("pkg:deb/debian/{package}@{version}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_linked_is_listed() {
        let uses =
            |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let node = |name: &str, deps: Vec<Value>| json!({ "id": name, "deps": deps });
        let metadata = json!({
            "packages": [{ "name": "sexton", "id": "s" }, { "name": "a", "id": "a" }],
            "resolve": { "nodes": [
                node("s", vec![uses("a", Value::Null), uses("t", json!("dev"))]),
                node("a", vec![uses("b", json!("build")), uses("c", Value::Null)]),
                node("c", vec![uses("a", Value::Null)]),
            ] },
        });
        let expected: BTreeSet<&str> = ["s", "a", "c"].into();
        assert_eq!(linked(&metadata, "sexton").expect("a graph"), expected);
    }
}
