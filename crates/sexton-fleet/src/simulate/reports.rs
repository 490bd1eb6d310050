//! Writes the reports of simulated nodes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use anyhow::Result;
use sexton_lake::{Cell, SCHEMA, Table, column, day_of, kind, parquet_of};
use sexton_model::fact::{self, FactKind};

use super::START_US;
use super::incident::{Incident, Plan};
use super::random::Random;
use super::world::{Ecs, LABELS, Node, World, software_set, unit_set};

const US_PER_HOUR: i64 = 3_600_000_000;
/// Facts beside those of the trouble.
const N_FACTS: usize = 36;

/// The reports of one day.
pub(super) struct Day {
    pub(super) day: String,
    pub(super) bytes: Vec<u8>,
    pub(super) n_reports: usize,
}

/// The reports of these nodes, by day.
pub(super) fn of(plan: &Plan, nodes: Range<usize>) -> Result<Vec<Day>> {
    let noise = noise_facts();
    let mut days: BTreeMap<String, (Table, Vec<Row>, usize)> = BTreeMap::new();
    for number in nodes {
        let writer = NodeWriter::new(plan, number, &noise);
        let mut random = Random::new(plan.seed, 1 + number as u64);
        for hour in 0..plan.n_hours {
            let Some((at, row)) = writer.report(hour, &mut random) else {
                continue;
            };
            let (table, findings, n_reports) = days.entry(day_of(at)).or_default();
            table.push(row.iter().map(|(name, cell)| (&**name, cell.clone())));
            *n_reports += 1;
            findings.extend(writer.findings(hour, at));
        }
    }
    let write = |(day, (mut table, findings, n_reports)): (String, (Table, Vec<Row>, usize))| {
        for row in findings {
            table.push(row.iter().map(|(name, cell)| (&**name, cell.clone())));
        }
        let bytes = parquet_of(table)?;
        Ok(Day {
            day,
            bytes,
            n_reports,
        })
    };
    days.into_iter().map(write).collect()
}

type Row = Vec<(Arc<str>, Cell)>;

/// Facts that have nothing to do with the trouble.
fn noise_facts() -> Vec<(Arc<str>, FactKind)> {
    let facts = fact::all().filter(|fact| fact.kind != FactKind::Event);
    let of_trouble = [DYING, RESETS, SYSTEM];
    let facts = facts.filter(|fact| !of_trouble.contains(&fact.name));
    facts
        .take(N_FACTS)
        .map(|fact| (Arc::from(fact.name), fact.kind))
        .collect()
}

const DYING: &str = "memcg_dying";
const RESETS: &str = "nic_resets";
const SYSTEM: &str = "core_worst_system_ratio";

/// What is the same in all reports of a node.
struct NodeWriter<'a> {
    plan: &'a Plan,
    node: &'a Node,
    bad_from: Option<usize>,
    same: Row,
    noise: &'a [(Arc<str>, FactKind)],
    base: Vec<f64>,
    skew_us: i64,
    is_silent: bool,
}

impl<'a> NodeWriter<'a> {
    fn new(plan: &'a Plan, number: usize, noise: &'a [(Arc<str>, FactKind)]) -> Self {
        let mut random = Random::new(plan.seed ^ 0x5eed, 1 + number as u64);
        let node = &plan.world.nodes[number];
        let skew_us = match random.chance(0.02) {
            true => random.between(-50.0, 50.0) as i64 * 60_000_000,
            false => 0,
        };
        Self {
            plan,
            node,
            bad_from: plan.bad_from[number],
            same: same_cells(&plan.world, node, number, &mut random),
            noise,
            base: noise
                .iter()
                .map(|_| 100.0 * random.around_one(0.6))
                .collect(),
            skew_us,
            is_silent: random.chance(0.01),
        }
    }

