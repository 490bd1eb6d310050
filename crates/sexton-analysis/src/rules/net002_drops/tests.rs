use sexton_model::gap::Gap;
use sexton_model::record::Sink;

use super::*;
use crate::testing::{Watch, at};

/// A counter that has these values, 5 s apart.
fn counter(watch: &mut Watch, fact: &'static Fact, subject: &Subject, values: &[u64]) {
    for (i, value) in values.iter().enumerate() {
        let mut out = Sink::new("network", at(100 + 5 * i as u64));
        out.sample(subject, fact, *value as f64);
        watch.add(out);
    }
}

fn judged(fact: &'static Fact, subject: &Subject, values: &[u64]) -> Vec<Finding> {
    let mut watch = Watch::new(100, 60);
    counter(&mut watch, fact, subject, values);
    watch.judge(&RULE).findings
}

fn titles(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|finding| finding.title.as_str()).collect()
}

#[test]
fn a_listener_that_does_not_accept_is_named() {
    let mut watch = Watch::new(100, 60);
    let node = Subject::node();
    let values = [7, 19, 31, 46];
    counter(&mut watch, &fact::NETWORK_LISTEN_OVERFLOWS, &node, &values);
    let mut out = Sink::new("network", at(110));
    let says = ListenQueue {
        address: "127.0.0.1:8080".into(),
        queued: 6,
        backlog: 5,
        full: true,
        pid: Some(812),
        comm: Some("gunicorn".into()),
        cgroup: Some("/system.slice/web.service".into()),
        ..ListenQueue::default()
    };
    let process = Subject::new(SubjectKind::Process, "812");
    out.event(at(110), &process, &LISTEN_QUEUE, says);
    watch.add(out);
    let found = watch.judge(&RULE).findings;
    assert_eq!(
        titles(&found),
        [
            "web.service (gunicorn) does not accept connections at 127.0.0.1:8080 fast enough: \
          39 in 15 s dropped"
        ]
    );
    assert_eq!(
        found[0].subject,
        Subject::new(SubjectKind::Unit, "web.service")
    );
    assert!(found[0].touches(&process));
}

#[test]
fn overflows_without_a_full_queue_accuse_nobody() {
    let node = Subject::node();
    let found = judged(&fact::NETWORK_LISTEN_OVERFLOWS, &node, &[0, 9, 18, 27]);
    assert_eq!(
        titles(&found),
        ["new connections are dropped because a listen queue is full: 27 in 15 s"]
    );
}

#[test]
fn drops_that_do_not_grow_are_innocent() {
    let node = Subject::node();
    for fact in [
        &fact::NETWORK_LISTEN_OVERFLOWS,
        &fact::NETWORK_BACKLOG_DROPS,
        &fact::NETWORK_CONNTRACK_DROPS,
    ] {
        // Many from before, and one burst.
        assert!(judged(fact, &node, &[9_000, 9_000, 9_900, 9_900, 9_900]).is_empty());
        // A few now and then.
        assert!(judged(fact, &node, &[1, 2, 3, 4, 5]).is_empty());
        // A counter that began anew.
        assert!(judged(fact, &node, &[9_000, 0, 0, 0, 0]).is_empty());
    }
}

#[test]
fn a_trickle_over_hours_is_innocent_and_a_bad_minute_within_them_is_not() {
    let node = Subject::node();
    let judged = |values: &[u64]| {
        let mut watch = Watch::new(100, 7_200);
        counter(&mut watch, &fact::NETWORK_BACKLOG_DROPS, &node, values);
        watch.judge(&RULE).findings
    };
    let mut values: Vec<u64> = (0..1_440).collect();
    assert!(judged(&values).is_empty());
    let from = 700;
    for (i, value) in values[from..].iter_mut().enumerate() {
        *value += 30 * (i as u64).min(5);
    }
    assert_eq!(judged(&values).len(), 1);
}

#[test]
fn links_that_are_set_up_now_and_then_do_not_flap() {
    let device = Subject::new(SubjectKind::Device, "eth0");
    let mut values = vec![2; 200];
    values.extend(vec![4; 200]);
    values.extend(vec![6; 200]);
    assert!(judged(&NIC_CARRIER_CHANGES, &device, &values).is_empty());
}

#[test]
fn a_watch_of_two_samples_says_nothing() {
    let node = Subject::node();
    let mut watch = Watch::new(100, 6);
    counter(&mut watch, &fact::NETWORK_BACKLOG_DROPS, &node, &[0, 500]);
    let told = watch.judge(&RULE);
    let [why] = &told.not_judged[..] else {
        panic!("{told:?}");
    };
    assert_eq!(
        why.because,
        "its counters were read twice, it takes 4 times to show"
    );
}

#[test]
fn an_agent_that_looks_once_a_minute_sees_what_goes_on() {
    let node = Subject::node();
    let mut watch = Watch::new(100, 600);
    for i in 0..10 {
        let mut out = Sink::new("network", at(100 + 60 * i));
        let n = 40 * i as u32;
        out.sample(&node, &fact::NETWORK_BACKLOG_DROPS, f64::from(n));
        watch.add(out);
    }
    assert_eq!(watch.judge(&RULE).findings.len(), 1);
}

#[test]
fn a_counter_that_cannot_be_read_is_no_good_sign() {
    let node = Subject::node();
    let mut watch = Watch::new(100, 60);
    counter(&mut watch, &fact::NETWORK_BACKLOG_DROPS, &node, &[0; 12]);
    let mut out = Sink::new("network", at(100));
    let text = "cannot read /proc/net/netstat: permission denied";
    out.gap(&node, Gap::new("network", Why::Denied, text));
    watch.add(out);
    let told = watch.judge(&RULE);
    assert_eq!(told.not_judged[0].because, text);
}

#[test]
fn backlogs_rings_and_tracked_connections() {
    let node = Subject::node();
    let grows = [0, 100, 200, 300];
    let found = judged(&fact::NETWORK_BACKLOG_DROPS, &node, &grows);
    assert_eq!(
        titles(&found),
        ["the kernel drops received packets: the backlog of a core is full: 300 in 15 s"]
    );
    let found = judged(&fact::NETWORK_CONNTRACK_DROPS, &node, &grows);
    assert_eq!(
        titles(&found),
        ["connection tracking drops packets of new connections: 300 in 15 s"]
    );
    let device = Subject::new(SubjectKind::Device, "eth0");
    let found = judged(&fact::NIC_RING_DROPS, &device, &grows);
    assert_eq!(
        titles(&found),
        ["eth0 drops received packets: its ring is full: 300 in 15 s"]
    );
}

#[test]
fn a_link_that_flaps_is_told_and_one_that_was_set_up_is_not() {
    let device = Subject::new(SubjectKind::Device, "eth0");
    let found = judged(&NIC_CARRIER_CHANGES, &device, &[2, 4, 6]);
    assert_eq!(
        titles(&found),
        ["the link of eth0 goes down and comes back: 4 changes in 10 s"]
    );
    assert!(judged(&NIC_CARRIER_CHANGES, &device, &[2, 4, 4]).is_empty());
}

#[test]
fn without_the_sensor_it_is_not_judged() {
    let said = Watch::blind("network", "no procfs").judge(&RULE);
    assert_eq!(said.not_judged.len(), 1);
}
