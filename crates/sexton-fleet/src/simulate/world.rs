//! What the nodes of a simulated fleet are: places, machines, images, what runs on them.

use std::collections::BTreeMap;

use sexton_lake::{Set, SetKind};

use super::random::Random;

/// Units that every node has, active.
const BASE_UNITS: &[&str] = &[
    "chrony.service",
    "containerd.service",
    "cron.service",
    "dbus.service",
    "getty@tty1.service",
    "irqbalance.service",
    "kubelet.service",
    "networkd-dispatcher.service",
    "node_exporter.service",
    "polkit.service",
    "rsyslog.service",
    "ssh.service",
    "systemd-journald.service",
    "systemd-logind.service",
    "systemd-networkd.service",
    "systemd-resolved.service",
    "systemd-udevd.service",
    "sexton.service",
];
/// Units that some nodes have.
pub(super) const EXTRA_UNITS: &[&str] = &[
    "amazon-ssm-agent.service",
    "atd.service",
    "docker.service",
    "fwupd.service",
    "ModemManager.service",
    "multipathd.service",
    "nvidia-persistenced.service",
    "postfix.service",
    "snapd.service",
    "udisks2.service",
    "unattended-upgrades.service",
    "vector.service",
];
const BASE_PACKAGES: &[&str] = &[
    "bash",
    "ca-certificates",
    "coreutils",
    "cron",
    "curl",
    "dbus",
    "dpkg",
    "e2fsprogs",
    "glibc",
    "gzip",
    "iproute2",
    "iptables",
    "kmod",
    "libssl3",
    "openssh-server",
    "perl",
    "procps",
    "python3",
    "runc",
    "systemd",
    "tar",
    "udev",
    "util-linux",
    "zlib",
];
/// Packages of which nodes have one version or another.
pub(super) const VERSIONED: &[(&str, [&str; 2])] = &[
    ("containerd", ["1.7.24", "1.7.27"]),
    ("kubelet", ["1.31.4", "1.31.6"]),
    ("nvidia-driver", ["550.127", "550.144"]),
    ("ena-dkms", ["2.13.2", "2.14.1"]),
    ("docker-ce", ["27.3.1", "28.0.1"]),
    ("node-exporter", ["1.8.1", "1.9.0"]),
    ("vector", ["0.42.0", "0.45.0"]),
    ("aws-cli", ["2.22.1", "2.24.9"]),
];

/// What is the same for many nodes: numbers of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) zone: usize,
    pub(super) instance_type: usize,
    pub(super) image: usize,
    pub(super) kernel: usize,
    pub(super) labels: [usize; 3],
    /// Which of the extra units it has, as bits.
    pub(super) units: u32,
    /// Which version of each package, as bits.
    pub(super) versions: u32,
    /// Whether it has the unit of the founding incident, and whether that is active.
    pub(super) ecs: Ecs,
    /// Whether an older sexton runs on it, which reports less.
    pub(super) is_old: bool,
}

/// The unit of the founding incident on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Ecs {
    Absent,
    Off,
    Active,
}

/// The names of labels and their values.
pub(super) const LABELS: [(&str, &[&str]); 3] = [
    ("team", &["ads", "feed", "infra", "ml", "search"]),
    ("role", &["batch", "gateway", "trainer", "web"]),
    (
        "rack",
        &["r01", "r02", "r03", "r04", "r05", "r06", "r07", "r08"],
    ),
];

/// A fleet.
pub(super) struct World {
    pub(super) zones: &'static [&'static str],
    pub(super) instance_types: &'static [&'static str],
    pub(super) images: &'static [&'static str],
    pub(super) kernels: &'static [&'static str],
    pub(super) nodes: Vec<Node>,
}

impl World {
    /// Any fleet: images by zone, kernels by instance type, units and packages by image.
    pub(super) fn random(n_nodes: usize, random: &mut Random) -> Self {
        let world = Self::empty(n_nodes);
        let (n_zones, n_types) = (world.zones.len(), world.instance_types.len());
        let (n_images, n_kernels) = (world.images.len(), world.kernels.len());
        // How firmly images go with zones, kernels with instance types, this time.
        let (by_zone, by_type) = (random.between(0.5, 0.9), random.between(0.5, 0.9));
        let unit_of_image: Vec<u32> = (0..n_images).map(|_| random.next() as u32).collect();
        let version_of_image: Vec<u32> = (0..n_images).map(|_| random.next() as u32).collect();
        let node = |_| {
            let zone = random.below(n_zones);
            let instance_type = random.below(n_types);
            let image = match random.chance(by_zone) {
                true => zone % n_images,
                false => random.below(n_images),
            };
            let kernel = match random.chance(by_type) {
                true => instance_type % n_kernels,
                false => random.below(n_kernels),
            };
            let labels = LABELS.map(|(_, values)| random.below(values.len()));
            // Mostly what the image brings; an operator changed some.
            let changed = |random: &mut Random| {
                let bits = (0..24).filter(|_| random.chance(0.15));
                bits.fold(0, |mask, bit| mask | 1 << bit)
            };
            Node {
                zone,
                instance_type,
                image,
                kernel,
                labels,
                units: unit_of_image[image] ^ changed(random),
                versions: version_of_image[image] ^ changed(random),
                ecs: Ecs::Absent,
                is_old: random.chance(0.05),
            }
        };
        let nodes = (0..n_nodes).map(node).collect();
        Self { nodes, ..world }
    }

