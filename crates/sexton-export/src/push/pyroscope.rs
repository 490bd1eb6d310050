//! Pyroscope: `push.v1.PusherService/Push` by the Connect protocol, as protobuf.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use sexton_profile::export::pprof_window;
use sexton_profile::window::WindowProfile;

use super::load::Load;

/// Its default limits (`pkg/validation/limits.go`): bytes of a profile before it is packed, stacks of a
/// profile, frames of a stack.
const MAX_PROFILE_BYTES: usize = 4 << 20;
const MAX_STACKS: usize = 16_000;
const MAX_DEPTH: usize = 1_000;

/// The name that all profilers of processors use there.
pub(super) const NAME: (&str, &str) = ("__name__", "process_cpu");

#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
}

/// The message, how many stacks were cut, and what its profiles unpack to. `None` when a profile is
/// larger than a receiver takes.
pub(super) fn message(load: &Load) -> Option<(Vec<u8>, u64, usize)> {
    let Load::Profiles(profiles) = load else {
        return Some((Vec::new(), 0, 0));
    };
    let (mut n_cut, mut unpacked) = (0, 0);
    let mut series = Vec::with_capacity(profiles.len());
    for profile in profiles {
        let encoded = pprof_window::encode(profile, MAX_DEPTH);
        if profile.samples.len() > MAX_STACKS || encoded.bytes.len() > MAX_PROFILE_BYTES {
            return None;
        }
        n_cut += encoded.n_cut;
        unpacked += encoded.bytes.len();
        series.push(Series {
            labels: labels(profile),
            samples: vec![RawSample {
                raw_profile: packed(&encoded.bytes),
            }],
        });
    }
    let request = PushRequest { series };
    Some((request.encode_to_vec(), n_cut, unpacked))
}

fn labels(profile: &WindowProfile) -> Vec<LabelPair> {
    let label = |name: &str, value: &str| LabelPair {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let named = std::iter::once(label(NAME.0, NAME.1));
    let rest = profile
        .labels
        .iter()
        .map(|(name, value)| label(name, value));
    named.chain(rest).collect()
}

/// As gzip.
pub(super) fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes)
        .and_then(|()| gzip.finish())
        .expect("memory takes what is written")
}
