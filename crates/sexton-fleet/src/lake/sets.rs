//! Fetches the sets that reports name.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use sexton_lake::{FOLDER_OF_SETS, Set, path_of_set};

use super::Problems;
use crate::bucket::{Bucket, Entry};
use crate::parallel;

/// Sets by the number of their digest.
#[derive(Debug, Default)]
pub struct Sets(pub Vec<Option<Set>>);

/// All sets of a bucket that are asked for, by digest.
#[derive(Debug, Default)]
pub struct AllSets(HashMap<String, Set>);

impl AllSets {
    /// Fetches sets: from files of many, then one by one. What is missing or damaged is said,
    /// and unknown.
    pub fn fetch(bucket: &Bucket, digests: &[&Arc<str>], problems: &mut Problems) -> Result<Self> {
        let parts = bucket.files_in(FOLDER_OF_SETS)?;
        let parts: Vec<Entry> = parts
            .into_iter()
            .filter(|part| part.path.contains("/part-"))
            .collect();
        let contents = bucket.get_all(&parts);
        let contents: Vec<_> = parts.iter().zip(contents).collect();
        let mut all = HashMap::new();
        let read = parallel::map(&contents, |(part, content)| {
            let sets = match content {
                Ok(bytes) => Set::read_all(bytes.clone()).map_err(|error| error.to_string()),
                Err(error) => Err(format!("{error:#}")),
            };
            sets.map_err(|why| (part.path.clone(), why))
        });
        for read in read {
            match read {
                Ok(sets) => all.extend(sets),
                Err(problem) => problems.missing_sets.push(problem),
            }
        }
        let missing: Vec<&&Arc<str>> = digests
            .iter()
            .filter(|digest| !all.contains_key(&****digest))
            .collect();
        let entries: Vec<Entry> = missing.iter().map(|digest| entry(digest)).collect();
        for (digest, content) in missing.into_iter().zip(bucket.get_all(&entries)) {
            let set = match content {
                Ok(bytes) if is_digest(digest) => {
                    Set::read(bytes, digest).map_err(|error| error.to_string())
                }
                Ok(_) => Err("it is not a digest".to_owned()),
                Err(_) => Err("it is not in the bucket".to_owned()),
            };
            match set {
                Ok(set) => {
                    all.insert(digest.to_string(), set);
                }
                Err(why) => problems.missing_sets.push((path_of_set(digest), why)),
            }
        }
        Ok(Self(all))
    }

    /// Rows of a table: digest, kind, item, value.
    pub fn rows(&self) -> Vec<[String; 4]> {
        let rows = self.0.iter().flat_map(|(digest, set)| {
            set.members().map(move |member| {
                let kind = member.kind.name().to_owned();
                [
                    digest.clone(),
                    kind,
                    member.item.clone(),
                    member.value.clone(),
                ]
            })
        });
        let mut rows: Vec<[String; 4]> = rows.collect();
        rows.sort();
        rows
    }

    /// Those of these digests, in their order.
    pub fn of(&self, digests: &[Arc<str>]) -> Sets {
        let sets = digests.iter().map(|digest| self.0.get(&**digest).cloned());
        Sets(sets.collect())
    }
}

fn is_digest(digest: &str) -> bool {
    digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn entry(digest: &str) -> Entry {
    let name = match is_digest(digest) {
        true => digest,
        false => "none",
    };
    Entry {
        path: path_of_set(name),
        bytes: 0,
    }
}
