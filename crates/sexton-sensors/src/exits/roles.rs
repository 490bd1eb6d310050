//! What a process is to the node, by `signatures/processes.toml`.

use serde::Deserialize;
use sexton_model::glob;

/// The known roles, which come with the program.
const KNOWN: &str = include_str!("../../../../signatures/processes.toml");

/// All roles.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Roles {
    #[serde(rename = "role")]
    roles: Vec<Role>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "proofs are for the tests"))]
struct Role {
    role: String,
    source: String,
    #[serde(default)]
    comm: Vec<String>,
    #[serde(default)]
    cgroup: Vec<String>,
    hits: Vec<Proof>,
    misses: Vec<Proof>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "proofs are for the tests"))]
struct Proof {
    comm: String,
    #[serde(default)]
    cgroup: String,
}

impl Roles {
    /// The roles we know. The error says where the file is wrong.
    pub(super) fn known() -> Result<Self, String> {
        Self::parse(KNOWN)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let parsed: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for role in &parsed.roles {
            if role.comm.is_empty() && role.cgroup.is_empty() {
                return Err(format!("role {:?} fits everything", role.role));
            }
            if role.hits.is_empty() || role.misses.is_empty() {
                return Err(format!("role {:?} is without proof", role.role));
            }
        }
        Ok(parsed)
    }

    /// The first role that fits.
    pub(super) fn of(&self, comm: &[u8], cgroup: &[u8]) -> Option<&str> {
        let role = self.roles.iter().find(|role| role.fits(comm, cgroup))?;
        Some(&role.role)
    }
}

impl Role {
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
        let known = Roles::known().expect("the file is right");
        for role in &known.roles {
            assert!(role.source.starts_with("https://"), "{}", role.source);
            for hit in &role.hits {
                let found = known.of(hit.comm.as_bytes(), hit.cgroup.as_bytes());
                assert_eq!(found, Some(role.role.as_str()), "{hit:?}");
            }
            for miss in &role.misses {
                let fits = role.fits(miss.comm.as_bytes(), miss.cgroup.as_bytes());
                assert!(!fits, "{miss:?} is {}", role.role);
            }
        }
    }

    fn check_refused(text: &str, because: &str) {
        let error = Roles::parse(text).expect_err("it is wrong");
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
