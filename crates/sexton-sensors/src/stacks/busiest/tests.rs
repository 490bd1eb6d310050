use super::*;
use sexton_model::stack::CodeKind;

fn place(name: &str) -> Arc<Place> {
    Arc::new(Place {
        kind: CodeKind::Kernel,
        symbol: Some(name.into()),
        module: None,
        address: 0,
    })
}

/// Sees so many samples (pid, cpu, stack innermost first; none: in user space), then ends
/// an interval of ten seconds at 100 Hz.
fn check(samples: &[(u32, u32, &[&str], u64)], expected: &[&str]) {
    let mut busiest = Busiest::new(Duration::from_millis(10));
    let mut out = Sink::new("stacks", Moment::from_ns(1));
    busiest.tell(&mut out);
    let (comm, cgroup) = ("kubelet".into(), "/system.slice/kubelet.service".into());
    for (pid, cpu, stack, n) in samples {
        let kernel: Vec<Arc<Place>> = stack.iter().map(|name| place(name)).collect();
        for _ in 0..*n {
            busiest.see(Seen {
                pid: *pid,
                cpu: *cpu,
                comm: &comm,
                cgroup: Some(&cgroup),
                is_kernel: !stack.is_empty(),
                kernel: &kernel,
            });
        }
    }
    let mut out = Sink::new("stacks", Moment::from_ns(10_000_000_001));
    busiest.tell(&mut out);
    let records = out.into_records();
    let told = records.iter().filter_map(|record| {
        let says = record.says(&PROCESS_ON_CORE)?;
        let number = |n: Option<u64>| n.map_or_else(|| "-".into(), |n| n.to_string());
        let ratio = |r: Option<f64>| r.map_or_else(|| "-".into(), |r| format!("{r:.3}"));
        let shown = [
            number(says.cpu.map(u64::from)),
            says.unit.clone().unwrap_or_default(),
            number(says.samples),
            number(says.kernel_samples),
            ratio(says.core_ratio),
            ratio(says.kernel_ratio),
            says.hot_stack.join(";"),
            ratio(says.hot_share),
        ];
        Some(format!("{} {}", record.subject.name, shown.join(" ")))
    });
    let told: Vec<String> = told.collect();
    assert_eq!(told, expected);
}

#[test]
fn who_had_the_kernel_is_told_with_its_core_and_hottest_stack() {
    check(
        &[
            (
                7,
                3,
                &["mem_cgroup_iter", "memcg_numa_stat_show", "read"],
                600,
            ),
            (7, 3, &["other", "read"], 200),
            (7, 3, &[], 100),
            (7, 1, &["other", "read"], 50),
            (8, 0, &["write"], 99),
            (9, 0, &[], 1000),
            (10, 2, &["write"], 100),
        ],
        &[
            "7 3 kubelet.service 950 850 0.900 0.800 \
             read;memcg_numa_stat_show;mem_cgroup_iter 0.706",
            "10 2 kubelet.service 100 100 0.100 0.100 write 1.000",
        ],
    );
    check(&[], &[]);
}

#[test]
fn the_most_frequent_stacks_are_told_with_their_counts() {
    let mut process = Process {
        comm: "kubelet".into(),
        cgroup: None,
        cores: HashMap::from([(1, (500, 500))]),
        stacks: HashMap::new(),
        statistics: BTreeSet::new(),
    };
    for n in 0..40_u64 {
        let name = format!("f{n:02}");
        process
            .stacks
            .insert(n, (n + 1, vec![place(&name), place("read")]));
    }
    let told = process.describe((1, 500, 500), Duration::from_secs(10), 1000.0);
    let of = |i: usize| (told.stacks[i].samples, told.stacks[i].frames.join(";"));
    assert_eq!(of(0), (40, "read;f39".to_owned()));
    assert_eq!(of(15), (25, "read;f24".to_owned()));
    assert_eq!(told.stacks.len(), 16);
    assert_eq!(told.hot_stack, ["read", "f39"]);
    // Deep ones are fewer.
    let deep: Vec<Arc<Place>> = (0..200)
        .map(|_| place("a_long_name_of_a_function"))
        .collect();
    for n in 0..40 {
        process.stacks.insert(n, (n + 1, deep.clone()));
    }
    let told = process.describe((1, 500, 500), Duration::from_secs(10), 1000.0);
    assert_eq!(told.stacks.len(), 2);
}