    /// The fleet of the founding incident: one image nearly everywhere, its unit on, but not
    /// in one zone, where a bug of the bootstrap keeps it off. The large instance types, and
    /// the kernel that they need, are rare in that zone.
    pub(super) fn founding(n_nodes: usize, random: &mut Random) -> Self {
        let world = Self::empty(n_nodes);
        let node = |_| {
            let zone = random.below(world.zones.len());
            let is_spared = zone == 0;
            let instance_type = match random.chance(if is_spared { 0.25 } else { 0.7 }) {
                true => 0,
                false => 1 + random.below(world.instance_types.len() - 1),
            };
            let kernel = match random.chance(0.9) {
                true => instance_type % world.kernels.len(),
                false => random.below(world.kernels.len()),
            };
            let image = match random.chance(0.85) {
                true => 0,
                false => 1 + random.below(world.images.len() - 1),
            };
            let ecs = match (image, is_spared) {
                (0, true) => Ecs::Off,
                (0, false) => Ecs::Active,
                _ => Ecs::Absent,
            };
            Node {
                zone,
                instance_type,
                image,
                kernel,
                labels: LABELS.map(|(_, values)| random.below(values.len())),
                units: 0b0010_0100 | u32::from(random.chance(0.3)),
                versions: if image == 0 { 0b1010 } else { 0b0001 },
                ecs,
                is_old: random.chance(0.05),
            }
        };
        let nodes = (0..n_nodes).map(node).collect();
        Self { nodes, ..world }
    }

    fn empty(n_nodes: usize) -> Self {
        Self {
            zones: &["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"],
            instance_types: &["p4d.24xlarge", "m5.4xlarge", "r6i.8xlarge"],
            images: &["ami-0a11ml2611", "ami-0b22web2611", "ami-0c33web2610"],
            kernels: &["5.4.0-1103-aws", "5.15.0-1071-aws", "6.8.0-1021-aws"],
            nodes: Vec::with_capacity(n_nodes),
        }
    }

    /// All sets that nodes have.
    pub(super) fn sets(&self) -> Vec<Set> {
        let sets = self
            .nodes
            .iter()
            .flat_map(|node| [unit_set(node), software_set(node)]);
        let sets: BTreeMap<String, Set> = sets.map(|set| (set.digest(), set)).collect();
        sets.into_values().collect()
    }
}

pub(super) fn has_unit(node: &Node, unit: usize) -> bool {
    node.units >> unit & 1 == 1
}

pub(super) fn version_of(node: &Node, package: usize) -> &'static str {
    VERSIONED[package].1[(node.versions >> package & 1) as usize]
}

pub(super) fn unit_set(node: &Node) -> Set {
    let mut set = Set::default();
    for unit in BASE_UNITS {
        set.add(SetKind::Unit, unit, "active");
    }
    for (at, unit) in EXTRA_UNITS.iter().enumerate() {
        if has_unit(node, at) {
            set.add(SetKind::Unit, unit, "active");
        }
    }
    match node.ecs {
        Ecs::Absent => {}
        Ecs::Off => set.add(SetKind::Unit, "ecs.service", "inactive"),
        Ecs::Active => set.add(SetKind::Unit, "ecs.service", "active"),
    }
    set
}

pub(super) fn software_set(node: &Node) -> Set {
    let mut set = Set::default();
    for package in BASE_PACKAGES {
        set.add(SetKind::Package, package, "1.0");
    }
    for (at, (package, _)) in VERSIONED.iter().enumerate() {
        set.add(SetKind::Package, package, version_of(node, at));
    }
    if node.ecs != Ecs::Absent {
        set.add(SetKind::Package, "amazon-ecs-init", "1.82.0");
        set.add(SetKind::UnitFile, "ecs.service", "enabled");
    }
    set
}
