//! Starts of containers, by image.

use std::collections::BTreeMap;

use sexton_model::fact::container::{CONTAINER_RUNNING, CONTAINER_STARTED, CONTAINER_YOUNG};
use sexton_model::gap::Why;
use sexton_model::moment::Moment;

use super::{Counting, silence};
use crate::gate::Seen;
use crate::gate::count::Count;
use crate::gate::policy::{GatePolicy, Limit};
use crate::words::figures::times;

pub(super) static YOUNG_CONTAINERS: Counting = Counting {
    limit: Limit {
        name: "young_containers",
        default: 2.0,
        range: (0.0, 1e6),
        title: "starts of containers of one image in a minute",
        code: "CTR001",
        why: "the slowest loop of the founding incident (10 s of life, 15 s of waiting) has 2 or \
              3 starts in a minute, its quickest 6; a pod that kubelet restarts with its delays \
              (10 s, 20 s, up to 5 min) has 3 in its first minute and one in five later. A deploy \
              may have more, and is over at the next look",
    },
    count: young_containers,
};

/// So long a container is young.
const YOUNG_NS: u64 = 60_000_000_000;

fn young_containers(seen: &Seen<'_>, _: &GatePolicy) -> Count {
    if seen.records.of(&CONTAINER_RUNNING).next().is_none() {
        return nobody_answered(seen);
    }
    let mut images: BTreeMap<String, f64> = BTreeMap::new();
    for record in seen.records.of(&CONTAINER_YOUNG) {
        let young = images.entry(record.subject.name.to_string()).or_default();
        *young = young.max(record.value().unwrap_or(0.0));
    }
    for (image, n) in starts_within_a_minute(seen) {
        let young = images.entry(image).or_default();
        *young = young.max(n);
    }
    let mut images: Vec<(String, f64)> = images.into_iter().filter(|(_, n)| *n > 0.0).collect();
    images.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let (most, why) = match images.first() {
        Some((image, n)) => (
            *n,
            format!("{image} was started {} in a minute", times(*n as usize)),
        ),
        None => (0.0, "no container was started in the last minute".into()),
    };
    let count = match unheard(seen) {
        None => Count::of(most, why),
        Some(gap) => Count::at_least(most, format!("{why}, but {gap}")),
    };
    count.about(images.into_iter().map(|(image, _)| image).collect())
}

/// Why a runtime did not answer while another did.
fn unheard<'s>(seen: &'s Seen<'_>) -> Option<&'s str> {
    let mut gaps = seen.records.gaps();
    let found = gaps.find(|(_, _, gap)| {
        let is_unseen = matches!(gap.why, Why::Denied | Why::Malformed | Why::Overrun);
        gap.sensor == "containers" && is_unseen
    });
    found.map(|(_, _, gap)| gap.text.as_str())
}

fn nobody_answered(seen: &Seen<'_>) -> Count {
    let nobody = seen
        .records
        .gaps()
        .any(|(_, _, gap)| gap.sensor == "containers" && gap.why == Why::Unsupported);
    match (nobody, seen.other_runtimes) {
        (true, []) => Count::of(0.0, "no container runtime runs here"),
        (true, others) => Count::unknown(format!("{} is here and is not asked", others.join(", "))),
        (false, _) => Count::unknown(silence(seen, "containers")),
    }
}

fn starts_within_a_minute(seen: &Seen<'_>) -> BTreeMap<String, f64> {
    let now = seen.records.span().map(|span| span.end().as_ns());
    let since = Moment::from_ns(now.unwrap_or(0).saturating_sub(YOUNG_NS));
    let mut images = BTreeMap::new();
    for record in seen.records.of(&CONTAINER_STARTED) {
        if record.at >= since {
            let image = record.says(&CONTAINER_STARTED);
            let image = image.and_then(|says| says.image.as_deref());
            let image = image.unwrap_or("an unknown image");
            *images.entry(image.to_owned()).or_insert(0.0) += 1.0;
        }
    }
    images
}
