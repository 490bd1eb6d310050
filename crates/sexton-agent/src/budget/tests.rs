use super::*;

const BUDGET: Budget = Budget {
    cpu_ratio: 0.01,
    memory_bytes: 40 << 20,
};

/// The agent's threads, minute by minute.
struct Agent {
    meter: Meter,
    now: Moment,
    cpu: Duration,
    threads: Vec<ThreadUse>,
    at_work: Vec<&'static str>,
}

impl Agent {
    fn new() -> Self {
        let mut agent = Self {
            meter: Meter::new(),
            now: Moment::from_ns(1),
            cpu: Duration::ZERO,
            threads: Vec::new(),
            at_work: vec!["cores", "runq", "stacks", "units"],
        };
        assert!(agent.meter.measure(agent.now, agent.cpu, &[], 0).is_none());
        agent
    }

    /// A minute in which threads use this (of 10,000 of a core); what is stopped and comes back.
    fn minute(&mut self, threads: &[(&str, u32)], mib: u64) -> Vec<String> {
        self.now = self.now.after(EVERY);
        for (name, part) in threads {
            let used = EVERY * *part / 10_000;
            self.cpu += used;
            match self.threads.iter_mut().find(|it| it.name == *name) {
                Some(thread) => thread.cpu_time += used,
                None => self.threads.push(ThreadUse {
                    id: self.threads.len() as u32,
                    name: (*name).into(),
                    cpu_time: used,
                }),
            }
        }
        assert!(self.meter.is_due(self.now));
        let measured = self
            .meter
            .measure(self.now, self.cpu, &self.threads, mib << 20);
        let measured = measured.expect("a minute");
        let back = self.meter.bring_back(measured, BUDGET, false);
        let shed = self.meter.shed(measured, BUDGET, &self.at_work, self.now);
        let back = back.map(|back| format!("+{}", back.name));
        let shed = shed.map(|(name, _)| format!("-{name}"));
        back.into_iter().chain(shed).collect()
    }

    /// This many alike; what happens at which.
    fn minutes(&mut self, n: usize, threads: &[(&str, u32)]) -> Vec<(usize, String)> {
        let minutes = (0..n).flat_map(|i| {
            let turns = self.minute(threads, 10);
            turns.into_iter().map(move |turn| (i, turn))
        });
        minutes.collect()
    }
}

/// Minutes of these (percent of a core, MiB); what is shed at which.
fn check(minutes: &[(u32, u64)], expected: &[(usize, &str)]) {
    let mut agent = Agent::new();
    let mut shed = Vec::new();
    for (i, (percent, mib)) in minutes.iter().enumerate() {
        let turns = agent.minute(&[("sexton", percent * 100)], *mib);
        shed.extend(turns.into_iter().map(|turn| (i, turn)));
    }
    let shed: Vec<(usize, &str)> = shed.iter().map(|(i, turn)| (*i, turn.as_str())).collect();
    assert_eq!(shed, expected);
}

#[test]
fn nothing_is_shed_within_the_budget_nor_for_one_bad_minute() {
    check(&[(90, 10), (0, 39), (50, 10), (0, 30), (50, 10)], &[]);
}

#[test]
fn sensors_go_in_their_order_and_no_others() {
    let bad = [(50, 10); 9];
    check(&bad, &[(2, "-stacks"), (4, "-runq")]);
}

#[test]
fn memory_counts_too() {
    check(&[(0, 10), (0, 90), (0, 90)], &[(2, "-stacks")]);
}

#[test]
fn threads_that_answer_or_send_cost_no_sensor() {
    let mut agent = Agent::new();
    let asked = [
        ("sexton", 40),
        ("stacks", 30),
        ("answers", 8_000),
        ("reads", 900),
        ("export", 300),
    ];
    assert_eq!(agent.minutes(30, &asked), []);
    let measured = agent.meter.measure(
        agent.now.after(EVERY),
        agent.cpu + EVERY / 2,
        &agent.threads,
        0,
    );
    let measured = measured.expect("a minute");
    assert_eq!((measured.cpu_ratio, measured.counted_ratio), (0.5, 0.0));
}

#[test]
fn sensors_come_back_in_reverse_order_after_quiet_minutes() {
    let mut agent = Agent::new();
    let busy = [("sexton", 500), ("stacks", 30), ("runq", 10)];
    let shed = agent.minutes(5, &busy);
    assert_eq!(shed, [(2, "-stacks".into()), (4, "-runq".into())]);
    let back = agent.minutes(40, &[("sexton", 20)]);
    assert_eq!(back, [(9, "+runq".into()), (19, "+stacks".into())]);
    assert!(!agent.meter.is_shed("stacks"));
}

#[test]
fn a_sensor_without_room_for_its_former_cost_stays_away() {
    let mut agent = Agent::new();
    agent.at_work = vec!["stacks"];
    assert_eq!(agent.minutes(3, &[("sexton", 60), ("stacks", 60)]).len(), 1);
    assert_eq!(agent.minutes(100, &[("sexton", 60)]), []);
    assert_eq!(
        agent.minutes(11, &[("sexton", 20)]),
        [(9, "+stacks".into())]
    );
}

#[test]
fn what_came_back_too_early_waits_for_twice_as_long() {
    let mut agent = Agent::new();
    agent.at_work = vec!["stacks"];
    assert_eq!(agent.minutes(3, &[("sexton", 500)]).len(), 1);
    for quiet in [10, 20, 40, 80, 160, 160] {
        let back = agent.minutes(quiet, &[("sexton", 20)]);
        assert_eq!(back, [(quiet - 1, "+stacks".into())]);
        let shed = agent.minutes(2, &[("sexton", 500)]);
        assert_eq!(shed, [(1, "-stacks".into())]);
    }
}

#[test]
fn before_the_kernel_kills_it_there_is_patience_for_the_effect_only() {
    let mut meter = Meter::new();
    let at_work = ["cores", "napi", "runq"];
    let shed = [0, 2, 29, 30, 60].map(|s| {
        let now = Moment::from_ns(1).after(Duration::from_secs(s));
        meter.shed_now(&at_work, now)
    });
    assert_eq!(shed, [Some("runq"), None, None, Some("napi"), None]);
    assert!(meter.is_shed("runq") && meter.is_shed("napi"));
}
