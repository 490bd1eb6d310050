//! Profiles of OpenTelemetry: of windows for a receiver, or of all samples with their times as a
//! file.

mod dictionary;

use std::io::{self, Write};

use ahash::AHashMap;
use prost::Message as _;
use sexton_model::stack::{NameId, StackId, StackSample, StackTables};

use crate::NO_CPU;
use crate::filter::{Filter, Matcher};
use crate::import::Sink;
use crate::proto::otlp::{
    InstrumentationScope, KeyValue, Profile, ProfilesData, Resource, ResourceProfiles, Sample,
    ScopeProfiles,
};
use crate::weight::value_type;
use crate::window::WindowProfile;
use dictionary::Dictionary;

/// Who made it.
pub const SCOPE: &str = "sexton";

/// Attributes of a sample in a file, by the semantic conventions of OpenTelemetry where they have
/// one.
pub(crate) const PID: &str = "process.pid";
pub(crate) const TID: &str = "thread.id";
pub(crate) const THREAD: &str = "thread.name";
pub(crate) const CORE: &str = "cpu.logical_number";
pub(crate) const CGROUP: &str = "linux.cgroup";

/// A request with the profiles of one window, and how many stacks were cut. `attributes_of` makes
/// the attributes of a resource from the labels of an owner.
pub fn encode(
    windows: &[WindowProfile],
    version: &str,
    max_depth: usize,
    attributes_of: impl Fn(&WindowProfile) -> Vec<KeyValue>,
) -> (ProfilesData, u64) {
    let mut dictionary = Dictionary::new(max_depth);
    let mut resources = Vec::with_capacity(windows.len());
    for window in windows {
        // All profiles of a window have the same tables.
        dictionary.begin(&window.tables);
        let (kind, unit) = window.kind();
        let sample_type = dictionary.value_type(&kind, unit);
        let mut samples = Vec::with_capacity(window.samples.len());
        for counted in &window.samples {
            samples.push(Sample {
                stack_index: dictionary.stack(counted.stack, &window.tables),
                values: vec![signed(counted.weight)],
                ..Sample::default()
            });
        }
        let weight: u64 = window.samples.iter().map(|it| it.weight).sum();
        let profile = Profile {
            sample_type: Some(sample_type),
            samples,
            time_unix_nano: window.start_ns,
            duration_nano: window.duration_ns,
            period_type: Some(sample_type),
            period: signed(weight / window.n_samples().max(1)),
            profile_id: profile_id(window),
        };
        let resource = attributes_of(window);
        resources.push(of_resource(resource, version, vec![profile]));
    }
    let (dictionary, n_cut) = dictionary.finish();
    let data = ProfilesData {
        resource_profiles: resources,
        dictionary: Some(dictionary),
    };
    (data, n_cut)
}

/// The same for the same owner and time, so that a receiver can tell what was sent twice.
fn profile_id(window: &WindowProfile) -> Vec<u8> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut id = Vec::with_capacity(16);
    for seed in 0..2_u8 {
        let mut hasher = DefaultHasher::new();
        (seed, &window.labels, &window.event, window.start_ns).hash(&mut hasher);
        id.extend_from_slice(&hasher.finish().to_be_bytes());
    }
    id
}

fn of_resource(
    attributes: Vec<KeyValue>,
    version: &str,
    profiles: Vec<Profile>,
) -> ResourceProfiles {
    ResourceProfiles {
        resource: Some(Resource { attributes }),
        scope_profiles: vec![ScopeProfiles {
            scope: Some(InstrumentationScope {
                name: SCOPE.to_owned(),
                version: version.to_owned(),
            }),
            profiles,
        }],
    }
}

/// What samples of a file have in common: all but their time and weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Alike {
    event: NameId,
    pid: u32,
    tid: u32,
    cpu: u32,
    comm: NameId,
    cgroup: Option<NameId>,
    stack: StackId,
}

/// Samples for a file, each with its time.
pub struct Otlp {
    matcher: Matcher,
    samples: AHashMap<Alike, Vec<(u64, u64)>>,
    n_samples: u64,
}

