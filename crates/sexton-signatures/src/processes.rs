//! What a process is to the node, by `signatures/processes.toml`.

use std::path::Path;

use serde::Deserialize;
use sexton_model::glob;

use crate::SignatureError;

/// The known roles, which come with the program.
const KNOWN: &str = include_str!("../../../signatures/processes.toml");

/// All roles.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roles {
    #[serde(rename = "role")]
    roles: Vec<Role>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Role {
    role: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the file"))]
    source: String,
    #[serde(default)]
    comm: Vec<String>,
    #[serde(default)]
    cgroup: Vec<String>,
    hits: Vec<Proof>,
    misses: Vec<Proof>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proof {
    comm: String,
    #[serde(default)]
    cgroup: String,
}

impl Roles {
    /// The roles that sexton brings.
    pub fn built_in() -> Result<Self, SignatureError> {
        let mut all = Self { roles: Vec::new() };
        all.add_file(Path::new("processes.toml"), KNOWN)?;
        Ok(all)
    }

    /// Adds a file. A role of the same name takes the place of the one that is there.
    pub fn add_file(&mut self, path: &Path, text: &str) -> Result<(), SignatureError> {
        let parsed: Self = crate::parse(path, text)?;
        for role in parsed.roles {
            role.check().map_err(|what| SignatureError::Malformed {
                path: path.display().to_string(),
                what: format!("role {:?} {what}", role.role),
            })?;
            self.roles.retain(|known| known.role != role.role);
            self.roles.push(role);
        }
        Ok(())
    }

    /// The first role that fits.
    pub fn of(&self, comm: &[u8], cgroup: &[u8]) -> Option<&str> {
        let role = self.roles.iter().find(|role| role.fits(comm, cgroup))?;
        Some(&role.role)
    }
}

impl Role {
    fn check(&self) -> Result<(), String> {
        if self.comm.is_empty() && self.cgroup.is_empty() {
            return Err("fits everything".to_owned());
        }
        if self.hits.is_empty() || self.misses.is_empty() {
            return Err("is without proof".to_owned());
        }
        let fits = |proof: &&Proof| self.fits(proof.comm.as_bytes(), proof.cgroup.as_bytes());
        if let Some(hit) = self.hits.iter().find(|proof| !fits(proof)) {
            return Err(format!("misses its hit {hit:?}"));
        }
        match self.misses.iter().find(fits) {
            Some(miss) => Err(format!("fits its miss {miss:?}")),
            None => Ok(()),
        }
    }

    fn fits(&self, comm: &[u8], cgroup: &[u8]) -> bool {
        let any = |patterns: &[String], text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            patterns.is_empty() || patterns.iter().any(|one| glob::matches(one, &text))
        };
        any(&self.comm, comm) && any(&self.cgroup, cgroup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_holds_its_proofs() {
        let known = Roles::built_in().expect("the file is right");
        for role in &known.roles {
            assert!(role.source.starts_with("https://"), "{}", role.source);
            for hit in &role.hits {
                let found = known.of(hit.comm.as_bytes(), hit.cgroup.as_bytes());
                assert_eq!(found, Some(role.role.as_str()), "{hit:?}");
            }
        }
    }

    fn check_refused(text: &str, because: &str) {
        let mut none = Roles { roles: Vec::new() };
        let error = none.add_file(Path::new("x.toml"), text);
        let error = error.expect_err("it is wrong").to_string();
        assert!(error.contains(because), "{error}");
    }

    #[test]
    fn a_wrong_file_is_an_error() {
        let proofs = "hits = [{comm = 'a'}]\nmisses = [{comm = 'b'}]\n";
        check_refused("[[role]]\nrole = 'x'\n", "missing field");
        check_refused(
            &format!("[[role]]\nrole = 'x'\nsource = 'y'\ncomms = ['a']\n{proofs}"),
            "unknown field `comms`",
        );
        check_refused(
            &format!("[[role]]\nrole = 'x'\nsource = 'y'\n{proofs}"),
            "fits everything",
        );
        check_refused(
            "[[role]]\nrole = 'x'\nsource = 'y'\ncomm = ['a']\nhits = []\nmisses = []\n",
            "without proof",
        );
    }
}
