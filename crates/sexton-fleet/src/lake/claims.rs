//! Which rows count: each report once, by the first file that has it; and of which node each
//! row tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use ahash::AHashMap;
use sexton_lake::{File, LakeError, SCHEMA, TextColumn, column, day_of, day_of_path, kind};

use super::{Problems, Window};
use crate::parallel;

/// A row that does not count.
pub const NO_NODE: u32 = u32::MAX;

const US_PER_HOUR: i64 = 3_600_000_000;
/// Boots of one machine follow each other; both may have reported one hour.
const MAX_OVERLAP_US: i64 = US_PER_HOUR;

/// A row group, and what its rows are about.
pub struct Group {
    /// The path of its file.
    pub path: Arc<str>,
    /// Its file.
    pub file: Arc<File>,
    /// Which row group of it.
    pub group: usize,
    /// The node of each row, or [`NO_NODE`].
    pub nodes: Vec<u32>,
    /// The time of each row.
    pub at_us: Vec<i64>,
    /// Whether a row is a report; a finding if not.
    pub is_report: Vec<bool>,
}

/// Row groups with their nodes.
pub struct Claimed {
    /// The row groups.
    pub groups: Vec<Group>,
    /// The names of nodes.
    pub names: Vec<String>,
    /// How many reports count.
    pub n_reports: usize,
}

/// What the first look at a row group gives.
struct Look {
    path: Arc<str>,
    file: Arc<File>,
    group: usize,
    nodes: TextColumn,
    boots: TextColumn,
    kinds: TextColumn,
    /// The time of each row; none if it does not count.
    at_us: Vec<Option<i64>>,
    n_newer: usize,
    n_nameless: usize,
    n_wrong_day: usize,
    n_later: usize,
    /// A node of these.
    later_node: Option<Arc<str>>,
}

pub(super) fn claim(
    files: Vec<(String, Arc<File>)>,
    span_us: i64,
    limit_us: i64,
    problems: &mut Problems,
) -> (Claimed, Window) {
    let groups = files.into_iter().flat_map(|(path, file)| {
        let path: Arc<str> = path.into();
        let n_groups = file.n_groups();
        (0..n_groups).map(move |group| (path.clone(), file.clone(), group))
    });
    let groups: Vec<_> = groups.collect();
    let looked = parallel::map(&groups, |(path, file, group)| {
        look(path, file, *group, limit_us).map_err(|error| (path.to_string(), error.to_string()))
    });
    // A file counts as a whole or not at all.
    let broken: Vec<String> = looked
        .iter()
        .filter_map(|looked| Some(looked.as_ref().err()?.0.clone()))
        .collect();
    let mut looks = Vec::new();
    for looked in looked {
        match looked {
            Ok(look) if !broken.iter().any(|path| **path == *look.path) => looks.push(look),
            Ok(_) => {}
            Err(problem) => problems.unreadable.push(problem),
        }
    }
    let last = looks
        .iter()
        .flat_map(|look| look.at_us.iter().flatten())
        .max();
    let to_us = last.map_or(0, |at| at.saturating_add(US_PER_HOUR));
    let window = Window {
        from_us: to_us.saturating_sub(span_us),
        to_us,
    };
    (counted(looks, window, problems), window)
}

fn look(path: &Arc<str>, file: &Arc<File>, group: usize, limit_us: i64) -> Result<Look, LakeError> {
    let schema = file.numbers(group, column::SCHEMA)?;
    // A NaN is no newer.
    let is_newer = |version: &&f64| **version > f64::from(SCHEMA);
    let mut look = Look {
        path: path.clone(),
        file: file.clone(),
        group,
        nodes: file.texts(group, column::NODE)?,
        boots: file.texts(group, column::BOOT)?,
        kinds: file.texts(group, column::KIND)?,
        at_us: file.times(group, column::AT)?,
        n_newer: schema.iter().filter(is_newer).count(),
        n_nameless: 0,
        n_wrong_day: 0,
        n_later: 0,
        later_node: None,
    };
    look.leave_out(limit_us);
    Ok(look)
}

