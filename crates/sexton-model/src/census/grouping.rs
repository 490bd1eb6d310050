//! Puts alike cgroups together: `/docker/<id>` x 68,412, never 70,000 lines.

use std::collections::{BTreeMap, HashMap};

use super::tree::{Cgroup, CgroupIx, CgroupTree, Pages, State};
use crate::origin::{Origin, pattern_component as mask};

/// So many siblings alike that have nothing below them become one group.
const ALIKE_LEAVES: usize = 2;

/// So many siblings alike become one group when they have cgroups below them or
/// are systemd services. Higher, because `job-1` and `job-2` may well be two
/// different stories; two hundred of them are one.
const ALIKE_PARENTS: usize = 8;

/// An empty directory younger than this may still be about to be used.
///
/// Chosen: far above the seconds in which runtimes and systemd fill or remove the
/// cgroups they make.
const LEAKED_AGE_SECONDS: u64 = 3600;

/// Fewer empty directories alike than this are somebody's own arrangement.
const LEAKED_ALIKE: usize = 10;

/// Cgroups that are alike.
#[derive(Debug, Clone)]
pub struct OriginGroup {
    /// Their path, with `<id>`, `<hex>`, `<n>` for what differs.
    pub pattern: Vec<u8>,
    /// The path of one of them.
    pub example: Vec<u8>,
    /// The systemd unit they are in, if the path tells; masked like the pattern.
    pub unit: Option<String>,
    /// Images of those whose container a runtime still knows, most frequent first.
    pub images: Vec<(String, u64)>,
    /// With a directory, leaked ones included.
    pub live: u64,
    /// Those of the live ones that look forgotten.
    pub leaked: u64,
    /// Those of the live ones that are empty, and too young to look forgotten.
    pub young_empty: u64,
    /// Without a directory.
    pub dying: u64,
    /// Pages of the dying ones; `None` where the method does not show them.
    pub pages: Option<Pages>,
    /// Dying ones without a page of their own that are held by dying ones below.
    pub held_by_children: u64,
    /// Dying ones without a page and with nothing below: on their way out, or held
    /// by something that is not a page, such as a socket.
    pub without_pin: u64,
    /// Age of the oldest dying one, where the kernel keeps it.
    pub oldest_seconds: Option<u64>,
}

impl OriginGroup {
    /// Who made them, as the path of one of them tells.
    pub fn origin(&self) -> Origin<'_> {
        Origin::of(&self.example)
    }
}

/// All cgroups of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitGroup {
    /// The unit; `None` for what is in no unit.
    pub unit: Option<String>,
    /// With a directory.
    pub live: u64,
    /// Those of the live ones that look forgotten.
    pub leaked: u64,
    /// Without a directory.
    pub dying: u64,
    /// Pages of the dying ones; `None` where the method does not show them.
    pub pages: Option<Pages>,
    /// Age of the oldest dying one.
    pub oldest_seconds: Option<u64>,
}

/// Sums the groups up by unit, most dying first.
pub fn by_unit(origins: &[OriginGroup]) -> Vec<UnitGroup> {
    let mut units: HashMap<Option<String>, UnitGroup> = HashMap::new();
    for origin in origins {
        let unit = units
            .entry(origin.unit.clone())
            .or_insert_with(|| UnitGroup {
                unit: origin.unit.clone(),
                live: 0,
                leaked: 0,
                dying: 0,
                pages: origin.pages.map(|_| Pages::default()),
                oldest_seconds: None,
            });
        unit.live += origin.live;
        unit.leaked += origin.leaked;
        unit.dying += origin.dying;
        unit.pages = unit.pages.zip(origin.pages).map(|(sum, more)| sum + more);
        unit.oldest_seconds = unit.oldest_seconds.max(origin.oldest_seconds);
    }
    let mut units: Vec<UnitGroup> = units.into_values().collect();
    units.sort_by(|a, b| (b.dying, b.live, &a.unit).cmp(&(a.dying, a.live, &b.unit)));
    units
}

/// Marks live directories that look forgotten: empty, old, and many alike.
pub(super) fn mark_leaked(tree: &mut CgroupTree) {
    let groups = group(tree);
    let mut candidates: Vec<Vec<CgroupIx>> = vec![Vec::new(); groups.list.len()];
    for (ix, _) in tree.iter().filter(|(_, cgroup)| looks_forgotten(cgroup)) {
        candidates[groups.of[ix.index()]].push(ix);
    }
    for members in candidates
        .iter()
        .filter(|members| members.len() >= LEAKED_ALIKE)
    {
        for ix in members {
            tree.get_mut(*ix).state = State::Leaked;
        }
    }
}