#[test]
fn who_had_the_cores_is_told_by_name_and_cgroup() {
    let mut busiest = Busiest::new(Duration::from_millis(10));
    busiest.tell(&mut Sink::new("stacks", Moment::from_ns(1)));
    let (cc, sh): (Arc<str>, Arc<str>) = ("cc1".into(), "sh".into());
    let build: Arc<str> = "/system.slice/build.service".into();
    let number: Arc<str> = "4711".into();
    let runs = [
        (&cc, &build, 20, 40),
        (&sh, &number, 1, 700),
        (&sh, &build, 1, 20),
    ];
    let mut pid = 100;
    for (comm, cgroup, n_processes, n_samples) in runs {
        for _ in 0..n_processes {
            pid += 1;
            for i in 0..n_samples {
                busiest.see(Seen {
                    pid,
                    cpu: i % 2,
                    comm,
                    cgroup: Some(cgroup),
                    is_kernel: i % 4 == 0,
                    kernel: &[],
                });
            }
        }
    }
    let mut out = Sink::new("stacks", Moment::from_ns(10_000_000_001));
    busiest.tell(&mut out);
    let told = out.into_records();
    let told = told.iter().filter_map(|record| {
        let says = record.says(&CPU_USE)?;
        let unit = says.unit.as_deref().unwrap_or("-");
        let (n, cores, kernel) = (says.n_processes, says.cores, says.kernel_cores);
        Some(format!(
            "{} {} {unit} {n} {cores} {kernel}",
            record.subject, says.comm
        ))
    });
    let told: Vec<String> = told.collect();
    let expected = [
        "task cc1 cc1 build.service 20 0.8 0.2",
        "process 121 sh - 1 0.7 0.175",
    ];
    assert_eq!(told, expected);
}

#[test]
fn our_own_process_is_told_as_such() {
    let mut busiest = Busiest::new(Duration::from_millis(10));
    busiest.tell(&mut Sink::new("stacks", Moment::from_ns(1)));
    let own = std::process::id();
    for (pid, cpu) in [(own, 0), (own, 1), (u32::MAX, 0)] {
        for _ in 0..400 + cpu {
            busiest.see(Seen {
                pid,
                cpu,
                comm: &"sexton".into(),
                cgroup: None,
                is_kernel: true,
                kernel: &[],
            });
        }
    }
    let mut out = Sink::new("stacks", Moment::from_ns(10_000_000_001));
    busiest.tell(&mut out);
    let told = out.into_records();
    let says = told
        .iter()
        .filter_map(|record| record.says(&PROCESS_ON_CORE));
    let own: Vec<_> = says.map(|says| (says.cpu, says.own)).collect();
    let expected = [
        (Some(0), Some(true)),
        (Some(1), Some(true)),
        (Some(0), None),
    ];
    assert_eq!(own, expected);
}

#[test]
fn not_more_than_a_few_are_told() {
    let stack: &[&str] = &["f"];
    let samples: Vec<_> = (1..=30).map(|pid| (pid, pid, stack, 200)).collect();
    let expected: Vec<String> = (1..=10)
        .map(|pid| format!("{pid} {pid} kubelet.service 200 200 0.200 0.200 f 1.000"))
        .collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check(&samples, &expected);
}

#[test]
fn what_is_noted_is_of_those_that_have_much_of_a_core_in_the_kernel() {
    let mut busiest = Busiest::new(Duration::from_millis(10));
    busiest.tell(&mut Sink::new("stacks", Moment::from_ns(1)));
    let comm: Arc<str> = "some".into();
    let own = std::process::id();
    for (pid, is_kernel, n) in [(7, true, 60), (8, false, 90), (9, true, 9), (own, true, 60)] {
        for _ in 0..n {
            busiest.see(Seen {
                pid,
                cpu: 0,
                comm: &comm,
                cgroup: None,
                is_kernel,
                kernel: &[],
            });
        }
    }
    // A tenth of two seconds are twenty samples, and of what is less than one, ten.
    for after_ms in [10, 2_000] {
        let mut noted = Vec::new();
        let now = Moment::from_ns(1).after(Duration::from_millis(after_ms));
        busiest.note_of_hot(now, |pid, statistics| {
            noted.push(pid);
            statistics.insert("/memory.numa_stat".to_owned());
        });
        assert_eq!(noted, [7], "after {after_ms} ms");
    }
    let mut out = Sink::new("stacks", Moment::from_ns(5_000_000_001));
    busiest.tell(&mut out);
    let records = out.into_records();
    let told = records.iter().filter_map(|record| {
        let says = record.says(&PROCESS_ON_CORE)?;
        Some((record.subject.name.to_string(), says.statistics.join(" ")))
    });
    let told: Vec<(String, String)> = told.collect();
    assert!(
        told.contains(&("7".to_owned(), "/memory.numa_stat".to_owned())),
        "{told:?}"
    );
}
