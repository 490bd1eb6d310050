//! The samples of a window, each by itself, for a page that has no server to ask.

use ahash::AHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use sexton_model::stack::{CodeKind, Frame, NameId, StackId, StackSample, StackTables};
use sexton_profile::filter::{container_of, pod_of, unit_of};
use sexton_profile::import::Sink;
use sexton_profile::names::{self, Suffixes};
use sexton_profile::walk::Walk;

use super::Time;
use super::params::Window;
use crate::clock::Clock;
use crate::http::Problem;
use crate::source::Source;
use crate::stacks::Samples;

/// More make a file that no browser opens with pleasure.
const MAX_SAMPLES: usize = 400_000;

/// The samples of an exported page, as parallel arrays; -1 is none. Idle cores are left out.
#[derive(Serialize, Default, JsonSchema)]
#[schemars(rename = "Samples")]
pub(super) struct SamplesView {
    #[schemars(with = "Time")]
    start: u64,
    /// Where the recording's own clock begins: columns and seconds of a heat map are counted
    /// from there.
    #[schemars(with = "Time")]
    zero: u64,
    /// Microseconds after the one before; the first after `start`.
    at: Vec<u64>,
    cpu: Vec<i64>,
    pid: Vec<u32>,
    tid: Vec<u32>,
    comm: Vec<usize>,
    unit: Vec<i64>,
    /// Ids of containers and uids of pods; empty where no sample has one.
    container: Vec<i64>,
    pod: Vec<i64>,
    weight: Vec<u64>,
    stack: Vec<i64>,
    names: Vec<String>,
    stack_caller: Vec<i64>,
    stack_name: Vec<usize>,
    stack_kind: Vec<u8>,
}

/// The samples, or `None` when there are too many.
pub(super) fn view(source: &Source, window: Window) -> Result<Option<SamplesView>, Problem> {
    let (bundle, clock) = {
        let state = source.state();
        (state.bundle.clone(), state.clock)
    };
    if bundle.stacks_span().is_none() || !source.has_times {
        return Ok(None);
    }
    let first = bundle.events().first().cloned();
    let mut collected = Collected::new(clock, window, first);
    let mut samples = Samples::default();
    samples.read(&bundle, (window.from_ns, window.to_ns), &mut collected);
    Ok((collected.n <= MAX_SAMPLES).then(|| collected.finished()))
}

/// What a cgroup belongs to; -1 is none.
#[derive(Clone, Copy)]
struct Homes {
    unit: i64,
    container: i64,
    pod: i64,
}

const HOMELESS: Homes = Homes {
    unit: -1,
    container: -1,
    pod: -1,
};

struct Collected {
    view: SamplesView,
    clock: Clock,
    last_us: u64,
    n: usize,
    /// The recording's first event, as flame graphs of the server show: weights of several do not
    /// add up.
    event: Option<String>,
    names: AHashMap<String, usize>,
    known: AHashMap<NameId, usize>,
    homes: AHashMap<NameId, Homes>,
    stacks: Walk<i64>,
}

impl Collected {
    fn new(clock: Clock, window: Window, event: Option<String>) -> Self {
        let start = clock.us(window.from_ns);
        Self {
            view: SamplesView {
                start,
                zero: clock.us(0),
                ..SamplesView::default()
            },
            clock,
            last_us: start,
            n: 0,
            event,
            names: AHashMap::new(),
            known: AHashMap::new(),
            homes: AHashMap::new(),
            stacks: Walk::default(),
        }
    }

    fn name(&mut self, text: String) -> usize {
        let names = &mut self.view.names;
        *self.names.entry(text).or_insert_with_key(|text| {
            names.push(text.clone());
            names.len() - 1
        })
    }

    fn known(&mut self, id: NameId, tables: &StackTables) -> usize {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let number = self.name(tables.name(id).to_owned());
        self.known.insert(id, number);
        number
    }

