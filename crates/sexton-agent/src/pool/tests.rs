use super::*;
use sexton_model::fact::memcg::MEMCG_LIVE;
use sexton_model::record::Body;

fn spec(open: fn(&Host) -> Result<Box<dyn Sensor>, Gap>) -> &'static SensorSpec {
    Box::leak(Box::new(SensorSpec {
        name: "test",
        watches: "nothing",
        emits: &[],
        every: Duration::from_millis(10),
        deadline: Duration::from_millis(50),
        examine: |_| Vec::new(),
        open,
    }))
}

/// A sensor that does this at every poll.
struct Does(fn(&mut Sink));

impl Sensor for Does {
    fn poll(&mut self, _: &Host, out: &mut Sink) {
        (self.0)(out);
    }
}

/// Runs a pool of this one sensor for a while.
fn run(open: fn(&Host) -> Result<Box<dyn Sensor>, Gap>) -> Vec<Record> {
    let host = Arc::new(Host::live().expect("a mount table"));
    let mut pool = SensorPool::start(&host, &[Member::new(spec(open))]);
    let mut records = pool.collect(Duration::from_millis(200));
    records.extend(pool.stop());
    records
}

fn gaps(records: &[Record]) -> Vec<&Why> {
    let gaps = records.iter().filter_map(|record| match &record.body {
        Body::Gap(gap) => Some(&gap.why),
        _ => None,
    });
    gaps.collect()
}

#[test]
fn a_sensor_is_polled_on_its_beat() {
    let records = run(|_| {
        Ok(Box::new(Does(|out| {
            out.sample(&Subject::node(), &MEMCG_LIVE, 7.0)
        })))
    });
    let n = records
        .iter()
        .filter(|record| record.value() == Some(7.0))
        .count();
    assert!(
        (5..=25).contains(&n),
        "{n} polls in 200 ms at one each 10 ms"
    );
    assert!(gaps(&records).is_empty());
    assert!(
        records
            .iter()
            .any(|record| record.fact() == Some(&SEXTON_POLL_NS))
    );
}

#[test]
fn a_stuck_sensor_is_one_gap() {
    let records = run(|_| {
        Ok(Box::new(Does(|_| {
            thread::sleep(Duration::from_millis(400))
        })))
    });
    assert_eq!(gaps(&records), [&Why::Overrun]);
}

#[test]
fn getting_ready_may_take_longer_than_a_poll() {
    let records = run(|_| {
        // Longer than until the next look at who is late.
        thread::sleep(Duration::from_millis(400));
        Ok(Box::new(Does(|_| {})))
    });
    assert!(gaps(&records).is_empty(), "{records:?}");
}

#[test]
fn a_first_answer_is_waited_for() {
    let records = run(|_| {
        thread::sleep(FAREWELL + Duration::from_millis(500));
        Ok(Box::new(Does(|out| {
            out.sample(&Subject::node(), &MEMCG_LIVE, 7.0)
        })))
    });
    let n = records
        .iter()
        .filter(|one| one.value() == Some(7.0))
        .count();
    assert_eq!(n, 1, "{records:?}");
    assert!(gaps(&records).is_empty(), "{records:?}");
}

#[test]
fn a_panicking_sensor_is_benched() {
    let records = run(|_| Ok(Box::new(Does(|_| panic!("as this test wants")))));
    // Printing where it panicked may take longer than its deadline; that is told, too.
    let gaps = gaps(&records);
    assert_eq!(
        gaps.iter().filter(|why| **why == &Why::Bug).count(),
        1,
        "{gaps:?}"
    );
}

#[test]
fn a_sensor_that_cannot_run_says_why() {
    let records = run(|_| Err(Gap::new("test", Why::Unsupported, "not here")));
    assert_eq!(gaps(&records), [&Why::Unsupported]);
}

#[test]
fn a_sensor_that_was_stopped_comes_back_when_it_has_ended() {
    let host = Arc::new(Host::live().expect("a mount table"));
    let test = spec(|_| {
        Ok(Box::new(Does(|out| {
            out.sample(&Subject::node(), &MEMCG_LIVE, 7.0)
        })))
    });
    let mut pool = SensorPool::start(&host, &[Member::new(test)]);
    assert!(pool.bring_back("test", 0).is_none(), "it is at work");
    assert_eq!(pool.shed("test", "it costs too much").len(), 1);
    let until = Instant::now() + FAREWELL;
    while !pool.at_work().is_empty() && Instant::now() < until {
        pool.collect(Duration::from_millis(10));
    }
    let back = pool.bring_back("test", 12).expect("it had ended");
    let Body::Gap(gap) = &back[0].body else {
        panic!("{back:?}");
    };
    assert!(gap.text.contains("12 minutes"), "{}", gap.text);
    let seen = pool.collect(Duration::from_millis(200));
    assert!(seen.iter().any(|record| record.value() == Some(7.0)));
}