impl Otlp {
    /// Takes what the filter lets pass.
    pub fn new(filter: Filter) -> Self {
        Self {
            matcher: Matcher::new(filter),
            samples: AHashMap::new(),
            n_samples: 0,
        }
    }

    /// How many samples were taken.
    pub fn n_samples(&self) -> u64 {
        self.n_samples
    }

    /// Writes the file. `wall_ns` says what nanoseconds since 1970 a time of the recording is.
    pub fn write(
        self,
        out: &mut dyn Write,
        tables: &StackTables,
        version: &str,
        wall_ns: impl Fn(u64) -> u64,
    ) -> io::Result<()> {
        let mut dictionary = Dictionary::new(usize::MAX);
        dictionary.begin(tables);
        let mut sorted: Vec<(Alike, Vec<(u64, u64)>)> = self.samples.into_iter().collect();
        sorted.sort_unstable_by_key(|(alike, times)| (alike.event, times[0], alike.tid, alike.cpu));
        let mut profiles: Vec<(NameId, Profile)> = Vec::new();
        for (alike, times) in sorted {
            if profiles
                .last()
                .is_none_or(|(event, _)| *event != alike.event)
            {
                let event = tables.name(alike.event);
                let (name, unit) = value_type(event);
                let sample_type = dictionary.value_type(name, unit);
                let profile = Profile {
                    sample_type: Some(sample_type),
                    period_type: Some(sample_type),
                    ..Profile::default()
                };
                profiles.push((alike.event, profile));
            }
            let sample = Sample {
                stack_index: dictionary.stack(alike.stack, tables),
                attribute_indices: attributes(&mut dictionary, &alike, tables),
                values: times.iter().map(|(_, weight)| signed(*weight)).collect(),
                timestamps_unix_nano: times.iter().map(|(at, _)| wall_ns(*at)).collect(),
            };
            if let Some((_, profile)) = profiles.last_mut() {
                profile.samples.push(sample);
            }
        }
        let profiles = profiles.into_iter().map(|(_, mut profile)| {
            let times = || {
                profile
                    .samples
                    .iter()
                    .flat_map(|it| &it.timestamps_unix_nano)
            };
            let first = times().min().copied().unwrap_or(0);
            profile.duration_nano = times().max().copied().unwrap_or(0) - first;
            profile.time_unix_nano = first;
            profile
        });
        let resource = vec![KeyValue::new("service.name", SCOPE)];
        let data = ProfilesData {
            resource_profiles: vec![of_resource(resource, version, profiles.collect())],
            dictionary: Some(dictionary.finish().0),
        };
        out.write_all(&data.encode_to_vec())
    }
}

fn attributes(dictionary: &mut Dictionary, alike: &Alike, tables: &StackTables) -> Vec<i32> {
    let mut indices = vec![
        dictionary.attribute(PID, i64::from(alike.pid)),
        dictionary.attribute(TID, i64::from(alike.tid)),
        dictionary.attribute(THREAD, tables.name(alike.comm)),
    ];
    if alike.cpu != NO_CPU {
        indices.push(dictionary.attribute(CORE, i64::from(alike.cpu)));
    }
    if let Some(cgroup) = alike.cgroup {
        indices.push(dictionary.attribute(CGROUP, tables.name(cgroup)));
    }
    indices
}

impl Sink for Otlp {
    fn sample(&mut self, sample: &StackSample, tables: &StackTables) {
        if !self.matcher.accepts(sample, tables) {
            return;
        }
        let alike = Alike {
            event: sample.event,
            pid: sample.pid,
            tid: sample.tid,
            cpu: sample.cpu,
            comm: sample.comm,
            cgroup: sample.cgroup,
            stack: sample.stack,
        };
        let times = self.samples.entry(alike).or_default();
        times.push((sample.at.as_ns(), sample.weight));
        self.n_samples += 1;
    }

    /// The function is what this file says of an address.
    fn wants_addresses(&self) -> bool {
        false
    }

    fn matcher(&self) -> Option<&Matcher> {
        Some(&self.matcher)
    }

    fn matcher_mut(&mut self) -> Option<&mut Matcher> {
        Some(&mut self.matcher)
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
