//! Where the time went.

use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::stack::CodeKind;
use sexton_profile::filter::{EventChoice, Filter, TimePoint};
use sexton_profile::flame::{StackCounts, Tree};
use sexton_profile::names::Suffixes;

use super::params::{self, Params, Window};
use super::{GapView, Lasting, Time};
use crate::http::Problem;
use crate::source::Source;
use crate::stacks::Samples;

pub(super) const MAX_LIST: usize = 64;
pub(super) const MAX_CPU: u32 = 65_535;
pub(super) const MAX_PID: u32 = 4_194_304;
pub(super) const MAX_COMM_CHARS: usize = 64;
pub(super) const MAX_TEXT_CHARS: usize = 512;
pub(super) const MAX_NODES: usize = 200_000;
pub(super) const DEFAULT_NODES: usize = 50_000;

/// What is asked.
pub(super) struct Asked {
    window: Window,
    base: Option<Window>,
    cpus: Vec<u32>,
    comms: Vec<String>,
    pids: Vec<u32>,
    tids: Vec<u32>,
    unit: Option<String>,
    container: Option<String>,
    pod: Option<String>,
    function: Option<Regex>,
    event: Option<String>,
    most: usize,
}

/// Where the time went.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Flame")]
pub(super) struct FlameView {
    #[schemars(with = "Time")]
    from: u64,
    #[schemars(with = "Time")]
    to: u64,
    /// What was sampled, `cpu-clock`; empty when there is no sample.
    event: String,
    samples: u64,
    base_samples: Option<u64>,
    total: u64,
    base_total: Option<u64>,
    names: Vec<String>,
    nodes: NodesView,
    cut: Option<CutView>,
    gaps: Vec<GapView>,
}

/// Parallel arrays. Node 0 is everything; a caller comes before what it calls; level 1 are
/// programs.
#[derive(Serialize, Default, JsonSchema)]
#[schemars(rename = "FlameNodes")]
struct NodesView {
    #[schemars(inner(range(min = -1)))]
    parent: Vec<i64>,
    name: Vec<usize>,
    /// 0 not known, 1 kernel, 2 user.
    #[schemars(inner(range(max = 2)))]
    kind: Vec<u8>,
    /// Its weight and that of all it called.
    value: Vec<u64>,
    /// The same in the window compared with.
    #[schemars(with = "Vec<u64>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Vec<u64>>,
}

/// Nodes that were left out; none of them weighs more than `below`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FlameCut")]
struct CutView {
    nodes: usize,
    below: u64,
}

impl Lasting for Asked {
    type View = FlameView;

    fn read(params: &Params<'_>, source: &Source) -> Result<Self, Problem> {
        let function = params.text("function", MAX_TEXT_CHARS)?;
        let comms = params.texts("comm", MAX_LIST, MAX_COMM_CHARS)?;
        Ok(Self {
            cpus: params.numbers("cpu", MAX_LIST, 0..=MAX_CPU)?,
            comms: comms.into_iter().map(str::to_owned).collect(),
            pids: params.numbers("pid", MAX_LIST, 0..=MAX_PID)?,
            tids: params.numbers("tid", MAX_LIST, 0..=MAX_PID)?,
            unit: params.text("unit", MAX_TEXT_CHARS)?.map(str::to_owned),
            container: params.text("container", MAX_TEXT_CHARS)?.map(str::to_owned),
            pod: params.text("pod", MAX_TEXT_CHARS)?.map(str::to_owned),
            event: params.text("event", MAX_TEXT_CHARS)?.map(str::to_owned),
            most: params
                .number("nodes", 1..=MAX_NODES)?
                .unwrap_or(DEFAULT_NODES),
            base: params.base(source)?,
            window: params.window(source)?,
            function: function
                .map(|text| params::expression("function", text))
                .transpose()?,
        })
    }

    fn window(&self) -> Window {
        let base = self.base.unwrap_or(self.window);
        Window {
            from_ns: self.window.from_ns.min(base.from_ns),
            to_ns: self.window.to_ns.max(base.to_ns),
        }
    }

    fn answer(&self, source: &Source) -> Result<FlameView, Problem> {
        let bundle = source.state().bundle.clone();
        let mut samples = Samples::default();
        let mut count = |window: Window| {
            let mut counts = StackCounts::new(self.filter(source, window));
            samples.read(&bundle, read_ns(source, window), &mut counts);
            counts
        };
        let now = count(self.window);
        let before = self.base.map(&mut count);
        let tables = samples.tables();
        let tree = match &before {
            Some(before) => Tree::difference(&now, before, tables, Suffixes::default()),
            None => Tree::of(&now, tables, Suffixes::default()),
        };
        let (names, nodes, cut) = compact(&tree, before.is_some(), self.most);
        let clock = source.state().clock;
        let end_us = clock.us(self.window().to_ns);
        let event = now.event().map_or("", |event| tables.name(event));
        Ok(FlameView {
            from: clock.us(self.window.from_ns),
            to: clock.us(self.window.to_ns),
            event: event.to_owned(),
            samples: now.total().samples,
            base_samples: before.as_ref().map(|before| before.total().samples),
            total: now.total().weight,
            base_total: before.as_ref().map(|before| before.total().weight),
            names,
            nodes,
            cut,
            gaps: samples
                .unread
                .iter()
                .map(|(at_ns, why)| GapView(clock.us(*at_ns), end_us, why.clone()))
                .collect(),
        })
    }
}

