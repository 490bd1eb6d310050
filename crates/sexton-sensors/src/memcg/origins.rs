//! Tells what a census knows of the cgroups that are alike.

use std::borrow::Cow;

use sexton_model::census::{Census, CloseUp, OriginGroup, OriginPin};
use sexton_model::fact::memcg as fact;
use sexton_model::record::{Detail, Sink};
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

use crate::details::detail;

/// Groups that are told; the census has them all. Those with most dying come first.
const TOP: usize = 10;

/// Files that are told as the pins of a group.
const PINS: [&str; 3] = ["pin_1", "pin_2", "pin_3"];

/// Tells of the groups with most dying ones, and of those with most leaked ones. Gives
/// back the closer look at the first.
pub(super) fn tell(census: &Census, out: &mut Sink) -> Vec<CloseUp> {
    let looks = census.close_ups(TOP);
    let top = census.origins.iter().zip(&looks);
    for (origin, look) in top.filter(|(origin, _)| origin.dying > 0) {
        out.sample(&subject(origin), &fact::MEMCG_DYING, origin.dying as f64);
        tell_one(origin, look, out);
    }
    let mut leaked: Vec<&OriginGroup> = census
        .origins
        .iter()
        .enumerate()
        .filter(|(place, origin)| origin.leaked > 0 && (*place >= TOP || origin.dying == 0))
        .map(|(_, origin)| origin)
        .collect();
    leaked.sort_by_key(|origin| std::cmp::Reverse(origin.leaked));
    for origin in leaked.into_iter().take(TOP) {
        tell_one(origin, &CloseUp::default(), out);
    }
    looks
}

fn subject(origin: &OriginGroup) -> Subject {
    Subject::new(SubjectKind::Cgroup, escape(&origin.pattern))
}

fn tell_one(origin: &OriginGroup, look: &CloseUp, out: &mut Sink) {
    let mut details = vec![
        detail("pattern", escape(&origin.pattern)),
        detail("example", escape(&origin.example)),
        detail("kind", origin.origin().kind()),
    ];
    details.extend(
        origin
            .unit
            .as_ref()
            .map(|unit| detail("unit", escape(unit.as_bytes()))),
    );
    if let Some((image, n)) = origin.images.first() {
        details.push(detail("image", escape(image.as_bytes())));
        details.push(detail("n_image", n));
    }
    let counts = [
        ("live", origin.live),
        ("dying", origin.dying),
        ("leaked", origin.leaked),
    ];
    details.extend(counts.map(|(key, n)| detail(key, n)));
    if let Some(pages) = origin.pages {
        let kinds = [
            ("pages", pages.holding()),
            ("file", pages.file),
            ("shmem", pages.shmem),
            ("anon", pages.anon),
            ("other", pages.unevictable + pages.swap),
            ("held_by_children", origin.held_by_children),
            ("without_pin", origin.without_pin),
        ];
        details.extend(kinds.map(|(key, n)| detail(key, n)));
    }
    details.extend(
        origin
            .oldest_seconds
            .map(|age| detail("oldest_seconds", age)),
    );
    if !look.ages.is_empty() {
        let ages: Vec<String> = look.ages.iter().map(u64::to_string).collect();
        details.push(detail("ages", ages.join(" ")));
    }
    details.extend(
        PINS.iter()
            .zip(&look.pins)
            .map(|(key, pin)| pinned(key, pin)),
    );
    out.event(out.now(), &subject(origin), &fact::MEMCG_ORIGIN, details);
}

/// `211 shmem /dev/shm/out-<n>`
fn pinned(key: &'static str, pin: &OriginPin) -> Detail {
    let deleted = if pin.deleted { "deleted-" } else { "" };
    let path = escape(&pin.path);
    let text = format!("{} {deleted}{} {path}", pin.zombies, pin.kind.name());
    (Cow::Borrowed(key), text)
}
