//! What is planted: which nodes get into trouble, why, and when.

use clap::ValueEnum;

use super::Truth;
use super::random::Random;
use super::world::{EXTRA_UNITS, Ecs, LABELS, Node, VERSIONED, World, has_unit, version_of};

/// What is planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Incident {
    /// The incident that sexton was made for: a unit of an image, with one zone spared
    Founding,
    /// One cause of any kind, or two that do it only together
    Random,
    /// Trouble without a cause: nothing differs
    None,
}

impl Incident {
    fn name(self) -> &'static str {
        match self {
            Self::Founding => "founding",
            Self::Random => "random",
            Self::None => "none",
        }
    }
}

/// One thing that a node may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Zone(usize),
    InstanceType(usize),
    Image(usize),
    Kernel(usize),
    Label(usize, usize),
    Unit(usize),
    Package(usize, usize),
    Ecs,
}

impl Part {
    fn is_on(self, node: &Node) -> bool {
        match self {
            Self::Zone(zone) => node.zone == zone,
            Self::InstanceType(kind) => node.instance_type == kind,
            Self::Image(image) => node.image == image,
            Self::Kernel(kernel) => node.kernel == kernel,
            Self::Label(label, value) => node.labels[label] == value,
            Self::Unit(unit) => has_unit(node, unit),
            Self::Package(package, version) => {
                version_of(node, package) == VERSIONED[package].1[version]
            }
            Self::Ecs => node.ecs == Ecs::Active,
        }
    }

    /// As a comparison calls it.
    fn label(self, world: &World) -> String {
        match self {
            Self::Zone(zone) => format!("zone = {}", world.zones[zone]),
            Self::InstanceType(kind) => format!("instance_type = {}", world.instance_types[kind]),
            Self::Image(image) => format!("image = {}", world.images[image]),
            Self::Kernel(kernel) => format!("kernel = {}", world.kernels[kernel]),
            Self::Label(label, value) => {
                let (name, values) = LABELS[label];
                format!("label_{name} = {}", values[value])
            }
            Self::Unit(unit) => format!("{} active", EXTRA_UNITS[unit]),
            Self::Package(package, version) => {
                let (name, versions) = VERSIONED[package];
                format!("package {name} {}", versions[version])
            }
            Self::Ecs => "ecs.service active".to_owned(),
        }
    }

    fn random(world: &World, random: &mut Random) -> Self {
        match random.below(7) {
            0 => Self::Zone(random.below(world.zones.len())),
            1 => Self::InstanceType(random.below(world.instance_types.len())),
            2 => Self::Image(random.below(world.images.len())),
            3 => Self::Kernel(random.below(world.kernels.len())),
            4 => {
                let label = random.below(LABELS.len());
                Self::Label(label, random.below(LABELS[label].1.len()))
            }
            5 => Self::Unit(random.below(EXTRA_UNITS.len())),
            _ => Self::Package(random.below(VERSIONED.len()), random.below(2)),
        }
    }

    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// A fleet and what happens to it.
pub(super) struct Plan {
    pub(super) world: World,
    pub(super) incident: Incident,
    pub(super) seed: u64,
    pub(super) n_hours: usize,
    cause: Vec<Part>,
    /// The hour in which each node gets into trouble.
    pub(super) bad_from: Vec<Option<usize>>,
}

impl Plan {
    pub(super) fn truth(&self, n_reports: usize) -> Truth {
        let has_cause = |node: &&Node| !self.cause.is_empty() && self.has_cause(node);
        let nodes = self.world.nodes.iter();
        let bad = nodes.clone().zip(&self.bad_from);
        let bad = bad.filter_map(|(node, from)| from.map(|_| node));
        Truth {
            incident: self.incident.name(),
            cause: self
                .cause
                .iter()
                .map(|part| part.label(&self.world))
                .collect(),
            n_bad: bad.clone().count(),
            n_bad_by_cause: bad.filter(has_cause).count(),
            n_cause: nodes.filter(has_cause).count(),
            n_reports,
        }
    }

    pub(super) fn has_cause(&self, node: &Node) -> bool {
        self.cause.iter().all(|part| part.is_on(node))
    }
}

pub(super) fn plan(incident: Incident, n_nodes: usize, n_hours: usize, seed: u64) -> Plan {
    let mut random = Random::new(seed, 0);
    let world = match incident {
        Incident::Founding => World::founding(n_nodes, &mut random),
        _ => World::random(n_nodes, &mut random),
    };
    // How often the cause does it, and how often it happens without.
    let (cause, by_cause, by_itself) = match incident {
        Incident::Founding => (vec![Part::Ecs], 0.75, 0.01),
        Incident::Random => {
            let cause = random_cause(&world, &mut random);
            (cause, random.between(0.5, 0.95), random.between(0.0, 0.02))
        }
        Incident::None => (Vec::new(), 0.0, random.between(0.05, 0.4)),
    };
    let bad_from = world.nodes.iter().map(|node| {
        let has_cause = !cause.is_empty() && cause.iter().all(|part| part.is_on(node));
        let p = if has_cause { by_cause } else { by_itself };
        random.chance(p).then(|| random.below(n_hours))
    });
    let bad_from = bad_from.collect();
    Plan {
        world,
        incident,
        seed,
        n_hours,
        cause,
        bad_from,
    }
}

/// A cause that some nodes have and most do not: of a third of all, two parts together.
fn random_cause(world: &World, random: &mut Random) -> Vec<Part> {
    const TRIES: usize = 1000;
    let is_pair = random.chance(1.0 / 3.0);
    for _ in 0..TRIES {
        let first = Part::random(world, random);
        let second = Part::random(world, random);
        let cause = match is_pair {
            true if first.is_like(second) => continue,
            true => vec![first, second],
            false => vec![first],
        };
        let has = |node: &&Node| cause.iter().all(|part| part.is_on(node));
        let share = |n: usize| n as f64 / world.nodes.len() as f64;
        let n = world.nodes.iter().filter(has).count();
        // Of a pair, each part alone has to be on many other nodes, or one would be as good.
        let parts_differ = cause.iter().all(|part| {
            let alone = world.nodes.iter().filter(|node| part.is_on(node)).count();
            cause.len() == 1 || share(alone - n) >= 0.05
        });
        if (0.04..0.6).contains(&share(n)) && parts_differ {
            return cause;
        }
    }
    vec![Part::Zone(0)]
}