fn looks_forgotten(cgroup: &Cgroup) -> bool {
    let is_old = |age| age >= LEAKED_AGE_SECONDS;
    is_empty(cgroup) && cgroup.age_seconds.is_some_and(is_old)
}

fn is_young_and_empty(cgroup: &Cgroup) -> bool {
    let is_young = |age| age < LEAKED_AGE_SECONDS;
    is_empty(cgroup) && cgroup.age_seconds.is_some_and(is_young)
}

/// Whether it has a directory and nothing in it. The root is never empty.
fn is_empty(cgroup: &Cgroup) -> bool {
    let has_directory = cgroup.state != State::Dying && cgroup.parent.is_some();
    has_directory && !cgroup.populated && !cgroup.has_children
}

/// The groups, most dying first, and the place of each cgroup's group among them, in the
/// order of the tree.
pub(super) fn origins(
    tree: &CgroupTree,
    images: &HashMap<String, String>,
) -> (Vec<OriginGroup>, Vec<u32>) {
    let groups = group(tree);
    let mut origins: Vec<OriginGroup> = (0..groups.list.len())
        .map(|at| empty_origin(tree, &groups, at))
        .collect();
    for (ix, cgroup) in tree.iter() {
        let origin = &mut origins[groups.of[ix.index()]];
        match cgroup.state {
            State::Live => {
                origin.live += 1;
                origin.young_empty += u64::from(is_young_and_empty(cgroup));
            }
            State::Leaked => {
                origin.live += 1;
                origin.leaked += 1;
            }
            State::Dying => {
                origin.dying += 1;
                *origin.pages.get_or_insert_default() += cgroup.pages;
                origin.oldest_seconds = origin.oldest_seconds.max(cgroup.age_seconds);
                match (cgroup.pages.holding(), cgroup.has_children) {
                    (0, true) => origin.held_by_children += 1,
                    (0, false) => origin.without_pin += 1,
                    _ => {}
                }
            }
        }
        if !images.is_empty()
            && let Some(image) = container_id(tree.name(ix)).and_then(|id| images.get(id))
        {
            note_image(&mut origin.images, image);
        }
    }
    for origin in &mut origins {
        origin.images.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    }
    sorted(origins, &groups.of)
}

/// Most dying first, and the new place of each cgroup's group.
fn sorted(origins: Vec<OriginGroup>, of: &[usize]) -> (Vec<OriginGroup>, Vec<u32>) {
    let mut placed: Vec<(usize, OriginGroup)> = origins.into_iter().enumerate().collect();
    placed.sort_by(|(_, a), (_, b)| {
        (b.dying, b.leaked, b.live, &a.pattern).cmp(&(a.dying, a.leaked, a.live, &b.pattern))
    });
    let mut place = vec![0; placed.len()];
    for (new, (old, _)) in placed.iter().enumerate() {
        place[*old] = new as u32;
    }
    let origins = placed.into_iter().map(|(_, origin)| origin).collect();
    (origins, of.iter().map(|group| place[*group]).collect())
}

fn note_image(images: &mut Vec<(String, u64)>, image: &str) {
    match images.iter_mut().find(|(known, _)| known == image) {
        Some((_, n)) => *n += 1,
        None => images.push((image.to_owned(), 1)),
    }
}

fn empty_origin(tree: &CgroupTree, groups: &Groups, at: usize) -> OriginGroup {
    let pattern = groups.pattern(at);
    let example = tree.path(groups.list[at].example);
    OriginGroup {
        unit: unit_of(&example, &pattern),
        example,
        pattern,
        images: Vec::new(),
        live: 0,
        leaked: 0,
        young_empty: 0,
        dying: 0,
        pages: Some(Pages::default()),
        held_by_children: 0,
        without_pin: 0,
        oldest_seconds: None,
    }
}

/// The unit that the path of a member tells, masked where the pattern is.
fn unit_of(example: &[u8], pattern: &[u8]) -> Option<String> {
    let unit = Origin::of(example).host_unit()?;
    let components =
        |path: &[u8]| -> Vec<Vec<u8>> { path.split(|b| *b == b'/').map(<[u8]>::to_vec).collect() };
    let at = components(example)
        .iter()
        .rposition(|name| name.ends_with(unit.as_bytes()))?;
    let masked = components(pattern).swap_remove(at);
    let whole = masked.ends_with(unit.as_bytes());
    Some(if whole {
        unit.to_owned()
    } else {
        String::from_utf8_lossy(&masked).into_owned()
    })
}