    fn report(&self, hour: usize, random: &mut Random) -> Option<(i64, Row)> {
        let missing = if self.is_silent { 0.5 } else { 0.03 };
        let is_missing = random.chance(missing);
        let at = START_US + hour as i64 * US_PER_HOUR + self.skew_us;
        let mut row = self.same.clone();
        let mut number = |name: &str, value: f64| {
            row.push((Arc::from(name), Cell::Number(value)));
        };
        let is_bad = self.is_bad(hour);
        let is_founding = self.plan.incident == Incident::Founding;
        let is_leaking = is_founding && self.node.ecs == Ecs::Active;
        // Trouble without a cause leaves no trace in the numbers.
        let shows = is_bad && self.plan.incident != Incident::None;
        number(column::SEVERITY_RANK, if is_bad { 4.0 } else { 0.0 });
        number(column::WATCHED_SECONDS, 3600.0);
        let dying = match (is_leaking, shows && is_founding) {
            (_, true) => 40_000.0,
            (true, false) => 8_000.0,
            _ => 40.0,
        };
        number(DYING, three_digits(dying * random.around_one(0.3)));
        let resets = if shows {
            1.0 + random.below(4) as f64
        } else {
            0.0
        };
        number(RESETS, resets);
        let system = if shows && is_founding { 0.97 } else { 0.08 };
        number(SYSTEM, three_digits(system * random.around_one(0.02)));
        for ((name, kind), base) in self.noise.iter().zip(&self.base) {
            let value = three_digits(base * random.around_one(0.2));
            let value = match kind {
                FactKind::Counter => value.round(),
                _ => value,
            };
            row.push((name.clone(), Cell::Number(value)));
        }
        row.push((Arc::from(column::AT), Cell::Time(at)));
        row.push((Arc::from(column::KIND), Cell::Text(Arc::from(kind::REPORT))));
        (!is_missing).then_some((at, row))
    }

    fn is_bad(&self, hour: usize) -> bool {
        self.bad_from.is_some_and(|from| hour >= from)
    }

    /// What sexton found on the node in that hour.
    fn findings(&self, hour: usize, at: i64) -> Vec<Row> {
        let is_founding = self.plan.incident == Incident::Founding;
        let mut found: Vec<(&str, &str, f64)> = Vec::new();
        if is_founding && self.node.ecs == Ecs::Active {
            found.push(("UNIT002", "ecs.service", 2.0));
            found.push(("MCG001", "/system.slice/docker-<id>.scope", 2.0));
        }
        if self.is_bad(hour) {
            found.push(("NIC001", "eth0", 4.0));
        }
        let row = |(code, subject, rank): (&str, &str, f64)| {
            let text = |text: &str| Cell::Text(Arc::from(text));
            let own = [column::NODE, column::BOOT, column::SCHEMA];
            let own = self.same.iter().filter(|(name, _)| own.contains(&&**name));
            let severity = if rank >= 4.0 { "critical" } else { "warning" };
            let cells = [
                (column::KIND, text(kind::FINDING)),
                (column::AT, Cell::Time(at)),
                (column::FINDING, text(&format!("{code}:{subject}"))),
                (column::CODE, text(code)),
                (column::SUBJECT, text(subject)),
                (column::SEVERITY, text(severity)),
                (column::SEVERITY_RANK, Cell::Number(rank)),
                (column::LIFE, text("open")),
            ];
            let cells = cells
                .into_iter()
                .map(|(name, cell)| (Arc::from(name), cell));
            own.cloned().chain(cells).collect()
        };
        found.into_iter().map(row).collect()
    }
}

fn same_cells(world: &World, node: &Node, number: usize, random: &mut Random) -> Row {
    let text = |text: &str| Cell::Text(Arc::from(text));
    let boot = format!("{:016x}", random.next());
    let mut cells = vec![
        (column::NODE, text(&format!("node-{number:06}"))),
        (column::BOOT, text(&boot)),
        (column::SCHEMA, Cell::Number(f64::from(SCHEMA))),
        (column::IMAGE, text(world.images[node.image])),
        (column::KERNEL, text(world.kernels[node.kernel])),
        (
            column::INSTANCE_TYPE,
            text(world.instance_types[node.instance_type]),
        ),
        (column::ZONE, text(world.zones[node.zone])),
        (column::OS, text("Ubuntu 22.04.5 LTS")),
    ];
    if node.is_old {
        // The older one did not know drivers and software.
        cells.push((column::SEXTON, text("0.0.9")));
    } else {
        let driver = ["ena", "ena", "virtio_net"][node.instance_type];
        let layout = ["v1", "v2", "v2"][node.kernel];
        cells.extend([
            (column::SEXTON, text("0.1.0")),
            (column::NIC_DRIVER, text(driver)),
            (column::CGROUP_LAYOUT, text(layout)),
            (column::SOFTWARE_SET, text(&software_set(node).digest())),
        ]);
    }
    cells.push((column::UNIT_SET, text(&unit_set(node).digest())));
    let cells = cells
        .into_iter()
        .map(|(name, cell)| (Arc::from(name), cell));
    let labels = LABELS
        .iter()
        .zip(node.labels)
        .map(|((name, values), value)| {
            let name = format!("{}{name}", column::LABEL_PREFIX);
            (Arc::from(name), text(values[value]))
        });
    cells.chain(labels).collect()
}

fn three_digits(value: f64) -> f64 {
    let scale = 10f64.powi(2 - value.abs().max(1e-9).log10().floor() as i32);
    (value * scale).round() / scale
}
