//! The alerts: what each asks for, what it says, and a course of values that proves it.

/// A rule of sexton.
#[derive(Debug, Clone, Copy)]
pub struct Code<'c> {
    /// Its code.
    pub code: &'c str,
    /// What it finds, in a few words.
    pub title: &'c str,
}

/// Thresholds of sexton's own rules that alerts share.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// More memory cgroups than this are looked at (`MCG003.most`).
    pub cgroups: f64,
    /// More dying ones for each live one are not normal (`MCG003.most_per_live`).
    pub per_live: f64,
}

/// Values that are worked out once, for alerts and dashboards.
pub(super) const RECORDED: [(&str, &str); 3] = [
    (
        "sexton:memcg_dying:per_live",
        "sexton_memcg_dying / (sexton_memcg_live > 0)",
    ),
    (
        "sexton:memcg_dying:delta6h",
        "delta(sexton_memcg_dying[6h])",
    ),
    (
        "sexton:memcg_dying_bytes:ratio",
        "sexton_memcg_dying_bytes / (sexton_node_memory_bytes > 0)",
    ),
];

/// An alert.
#[derive(Debug)]
pub(super) struct Alert {
    pub(super) name: String,
    pub(super) expr: String,
    /// How long it must hold.
    pub(super) hold: &'static str,
    pub(super) severity: &'static str,
    pub(super) summary: String,
    /// The page that says what it means and what to do, from the root of the repository.
    pub(super) runbook: String,
    pub(super) proof: Proof,
}

/// A course of values: when the alert fires, and when it does not.
#[derive(Debug)]
pub(super) struct Proof {
    /// Series without `instance` and `job`, and values every 30 seconds.
    pub(super) series: Vec<(String, &'static str)>,
    /// Before it fires, and while only others should.
    pub(super) quiet_at: &'static str,
    pub(super) fires_at: &'static str,
    pub(super) resolved_at: &'static str,
    /// Labels of the alert beside `instance`, `job`, `alertname`.
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) severity: &'static str,
    pub(super) summary: String,
}

/// `instance` and `job` of all proofs.
pub(super) const INSTANCE: &str = "node-1:8642";
pub(super) const JOB: &str = "sexton";

/// What a finding that hurts now is to a pager.
const OF_FINDING: &str =
    "{{ if eq $labels.severity \"warning\" }}warning{{ else }}critical{{ end }}";