/// The container id in a cgroup's name: 64 hexadecimal digits in a row.
fn container_id(name: &[u8]) -> Option<&str> {
    const LEN: usize = 64;
    let id = name
        .windows(LEN)
        .find(|run| run.iter().all(u8::is_ascii_hexdigit))?;
    std::str::from_utf8(id).ok()
}

/// One group, as a node of the tree of groups.
struct Group {
    parent: Option<usize>,
    name: Vec<u8>,
    example: CgroupIx,
}

struct Groups {
    list: Vec<Group>,
    /// The group of each cgroup, in the order of the tree.
    of: Vec<usize>,
}

impl Groups {
    fn pattern(&self, at: usize) -> Vec<u8> {
        let mut names = Vec::new();
        let mut group = &self.list[at];
        while let Some(parent) = group.parent {
            names.push(&group.name);
            group = &self.list[parent];
        }
        let mut pattern = Vec::new();
        for name in names.iter().rev() {
            pattern.push(b'/');
            pattern.extend_from_slice(name);
        }
        if pattern.is_empty() {
            pattern.push(b'/');
        }
        pattern
    }
}

/// Groups level by level: what counts as siblings are the children of one group.
fn group(tree: &CgroupTree) -> Groups {
    let mut groups = Groups {
        list: Vec::new(),
        of: vec![0; tree.len()],
    };
    for level in levels(tree) {
        // Ordered, so that the same tree gives the same groups every time.
        let mut alike: BTreeMap<(Option<usize>, Vec<u8>), Vec<CgroupIx>> = BTreeMap::new();
        for ix in level {
            let parent = tree.get(ix).parent.map(|parent| groups.of[parent.index()]);
            alike
                .entry((parent, mask(tree.name(ix))))
                .or_default()
                .push(ix);
        }
        for ((parent, masked), siblings) in &alike {
            place(tree, &mut groups, *parent, masked, siblings);
        }
    }
    groups
}

/// The cgroups of each level, from the root down.
fn levels(tree: &CgroupTree) -> Vec<Vec<CgroupIx>> {
    let mut levels: Vec<Vec<CgroupIx>> = Vec::new();
    for ((ix, _), depth) in tree.iter().zip(tree.depths()) {
        let depth = depth as usize;
        levels.resize_with(levels.len().max(depth + 1), Vec::new);
        levels[depth].push(ix);
    }
    levels
}

/// Makes one group of siblings alike if there are enough of them, else one for each
/// name.
fn place(
    tree: &CgroupTree,
    groups: &mut Groups,
    parent: Option<usize>,
    masked: &[u8],
    siblings: &[CgroupIx],
) {
    let one = is_one_story(tree, masked, siblings);
    let mut made: HashMap<&[u8], usize> = HashMap::new();
    for ix in siblings {
        let name = if one { masked } else { tree.name(*ix) };
        let at = *made.entry(name).or_insert_with(|| {
            groups.list.push(Group {
                parent,
                name: name.to_vec(),
                example: *ix,
            });
            groups.list.len() - 1
        });
        groups.of[ix.index()] = at;
    }
}