impl Look {
    /// Rows that cannot count must not say which time is looked at either.
    fn leave_out(&mut self, limit_us: i64) {
        let mut days = Days {
            day: day_of_path(&self.path).unwrap_or_default().to_owned(),
            last: None,
        };
        for (row, time) in self.at_us.iter_mut().enumerate() {
            let node = self.nodes.values.get(self.nodes.ids[row] as usize);
            let (Some(node), Some(at)) = (node, *time) else {
                self.n_nameless += 1;
                *time = None;
                continue;
            };
            if !days.is_of(at) {
                self.n_wrong_day += 1;
                *time = None;
            } else if at >= limit_us {
                self.n_later += 1;
                self.later_node.get_or_insert_with(|| node.clone());
                *time = None;
            }
        }
    }

    fn say(&self, problems: &mut Problems) {
        problems.n_newer += self.n_newer;
        problems.n_nameless += self.n_nameless;
        problems.n_wrong_day += self.n_wrong_day;
        if let Some(node) = &self.later_node {
            let known = problems.later_rows.get_or_insert((0, node.to_string()));
            known.0 += self.n_later;
        }
    }
}

/// A boot of a node: from its first report to its last.
struct Boot {
    name: Arc<str>,
    first_us: i64,
    last_us: i64,
}

#[derive(Default)]
struct Boots {
    by_name: AHashMap<(Arc<str>, Arc<str>), u32>,
    all: Vec<Boot>,
}

impl Boots {
    fn find(&mut self, name: &Arc<str>, boot: &Arc<str>) -> u32 {
        let key = (name.clone(), boot.clone());
        *self.by_name.entry(key).or_insert_with(|| {
            self.all.push(Boot {
                name: name.clone(),
                first_us: i64::MAX,
                last_us: i64::MIN,
            });
            (self.all.len() - 1) as u32
        })
    }
}

/// Who reported which time first.
#[derive(Default)]
struct Claims {
    boots: Boots,
    /// Of each boot, the claims of its times, in their order.
    owners: Vec<Vec<Claim>>,
    n_reports: usize,
}

/// Which file told of a time first, and whether its report was seen.
struct Claim {
    at: i64,
    file: u32,
    is_seen: bool,
}

impl Claims {
    /// Whether a row counts.
    fn claim(&mut self, boot: u32, at: i64, file: u32, is_report: bool) -> bool {
        if self.owners.len() <= boot as usize {
            self.owners.resize_with(boot as usize + 1, Vec::new);
        }
        let claims = &mut self.owners[boot as usize];
        // Reports of a boot mostly come in the order of time.
        let place = match claims.last() {
            Some(last) if last.at < at => Err(claims.len()),
            _ => claims.binary_search_by_key(&at, |claim| claim.at),
        };
        let place = place.unwrap_or_else(|place| {
            let claim = Claim {
                at,
                file,
                is_seen: false,
            };
            claims.insert(place, claim);
            place
        });
        let owner = &mut claims[place];
        if owner.file != file || is_report && owner.is_seen {
            return false;
        }
        if is_report {
            owner.is_seen = true;
            self.n_reports += 1;
            let boot = &mut self.boots.all[boot as usize];
            boot.first_us = boot.first_us.min(at);
            boot.last_us = boot.last_us.max(at);
        }
        true
    }
}

fn counted(looks: Vec<Look>, window: Window, problems: &mut Problems) -> Claimed {
    let mut claims = Claims::default();
    let mut files: AHashMap<Arc<str>, u32> = AHashMap::new();
    let mut groups = Vec::new();
    for look in looks {
        look.say(problems);
        let next = files.len() as u32;
        let file = *files.entry(look.path.clone()).or_insert(next);
        groups.push(count_group(look, file, window, &mut claims, problems));
    }
    let (names, node_of_boot) = nodes_of(&claims.boots.all, problems);
    for group in &mut groups {
        for node in &mut group.nodes {
            if *node != NO_NODE {
                *node = node_of_boot[*node as usize];
            }
        }
    }
    Claimed {
        groups,
        names,
        n_reports: claims.n_reports,
    }
}

