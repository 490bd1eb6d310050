//! Tells what a census knows of the cgroups that are alike.

use sexton_model::census::{Census, CloseUp, OriginGroup, OriginPin};
use sexton_model::fact::memcg::{self as fact, MemcgOrigin, Pin};
use sexton_model::record::Sink;
use sexton_model::subject::{Subject, SubjectKind};
use sexton_model::text::escape;

/// Groups that are told; the census has them all. Those with most dying come first.
const TOP: usize = 10;

/// Files that are told as the pins of a group.
const MAX_PINS: usize = 3;

/// Fewer young empty ones alike are not told by themselves: what is being started, or has just
/// ended.
const MANY_EMPTY: u64 = 100;

/// Tells of the groups with most dying ones, and of those with most leaked and empty ones. Gives
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
        .filter(|(_, origin)| origin.leaked > 0 || origin.young_empty >= MANY_EMPTY)
        .filter(|(place, origin)| *place >= TOP || origin.dying == 0)
        .map(|(_, origin)| origin)
        .collect();
    leaked.sort_by_key(|origin| std::cmp::Reverse(origin.leaked + origin.young_empty));
    for origin in leaked.into_iter().take(TOP) {
        tell_one(origin, &CloseUp::default(), out);
    }
    looks
}

fn subject(origin: &OriginGroup) -> Subject {
    Subject::new(SubjectKind::Cgroup, escape(&origin.pattern))
}

fn tell_one(origin: &OriginGroup, look: &CloseUp, out: &mut Sink) {
    let image = origin.images.first();
    let pages = origin.pages;
    let says = MemcgOrigin {
        pattern: Some(escape(&origin.pattern)),
        example: Some(escape(&origin.example)),
        kind: Some(origin.origin().kind().to_string()),
        unit: origin.unit.as_ref().map(|unit| escape(unit.as_bytes())),
        image: image.map(|(image, _)| escape(image.as_bytes())),
        n_image: image.map(|(_, n)| *n),
        live: Some(origin.live),
        dying: Some(origin.dying),
        leaked: Some(origin.leaked),
        young_empty: Some(origin.young_empty),
        pages: pages.map(|pages| pages.holding()),
        file: pages.map(|pages| pages.file),
        shmem: pages.map(|pages| pages.shmem),
        anon: pages.map(|pages| pages.anon),
        other: pages.map(|pages| pages.unevictable + pages.swap),
        held_by_children: pages.map(|_| origin.held_by_children),
        without_pin: pages.map(|_| origin.without_pin),
        oldest_seconds: origin.oldest_seconds,
        ages: look.ages.clone(),
        pins: look.pins.iter().take(MAX_PINS).map(pin).collect(),
    };
    out.event(out.now(), &subject(origin), &fact::MEMCG_ORIGIN, says);
}

fn pin(pin: &OriginPin) -> Pin {
    let deleted = if pin.deleted { "deleted-" } else { "" };
    Pin {
        zombies: pin.zombies,
        kind: format!("{deleted}{}", pin.kind.name()),
        path: escape(&pin.path),
    }
}