/// Whether siblings whose names differ only in numbers belong together.
fn is_one_story(tree: &CgroupTree, masked: &[u8], siblings: &[CgroupIx]) -> bool {
    let leaves = siblings.iter().all(|ix| !tree.get(*ix).has_children);
    let needed = if leaves && !masked.ends_with(b".service") {
        ALIKE_LEAVES
    } else {
        ALIKE_PARENTS
    };
    let first = tree.name(siblings[0]);
    siblings.len() >= needed && siblings.iter().any(|ix| tree.name(*ix) != first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::census::{Census, Hierarchy, Method};

    /// A census of these paths; one with `!` before it is dying, one with `~` is a
    /// live directory that is empty and a day old.
    fn census(paths: &[String]) -> Census {
        let mut census = Census::new(Method::BpfWalk, Hierarchy::V2, 4096);
        let mut known: HashMap<String, CgroupIx> = HashMap::new();
        known.insert(String::new(), census.tree.push(None, b"/"));
        for line in paths {
            let path = line.trim_start_matches(['!', '~']);
            let (parent, name) = path.rsplit_once('/').expect("an absolute path");
            let parent = known[parent];
            census.tree.get_mut(parent).has_children = true;
            let ix = census.tree.push(Some(parent), name.as_bytes());
            let cgroup = census.tree.get_mut(ix);
            cgroup.populated = !line.starts_with('~');
            cgroup.age_seconds = Some(if line.starts_with('~') { 86_400 } else { 60 });
            if line.starts_with('!') {
                cgroup.state = State::Dying;
                cgroup.pages.file = 1;
            }
            known.insert(path.to_owned(), ix);
        }
        let image = |id: &str| (id.to_owned(), "ecs-agent:latest".to_owned());
        census.summarize(&HashMap::from([image(&format!("{:064x}", 0xace0001u32))]));
        census
    }

    /// Expects these `dying/live pattern` lines, in this order; the root and its
    /// plain children are left out.
    fn check(paths: &[String], expected: &[&str]) -> Census {
        let census = census(paths);
        let lines: Vec<String> = census
            .origins
            .iter()
            .filter(|group| group.dying > 0 || group.live > 1)
            .map(|group| {
                format!(
                    "{}/{} {}",
                    group.dying,
                    group.live,
                    String::from_utf8_lossy(&group.pattern)
                )
            })
            .collect();
        assert_eq!(lines, expected);
        census
    }

    fn lines(prefix: &str, n: u32, form: impl Fn(u32) -> String) -> Vec<String> {
        (0..n).map(|i| format!("{prefix}{}", form(i))).collect()
    }

    #[test]
    fn containers_alike_are_one_line_with_their_image() {
        let mut paths = vec!["/docker".to_owned()];
        paths.extend(lines("!/docker/", 500, |i| {
            format!("{:064x}", 0xace0000u32 + i)
        }));
        let census = check(&paths, &["500/0 /docker/<id>"]);
        assert_eq!(
            census.origins[0].images,
            [("ecs-agent:latest".to_owned(), 1)]
        );
        assert_eq!(census.origins[0].origin().kind().to_string(), "container");
    }

    #[test]
    fn one_unit_that_comes_back_is_one_line() {
        let mut paths = vec!["/system.slice".to_owned()];
        paths.extend(lines("!/system.slice/", 40, |_| "ecs.service".into()));
        paths.push("/system.slice/ecs.service".into());
        let census = check(&paths, &["40/1 /system.slice/ecs.service"]);
        assert_eq!(census.origins[0].unit.as_deref(), Some("ecs.service"));
    }

    #[test]
    fn few_parents_alike_stay_apart() {
        let mut paths = vec!["/job-1".to_owned(), "/job-2".to_owned()];
        paths.extend(lines("!/job-1/", 30, |i| format!("step-{i}")));
        paths.extend(lines("!/job-2/", 20, |i| format!("step-{i}")));
        check(&paths, &["30/0 /job-1/step-<n>", "20/0 /job-2/step-<n>"]);
    }

    #[test]
    fn many_parents_alike_are_one_line() {
        let mut paths = lines("!/", 9, |i| format!("job-{i}"));
        paths.extend(lines("!/", 9, |i| format!("job-{i}/step")));
        check(&paths, &["9/0 /job-<n>", "9/0 /job-<n>/step"]);
    }

    #[test]
    fn units_alike_stay_apart_unless_there_are_many() {
        let unit = |i| format!("worker@{i}.service");
        let few: Vec<String> = lines("!/", 2, unit);
        check(&few, &["1/0 /worker@0.service", "1/0 /worker@1.service"]);
        let census = check(&lines("!/", 20, unit), &["20/0 /worker@<n>.service"]);
        assert_eq!(
            census.origins[0].unit.as_deref(),
            Some("worker@<n>.service")
        );
    }

    #[test]
    fn old_empty_directories_are_leaked_when_there_are_many() {
        let leaked = |n| {
            census(&lines("~/", n, |i| format!("run-{i}.scope")))
                .counts
                .leaked
        };
        assert_eq!(leaked(9), Some(0));
        assert_eq!(leaked(10), Some(10));
        let busy = census(&lines("/", 50, |i| format!("run-{i}.scope")));
        assert_eq!(busy.counts.leaked, Some(0));
    }

    #[test]
    fn units_are_summed_up() {
        let mut paths = vec![
            "/system.slice".to_owned(),
            "/system.slice/a.service".to_owned(),
        ];
        paths.extend(lines("!/system.slice/a.service/", 3, |i| format!("w{i}")));
        paths.extend(lines("!/", 2, |i| format!("by-hand-{i}")));
        let units = by_unit(&census(&paths).origins);
        let summed: Vec<_> = units
            .iter()
            .map(|unit| (unit.unit.as_deref(), unit.dying, unit.live))
            .collect();
        assert_eq!(summed, [(Some("a.service"), 3, 1), (None, 2, 2)]);
    }
}