/// Whether times are of the day of a folder. Most are of the day of the row before.
struct Days {
    day: String,
    last: Option<(i64, bool)>,
}

impl Days {
    fn is_of(&mut self, at: i64) -> bool {
        let number = at.div_euclid(24 * US_PER_HOUR);
        if let Some((known, is_of_day)) = self.last
            && known == number
        {
            return is_of_day;
        }
        let is_of_day = day_of(at) == self.day;
        self.last = Some((number, is_of_day));
        is_of_day
    }
}

/// Finds whose each row is, and whether it counts.
fn count_group(
    look: Look,
    file: u32,
    window: Window,
    claims: &mut Claims,
    problems: &mut Problems,
) -> Group {
    let unknown: Arc<str> = Arc::from("");
    let mut kinds = look.kinds.values.iter();
    let report_id = kinds.position(|kind| **kind == *kind::REPORT);
    let n_rows = look.nodes.len();
    let mut nodes = vec![NO_NODE; n_rows];
    let mut is_report = vec![false; n_rows];
    // Rows of a node follow each other: most are of the boot of the row before.
    let mut last_boot: Option<((u32, u32), u32)> = None;
    for row in 0..n_rows {
        is_report[row] = Some(look.kinds.ids[row] as usize) == report_id;
        let name = look.nodes.values.get(look.nodes.ids[row] as usize);
        let (Some(name), Some(at)) = (name, look.at_us[row]) else {
            continue;
        };
        if at < window.from_us || at >= window.to_us {
            continue;
        }
        let ids = (look.nodes.ids[row], look.boots.ids[row]);
        let boot = match last_boot {
            Some((known, boot)) if known == ids => boot,
            _ => {
                let boot = look.boots.values.get(ids.1 as usize);
                claims.boots.find(name, boot.unwrap_or(&unknown))
            }
        };
        last_boot = Some((ids, boot));
        if claims.claim(boot, at, file, is_report[row]) {
            nodes[row] = boot;
        } else {
            problems.n_duplicates += usize::from(is_report[row]);
        }
    }
    let at_us = look.at_us.into_iter().map(Option::unwrap_or_default);
    let at_us = at_us.collect();
    Group {
        path: look.path,
        file: look.file,
        group: look.group,
        nodes,
        at_us,
        is_report,
    }
}

/// Boots of one name that follow each other are one node. Boots at the same time are
/// several machines.
fn nodes_of(boots: &[Boot], problems: &mut Problems) -> (Vec<String>, Vec<u32>) {
    let mut by_name: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, boot) in boots.iter().enumerate() {
        if boot.first_us <= boot.last_us {
            by_name.entry(&boot.name).or_default().push(at);
        }
    }
    let mut names = Vec::new();
    let mut node_of_boot = vec![NO_NODE; boots.len()];
    for (name, mut of_name) in by_name {
        of_name.sort_by_key(|at| (boots[*at].first_us, *at));
        // The last report of each machine so far.
        let mut machines: Vec<(u32, i64)> = Vec::new();
        for at in of_name {
            let boot = &boots[at];
            let machine = machines
                .iter_mut()
                .find(|(_, last)| boot.first_us + MAX_OVERLAP_US > *last);
            match machine {
                Some((node, last)) => {
                    node_of_boot[at] = *node;
                    *last = boot.last_us.max(*last);
                }
                None => {
                    node_of_boot[at] = names.len() as u32;
                    machines.push((names.len() as u32, boot.last_us));
                    names.push(match machines.len() {
                        1 => name.to_owned(),
                        n => format!("{name}#{n}"),
                    });
                }
            }
        }
        if machines.len() > 1 {
            problems
                .shared_names
                .push((name.to_owned(), machines.len()));
        }
    }
    (names, node_of_boot)
}
