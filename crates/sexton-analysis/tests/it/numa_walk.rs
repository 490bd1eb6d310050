//! The founding incident on a kernel that walks every dying cgroup: one chain, joined by what
//! was measured.

use sexton_analysis::{Policy, judge};
use sexton_model::diagnosis::{Diagnosis, State};
use sexton_model::finding::{Confidence, FindingId, Stance};
use sexton_model::record::Record;
use sexton_model::timeline::Records;
use sexton_testkit::story;

const STORY: &str = include_str!("../../../../fixtures/synthetic/5.4-numa-walk/story.toml");

fn judged(keep: impl Fn(&Record) -> bool) -> Diagnosis {
    let records = story::read(STORY);
    let kept = records
        .iter()
        .filter(|record| keep(record))
        .cloned()
        .collect();
    judge(&Records::new(kept), &Policy::default())
}

fn ids(chain: &[FindingId]) -> Vec<&str> {
    chain.iter().map(FindingId::as_str).collect()
}

#[test]
fn from_the_unit_to_the_lost_job_in_one_chain() {
    let diagnosis = judged(|_| true);
    assert_eq!(diagnosis.state, State::CauseFound);
    assert_eq!(
        ids(&diagnosis.chains[0]),
        [
            "UNIT002:ecs.service",
            "CTR001:amazon/amazon-ecs-agent:latest",
            "MCG001:/docker/<id>",
            "CPU002:kubelet",
            "CPU001:3",
            "NET001:3",
            "NIC001:ens5",
            "JOB001:c1",
        ]
    );
    let walk = diagnosis
        .links
        .iter()
        .find(|link| link.effect.as_str() == "CPU002:kubelet");
    let walk = walk.expect("joined");
    assert_eq!(walk.confidence, Confidence::CERTAIN);
    assert!(
        walk.evidence.iter().all(|one| one.stance == Stance::For),
        "{walk:#?}"
    );
    for word in ["ecs.service", "raylet failed", "ens5 reset"] {
        assert!(diagnosis.headline.contains(word), "{}", diagnosis.headline);
    }
}

#[test]
fn where_the_reads_are_quick_the_chains_stay_apart() {
    let mut diagnosis =
        judged(|record| record.fact().is_none_or(|fact| fact.name != "memcg_reads"));
    // Without a measurement the walk that was seen still makes it likely.
    let walk = diagnosis
        .links
        .iter()
        .find(|link| link.effect.as_str() == "CPU002:kubelet");
    assert_eq!(walk.map(|link| link.confidence), Some(Confidence::LIKELY));
    let quick = STORY
        .replace("124000000", "60000")
        .replace("1013000000", "70000");
    let records = story::read(&quick.replace("7600000", "60000"));
    diagnosis = judge(&records, &Policy::default());
    assert!(
        !diagnosis
            .links
            .iter()
            .any(|link| link.effect.as_str() == "CPU002:kubelet")
    );
    let roots: Vec<&str> = diagnosis
        .chains
        .iter()
        .map(|chain| chain[0].as_str())
        .collect();
    assert!(
        roots.contains(&"CPU002:kubelet") && roots.contains(&"UNIT002:ecs.service"),
        "{roots:?}"
    );
    assert_eq!(
        diagnosis.separations.len(),
        1,
        "{:#?}",
        diagnosis.separations
    );
}

#[test]
fn the_order_of_records_changes_nothing() {
    let records = story::read(STORY);
    let mut turned: Vec<Record> = records.iter().cloned().collect();
    turned.reverse();
    let turned = judge(&Records::new(turned), &Policy::default());
    let straight = judge(&records, &Policy::default());
    assert_eq!(format!("{turned:?}"), format!("{straight:?}"));
}

#[test]
fn less_sight_accuses_nobody_else_and_is_never_surer() {
    let whole = judged(|_| true);
    let sensors = ["cores", "klog", "napi", "nics", "stacks", "exits", "memcg"];
    for blind in sensors {
        let part = judged(|record| record.sensor != blind && *record.subject.name != *blind);
        for finding in &part.findings {
            let known = whole.finding(&finding.id());
            let known = known.unwrap_or_else(|| panic!("without {blind}: {}", finding.id()));
            assert!(
                finding.confidence <= known.confidence,
                "without {blind}: {}",
                finding.id()
            );
        }
    }
}