/// Every alert.
pub(super) fn all(codes: &[Code<'_>], limits: Limits) -> Vec<Alert> {
    let mut codes = codes.to_vec();
    codes.sort_by_key(|code| code.code);
    let of_codes = codes.iter().map(|code| of_code(*code));
    let others = [
        dying_per_live(limits),
        dying_grow(limits),
        memory_lost(),
        forecast(),
    ];
    of_codes.chain(others).chain(of_agent()).collect()
}

fn of_code(Code { code, title }: Code<'_>) -> Alert {
    let series = |severity: &str| {
        format!(
            "sexton_finding{{code=\"{code}\",subject=\"node\",severity=\"{severity}\",since=\"7\"}}"
        )
    };
    let text = |instance: &str, subject: &str| format!("{instance}: {title} ({subject})");
    Alert {
        name: format!("Sexton{code}"),
        expr: format!("max without (since) (sexton_finding{{code=\"{code}\",severity!=\"note\"}})"),
        // sexton has seen it for as long as its rule asks for, and says itself when it is over.
        hold: "0s",
        severity: OF_FINDING,
        summary: text("{{ $labels.instance }}", "{{ $labels.subject }}"),
        runbook: runbook(code),
        proof: Proof {
            series: vec![
                (series("note"), "1x40"),
                (series("serious"), "_x4 1x10 stale"),
            ],
            quiet_at: "1m30s",
            fires_at: "3m",
            resolved_at: "10m",
            labels: vec![("code", code.to_owned()), ("subject", "node".to_owned())],
            severity: "critical",
            summary: text(INSTANCE, "node"),
        },
    }
}

fn runbook(code: &str) -> String {
    format!("docs/codes/{code}.md")
}

fn dying_per_live(limits: Limits) -> Alert {
    let Limits { cgroups, per_live } = limits;
    let text = |instance: &str, times: &str| {
        format!("{instance}: {times} dying memory cgroups for each live one (limit {per_live})")
    };
    Alert {
        name: "SextonDyingCgroups".into(),
        expr: format!(
            "sexton:memcg_dying:per_live > {per_live} \
             and sexton_memcg_dying + sexton_memcg_live > {cgroups}"
        ),
        hold: "0s",
        severity: "warning",
        summary: text("{{ $labels.instance }}", "{{ printf \"%.1f\" $value }}"),
        runbook: runbook("MCG003"),
        proof: Proof {
            series: vec![
                ("sexton_memcg_live".into(), "200x60"),
                ("sexton_memcg_dying".into(), "700x9 2500x20 0x30"),
            ],
            quiet_at: "4m",
            fires_at: "8m",
            resolved_at: "18m",
            labels: Vec::new(),
            severity: "warning",
            summary: text(INSTANCE, "12.5"),
        },
    }
}

fn dying_grow(limits: Limits) -> Alert {
    let text = |instance: &str, n: &str| {
        format!("{instance}: {n} more dying memory cgroups in 6 hours, more than are live")
    };
    Alert {
        name: "SextonDyingCgroupsGrow".into(),
        expr: format!(
            "sexton:memcg_dying:delta6h > sexton_memcg_live \
             and sexton_memcg_dying + sexton_memcg_live > {}",
            limits.cgroups
        ),
        hold: "30m",
        severity: "warning",
        summary: text("{{ $labels.instance }}", "{{ printf \"%.0f\" $value }}"),
        runbook: runbook("MCG001"),
        proof: Proof {
            series: vec![
                ("sexton_memcg_live".into(), "200x2000"),
                // For six hours as many as before, then four hours of ten more a minute.
                ("sexton_memcg_dying".into(), "1000x720 1000+5x480 3400x800"),
            ],
            quiet_at: "6h",
            fires_at: "10h",
            resolved_at: "16h30m",
            labels: Vec::new(),
            severity: "warning",
            summary: text(INSTANCE, "2395"),
        },
    }
}

fn memory_lost() -> Alert {
    let text = |instance: &str, percent: &str| {
        format!("{instance}: dying memory cgroups take {percent} of the memory (limit 5%)")
    };
    Alert {
        name: "SextonMemoryLost".into(),
        expr: "sexton:memcg_dying_bytes:ratio > 0.05".into(),
        hold: "10m",
        severity: "warning",
        summary: text(
            "{{ $labels.instance }}",
            "{{ $value | humanizePercentage }}",
        ),
        runbook: runbook("MCG001"),
        proof: Proof {
            series: vec![
                ("sexton_node_memory_bytes".into(), "16e9x100"),
                ("sexton_memcg_dying_bytes".into(), "1e8x10 4e9x50 1e8x40"),
            ],
            quiet_at: "12m",
            fires_at: "20m",
            resolved_at: "35m",
            labels: Vec::new(),
            severity: "warning",
            summary: text(INSTANCE, "25%"),
        },
    }
}

fn forecast() -> Alert {
    let text = |instance: &str, what: &str, limit: &str, when: &str| {
        format!("{instance}: {what}: {limit} in {when} at this rate")
    };
    let labels = "what=\"dying memory cgroups\",limit=\"one read of memory.stat takes 5 s\"";
    Alert {
        name: "SextonForecast".into(),
        expr: "sexton_forecast_seconds < 7 * 86400".into(),
        hold: "30m",
        severity: "warning",
        summary: text(
            "{{ $labels.instance }}",
            "{{ $labels.what }}",
            "{{ $labels.limit }}",
            "{{ $value | humanizeDuration }}",
        ),
        runbook: runbook("MCG001"),
        proof: Proof {
            series: vec![(
                format!("sexton_forecast_seconds{{{labels}}}"),
                "864000x10 172800x100 864000x40",
            )],
            quiet_at: "20m",
            fires_at: "40m",
            resolved_at: "1h5m",
            labels: vec![
                ("what", "dying memory cgroups".into()),
                ("limit", "one read of memory.stat takes 5 s".into()),
            ],
            severity: "warning",
            summary: text(
                INSTANCE,
                "dying memory cgroups",
                "one read of memory.stat takes 5 s",
                "2d 0h 0m 0s",
            ),
        },
    }
}

/// An alert about the agent itself: its name, when it fires, and what it says after the instance.
struct OfAgent {
    name: &'static str,
    expr: &'static str,
    hold: &'static str,
    severity: &'static str,
    text: &'static str,
    series: &'static [(&'static str, &'static str)],
    times: [&'static str; 3],
    labels: &'static [(&'static str, &'static str)],
}

const OF_AGENT: [OfAgent; 6] = [
    OfAgent {
        name: "SextonDown",
        expr: "up{job=\"sexton\"} == 0",
        hold: "5m",
        severity: "warning",
        text: "Prometheus cannot scrape the agent",
        series: &[("up", "1x10 0x20 1x20")],
        times: ["8m", "12m", "20m"],
        labels: &[],
    },
    OfAgent {
        name: "SextonBlind",
        expr: "max without (state) (sexton_verdict{state=\"blind\"}) == 1",
        hold: "10m",
        severity: "warning",
        text: "the agent cannot see enough to judge the node; run sexton status there",
        series: &[
            ("sexton_verdict{state=\"blind\"}", "0x10 1x40 0x20"),
            ("sexton_verdict{state=\"healthy\"}", "1x10 0x40 1x20"),
        ],
        times: ["10m", "20m", "30m"],
        labels: &[],
    },
    OfAgent {
        name: "SextonNotJudging",
        expr: "time() - sexton_judged_timestamp_seconds > 120",
        hold: "1m",
        severity: "warning",
        text: "the agent has not judged the node for more than 2 minutes",
        // Tests begin at 1970: judged every 30 s, then not for 10 minutes, then again.
        series: &[(
            "sexton_judged_timestamp_seconds",
            "0+30x10 300x20 930+30x20",
        )],
        times: ["5m", "10m", "20m"],
        labels: &[],
    },
    OfAgent {
        name: "SextonNotRecording",
        expr: "sexton_recording_up == 0",
        hold: "2m",
        severity: "warning",
        text: "the agent cannot write to its ring; run sexton status there",
        series: &[("sexton_recording_up", "1x10 0x20 1x20")],
        times: ["6m", "10m", "20m"],
        labels: &[],
    },
    OfAgent {
        name: "SextonOverBudget",
        expr: "sexton_agent_cpu_ratio > sexton_agent_cpu_limit_ratio \
               or sexton_agent_memory_bytes > sexton_agent_memory_limit_bytes",
        hold: "5m",
        severity: "warning",
        text: "the agent uses more CPU time or memory than its budget",
        series: &[
            ("sexton_agent_cpu_ratio", "0.01x10 0.05x20 0.01x20"),
            ("sexton_agent_cpu_limit_ratio", "0.02x50"),
            ("sexton_agent_memory_bytes", "3e7x50"),
            ("sexton_agent_memory_limit_bytes", "1e8x50"),
        ],
        times: ["8m", "13m", "20m"],
        labels: &[],
    },
    OfAgent {
        name: "SextonSensorStopped",
        expr: "sexton_sensor_shed == 1",
        hold: "0s",
        severity: "warning",
        text: "the agent stopped a sensor to stay within its budget",
        series: &[
            ("sexton_sensor_shed{sensor=\"stacks\"}", "0x10 1x20 0x20"),
            ("sexton_sensor_shed{sensor=\"cores\"}", "0x50"),
        ],
        times: ["4m", "8m", "20m"],
        labels: &[("sensor", "stacks")],
    },
];

fn of_agent() -> impl Iterator<Item = Alert> {
    OF_AGENT.iter().map(|of| {
        let text = |instance: &str| format!("{instance}: {}", of.text);
        let series = of.series.iter();
        let labels = of.labels.iter();
        let [quiet_at, fires_at, resolved_at] = of.times;
        Alert {
            name: of.name.into(),
            expr: of.expr.into(),
            hold: of.hold,
            severity: of.severity,
            summary: text("{{ $labels.instance }}"),
            runbook: "docs/agent.md".into(),
            proof: Proof {
                series: series
                    .map(|(name, values)| ((*name).to_owned(), *values))
                    .collect(),
                quiet_at,
                fires_at,
                resolved_at,
                labels: labels
                    .map(|(name, value)| (*name, (*value).to_owned()))
                    .collect(),
                severity: of.severity,
                summary: text(INSTANCE),
            },
        }
    })
}
