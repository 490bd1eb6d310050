//! Watches this machine with real sensors for some seconds, and judges what they said.

use std::sync::Arc;
use std::time::Duration;

use sexton_agent::{Member, SensorPool};
use sexton_analysis::Policy;
use sexton_host::Host;
use sexton_model::diagnosis::Diagnosis;
use sexton_model::record::Record;
use sexton_model::timeline::Records;
use sexton_sensors::SENSORS;

/// How often a census is taken: four in a watch of a quarter of a minute.
const CENSUS_EVERY: Duration = Duration::from_secs(4);

/// What these sensors say in so much time.
pub fn watch(sensors: &[&str], time: Duration) -> Vec<Record> {
    let host = Arc::new(Host::live().expect("a mount table"));
    let members: Vec<Member> = SENSORS
        .iter()
        .filter(|spec| sensors.contains(&spec.name))
        .map(|spec| {
            let mut member = Member::new(spec);
            if spec.name == "memcg" {
                member.every = CENSUS_EVERY;
            }
            member
        })
        .collect();
    assert_eq!(members.len(), sensors.len(), "sensors that are listed");
    let mut pool = SensorPool::start(&host, &members);
    let mut records = pool.collect(time);
    records.extend(pool.stop());
    records
}

/// What all rules say of that.
pub fn judge(records: Vec<Record>) -> Diagnosis {
    sexton_analysis::judge(&Records::new(records), &Policy::default())
}
