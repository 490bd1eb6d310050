//! What many nodes have in common is kept once, by its content: the units of a node with
//! their states, and its software. A report names a set by its digest.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::error::LakeError;
use crate::read::File;
use crate::table::{Cell, Table};
use crate::write::{MAX_REPORT_BYTES, parquet_of};

/// Members of a set, at most.
const MAX_MEMBERS: usize = 8192;
/// Bytes of a name or a value, at most.
const MAX_TEXT: usize = 200;

/// What a member of a set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A unit; its value is its state: `active`, `failed`.
    Unit,
    /// The file of a unit; its value is its state: `enabled`, `masked`.
    UnitFile,
    /// A package; its value is its version, if that is known.
    Package,
}

impl Kind {
    /// Its name in a set.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::UnitFile => "unit_file",
            Self::Package => "package",
        }
    }

    fn by_name(name: &str) -> Option<Self> {
        [Self::Unit, Self::UnitFile, Self::Package]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A member of a set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub item: String,
    /// Its state or version; empty if that is not known.
    pub value: String,
}

/// Members, each once, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    members: BTreeSet<Member>,
    n_left_out: usize,
}

impl Set {
    /// Adds a member. Texts are cut, and members beyond the bound are left out and counted.
    pub fn add(&mut self, kind: Kind, item: &str, value: &str) {
        if self.members.len() >= MAX_MEMBERS {
            self.n_left_out += 1;
            return;
        }
        self.members.insert(Member {
            kind,
            item: cut(item),
            value: cut(value),
        });
    }

    /// Its members.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.iter()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// How many found no room.
    pub fn n_left_out(&self) -> usize {
        self.n_left_out
    }

    /// The digest of its members: its name in the lake.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for member in &self.members {
            for text in [member.kind.name(), &member.item, &member.value] {
                hash.update((text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
        }
        let hex = hash.finalize();
        hex.iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Its file.
    pub fn parquet(&self) -> Result<Vec<u8>, LakeError> {
        let mut table = Table::default();
        self.rows(&mut table);
        let bytes = parquet_of(table)?;
        match bytes.len() {
            bytes if bytes > 4 * MAX_REPORT_BYTES => Err(LakeError::TooLarge {
                bytes,
                most: 4 * MAX_REPORT_BYTES,
            }),
            _ => Ok(bytes),
        }
    }

    /// Reads a file, and holds it to the digest that it is named by.
    pub fn read(bytes: Bytes, digest: &str) -> Result<Self, LakeError> {
        let mut sets = Self::read_all(bytes)?;
        sets.remove(digest)
            .ok_or_else(|| LakeError::Malformed("its content does not match its name".to_owned()))
    }

    /// Reads a file of many sets. One whose content is not that of its digest is left out.
    pub fn read_all(bytes: Bytes) -> Result<HashMap<String, Self>, LakeError> {
        let file = File::open(bytes)?;
        let mut sets: HashMap<String, Self> = HashMap::new();
        for group in 0..file.n_groups() {
            let columns = ["set", "kind", "item", "value"].map(|name| file.texts(group, name));
            let [names, kinds, items, values] = columns;
            let (names, kinds, items, values) = (names?, kinds?, items?, values?);
            for row in 0..kinds.len() {
                let kind = kinds.get(row).and_then(Kind::by_name);
                let (Some(name), Some(kind), Some(item)) = (names.get(row), kind, items.get(row))
                else {
                    continue;
                };
                let value = values.get(row).unwrap_or_default();
                match sets.get_mut(name) {
                    Some(set) => set.add(kind, item, value),
                    None => {
                        let mut set = Self::default();
                        set.add(kind, item, value);
                        sets.insert(name.to_owned(), set);
                    }
                }
            }
        }
        sets.retain(|digest, set| set.digest() == *digest);
        Ok(sets)
    }

    /// Adds its rows to a table.
    pub fn rows(&self, table: &mut Table) {
        let digest: Arc<str> = self.digest().into();
        for member in &self.members {
            let text = |text: &str| Cell::Text(text.into());
            table.push([
                ("set", Cell::Text(digest.clone())),
                ("kind", text(member.kind.name())),
                ("item", text(&member.item)),
                ("value", text(&member.value)),
            ]);
        }
    }
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> Set {
        let mut set = Set::default();
        set.add(Kind::Unit, "ecs.service", "active");
        set.add(Kind::Package, "amazon-ecs-init", "1.82.0");
        set.add(Kind::UnitFile, "ecs.service", "enabled");
        set
    }

    #[test]
    fn a_set_is_read_as_it_was_written() {
        let set = set();
        let bytes = Bytes::from(set.parquet().unwrap());
        assert_eq!(Set::read(bytes, &set.digest()).unwrap(), set);
    }

    #[test]
    fn a_set_under_another_name_is_refused() {
        let bytes = Bytes::from(set().parquet().unwrap());
        let mut other = set();
        other.add(Kind::Unit, "ssh.service", "active");
        let refused = Set::read(bytes, &other.digest());
        assert!(
            matches!(refused, Err(LakeError::Malformed(_))),
            "{refused:?}"
        );
    }

    #[test]
    fn members_are_bounded() {
        let mut set = Set::default();
        for n in 0..MAX_MEMBERS + 7 {
            set.add(Kind::Package, &format!("{n}{}", "x".repeat(300)), "");
        }
        assert_eq!((set.members().count(), set.n_left_out()), (MAX_MEMBERS, 7));
    }
}
