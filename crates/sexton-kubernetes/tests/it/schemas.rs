//! What `deploy/kubernetes` has is what API servers of all supported versions take: checked
//! against their schemas, in which a misspelt field is an error. `tests/real` has a real API server
//! take it, of one version.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The interpreter that `cargo xtask test setup` prepares.
fn python() -> PathBuf {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(tree, PathBuf::from);
    let python = target.join("python/bin/python");
    let imports = Command::new(&python)
        .args(["-c", "import kubernetes_validate, yaml"])
        .output();
    match imports {
        Ok(output) if output.status.success() => python,
        Ok(_) => panic!(
            "sexton-missing: python: it has no kubernetes-validate and yaml; run cargo xtask test setup"
        ),
        Err(_) => panic!("sexton-missing: python: none was prepared; run cargo xtask test setup"),
    }
}

#[test]
fn all_that_is_deployed_fits_the_schemas() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(python())
        .arg(here.join("tests/it/schemas.py"))
        .arg(here.join("../../deploy/kubernetes"))
        .output()
        .expect("it starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(said["wrong"], serde_json::json!([]), "{said:#}");
    // A kind that is skipped and is not there any more would hide a misspelt one.
    assert_eq!(said["skipped"], said["known"]);
    let versions = said["versions"].as_array().expect("a list");
    for version in ["1.25", "1.36"] {
        assert!(versions.iter().any(|it| it == version), "{versions:?}");
    }
    let per_version = said["checked"].as_u64().expect("a count") / versions.len() as u64;
    assert!(per_version >= 60, "only {per_version} documents");
}