impl Asked {
    /// Everything in a window, alone or compared.
    pub(super) fn plain(window: Window, base: Option<Window>) -> Self {
        Self {
            window,
            base,
            cpus: Vec::new(),
            comms: Vec::new(),
            pids: Vec::new(),
            tids: Vec::new(),
            unit: None,
            container: None,
            pod: None,
            function: None,
            event: None,
            most: DEFAULT_NODES,
        }
    }

    /// Which samples of the window, not of the one that it is compared with.
    pub(super) fn filter_now(&self, source: &Source) -> Filter {
        self.filter(source, self.window)
    }

    /// What is read for it.
    pub(super) fn read_ns(&self, source: &Source) -> (u64, u64) {
        read_ns(source, self.window)
    }

    fn filter(&self, source: &Source, window: Window) -> Filter {
        let times = source.has_times;
        Filter {
            from: times.then_some(TimePoint::Clock(window.from_ns)),
            to: times.then_some(TimePoint::Clock(window.to_ns)),
            cpus: self.cpus.clone(),
            comms: self.comms.clone(),
            pids: self.pids.clone(),
            tids: self.tids.clone(),
            unit: self.unit.clone(),
            container: self.container.clone(),
            pod: self.pod.clone(),
            function: self.function.clone(),
            event: self.event(source),
            ..Filter::default()
        }
    }

    /// The event that was asked for, or the first of the recording's list: in a part of a
    /// recording that of the first sample may be another.
    fn event(&self, source: &Source) -> EventChoice {
        match (&self.event, source.state().bundle.events().first()) {
            (Some(event), _) => EventChoice::Named(event.clone()),
            (None, Some(first)) => EventChoice::FirstNamed(first.clone()),
            (None, None) => EventChoice::First,
        }
    }
}

/// Without times all samples are of one moment, whatever was asked.
fn read_ns(source: &Source, window: Window) -> (u64, u64) {
    match source.has_times {
        true => (window.from_ns, window.to_ns),
        false => (0, u64::MAX),
    }
}

/// The heaviest nodes as parallel arrays. A caller weighs no less than what it calls and
/// comes before it, so the heaviest nodes are a tree.
fn compact(tree: &Tree, has_base: bool, most: usize) -> (Vec<String>, NodesView, Option<CutView>) {
    let weight = |at: usize| {
        let [now, before] = tree.nodes[at].total;
        now.max(before)
    };
    let mut order: Vec<usize> = (0..tree.nodes.len()).collect();
    order.sort_by_key(|&at| (std::cmp::Reverse(weight(at)), at));
    let n_cut = order.len().saturating_sub(most);
    let below = order.get(most).map(|&at| weight(at));
    order.truncate(most);
    order.sort_unstable();
    let mut places = vec![usize::MAX; tree.nodes.len()];
    for (place, &at) in order.iter().enumerate() {
        places[at] = place;
    }
    let mut parents = vec![-1; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate() {
        for &child in &node.children {
            parents[child as usize] = i64::try_from(places[at]).unwrap_or(-1);
        }
    }
    let mut names = Names::default();
    let mut nodes = NodesView {
        base: has_base.then(Vec::new),
        ..NodesView::default()
    };
    for at in order {
        let node = &tree.nodes[at];
        nodes.parent.push(parents[at]);
        nodes.name.push(names.number(node.name, tree.name(node)));
        nodes.kind.push(match node.kind {
            CodeKind::Unknown => 0,
            CodeKind::Kernel => 1,
            CodeKind::User => 2,
        });
        nodes.value.push(node.total[0]);
        if let Some(base) = &mut nodes.base {
            base.push(node.total[1]);
        }
    }
    let cut = below.map(|below| CutView {
        nodes: n_cut,
        below,
    });
    (names.names, nodes, cut)
}

/// Names that are used, each once.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: ahash::AHashMap<u32, usize>,
}

impl Names {
    fn number(&mut self, known_as: u32, name: &str) -> usize {
        let names = &mut self.names;
        *self.numbers.entry(known_as).or_insert_with(|| {
            names.push(name.to_owned());
            names.len() - 1
        })
    }
}