    fn homes(&mut self, cgroup: Option<NameId>, tables: &StackTables) -> Homes {
        let Some(cgroup) = cgroup else {
            return HOMELESS;
        };
        if let Some(known) = self.homes.get(&cgroup) {
            return *known;
        }
        let path = tables.name(cgroup);
        let mut number = |name: Option<String>| name.map_or(-1, |name| index(self.name(name)));
        let homes = Homes {
            unit: number(unit_of(path)),
            container: number(container_of(path)),
            pod: number(pod_of(path)),
        };
        self.homes.insert(cgroup, homes);
        homes
    }

    /// Columns that say nothing are left out: they are many bytes.
    fn finished(mut self) -> SamplesView {
        for column in [&mut self.view.container, &mut self.view.pod] {
            if column.iter().all(|name| *name == -1) {
                column.clear();
            }
        }
        self.view
    }

    /// The number of a stack; callers get theirs first.
    fn stack(&mut self, stack: StackId, tables: &StackTables) -> i64 {
        let mut stacks = std::mem::take(&mut self.stacks);
        let number = stacks.walk(tables, stack, -1, |caller, frame| {
            let frame = tables.frame(frame);
            frame.map_or(caller, |frame| self.called(caller, frame, tables))
        });
        self.stacks = stacks;
        number
    }

    /// The number of the stack in which `caller` called `frame`, which is new.
    fn called(&mut self, caller: i64, frame: &Frame, tables: &StackTables) -> i64 {
        let name = names::of_frame(tables, frame, "", Suffixes::default());
        let name = self.name(name);
        self.view.stack_caller.push(caller);
        self.view.stack_name.push(name);
        self.view.stack_kind.push(match frame.kind {
            CodeKind::Unknown => 0,
            CodeKind::Kernel => 1,
            CodeKind::User => 2,
        });
        index(self.view.stack_name.len() - 1)
    }
}

fn index(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(-1)
}

impl Sink for Collected {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        let is_first = |event: &String| tables.name(sample.event) == event;
        if !sample.state.is_busy() || !self.event.as_ref().is_none_or(is_first) {
            return;
        }
        self.n += 1;
        if self.n > MAX_SAMPLES {
            return;
        }
        let comm = self.known(sample.comm, tables);
        let homes = self.homes(sample.cgroup, tables);
        let stack = self.stack(sample.stack, tables);
        // Chunks of a bundle may overlap by a little.
        let at_us = self.clock.us(sample.at.as_ns()).max(self.last_us);
        let view = &mut self.view;
        view.at.push(at_us - self.last_us);
        view.cpu.push(match sample.cpu {
            sexton_profile::NO_CPU => -1,
            cpu => i64::from(cpu),
        });
        view.pid.push(sample.pid);
        view.tid.push(sample.tid);
        view.comm.push(comm);
        view.unit.push(homes.unit);
        view.container.push(homes.container);
        view.pod.push(homes.pod);
        view.weight.push(sample.weight);
        view.stack.push(stack);
        self.last_us = at_us;
    }
}

#[cfg(test)]
mod tests {
    use sexton_model::moment::Moment;
    use sexton_model::stack::CoreState;

    use super::*;

    /// The weights that a page keeps of a sample of each of two events.
    fn weights(event: Option<&str>) -> Vec<u64> {
        let window = Window {
            from_ns: 0,
            to_ns: 10,
        };
        let mut collected = Collected::new(Clock::default(), window, event.map(str::to_owned));
        let tables = StackTables {
            names: vec!["cpu-clock".into(), "page-faults".into()],
            ..StackTables::default()
        };
        for (event, weight) in [(1, 7), (0, 5)] {
            let sample = StackSample {
                event: NameId(event),
                weight,
                ..StackSample::without_owner(Moment::from_ns(1), 0, CoreState::User)
            };
            collected.sample(&sample, &tables);
        }
        collected.finished().weight
    }

    #[test]
    fn weights_of_several_events_are_not_added_up() {
        assert_eq!(weights(Some("cpu-clock")), [5]);
        assert_eq!(weights(None), [7, 5]);
    }
}
