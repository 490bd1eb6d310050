//! Pressure that the test makes is the pressure that is told.

use std::thread;
use std::time::Duration;

use sexton_host::{Host, clock};
use sexton_kernel_tests::hog::{Hog, come_first, last_core};
use sexton_kernel_tests::require::{Need, require};
use sexton_model::fact::pressure as fact;
use sexton_model::record::Sink;
use sexton_model::subject::Subject;
use sexton_sensors::SENSORS;

fn spin() {
    (0..1000).for_each(|_| std::hint::spin_loop());
}

#[test]
#[ignore = "needs root: run cargo xtask test kernel"]
fn two_that_share_a_core_wait_for_it() {
    require(Need::Root);
    come_first();
    let host = Host::live().expect("a mount table");
    let spec = SENSORS
        .iter()
        .find(|spec| spec.name == "pressure")
        .expect("there is one");
    let mut sensor = (spec.open)(&host).expect("this kernel tells pressure");
    let _hogs = [Hog::on(last_core(), spin), Hog::on(last_core(), spin)];
    thread::sleep(Duration::from_millis(200));
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let mut out = Sink::new(spec.name, clock::now());
        sensor.poll(&host, &mut out);
        let records = out.into_records();
        let some = records.iter().filter(|record| {
            record.subject == Subject::node()
                && record.fact() == Some(&fact::PRESSURE_CPU_SOME_RATIO)
        });
        ratios.extend(some.filter_map(|record| record.value()));
        thread::sleep(spec.every);
    }
    // One of the two always waits for the other.
    assert_eq!(ratios.len(), 2, "three looks, two intervals");
    assert!(ratios.iter().all(|ratio| *ratio > 0.9), "{ratios:?}");
}
