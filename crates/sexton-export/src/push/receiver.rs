//! What a receiver takes, and how a request to it is made.

use std::time::Duration;

use super::channel::Request;
use super::load::Load;
use super::{otlp, parca, pyroscope};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Metrics.
    Metrics,
    /// Turns of findings.
    Logs,
    /// Profiles.
    Profiles,
}

impl Signal {
    /// The length of its windows. Receivers of profiles expect 15 s, those of metrics 15 s to a
    /// minute.
    pub(super) fn width(self) -> Duration {
        match self {
            Self::Metrics => Duration::from_secs(30),
            Self::Logs | Self::Profiles => Duration::from_secs(15),
        }
    }
}

/// How it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// OTLP over HTTP.
    Otlp,
    /// Pyroscope's push.
    Pyroscope,
    /// Parca's write of raw profiles.
    Parca,
}

/// A receiver of one kind of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// The name of the channel: `otlp-metrics`, `pyroscope`.
    pub name: &'static str,
    /// What it is sent.
    pub signal: Signal,
    /// How.
    pub encoding: Encoding,
    /// The path of requests.
    pub path: String,
    /// What is older is not sent: it would be refused.
    pub max_age: Duration,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
}

impl Receiver {
    /// The most that one request carries, before it is packed, until the receiver says that it
    /// takes less.
    pub(super) fn max_bytes(&self) -> usize {
        match self.encoding {
            // The OTLP specification recommends 64 MiB; collectors accept 20 MiB, proxies less.
            Encoding::Otlp => 4 << 20,
            // Its burst is 2 MB, of what profiles unpack to.
            Encoding::Pyroscope => 3 << 19,
            Encoding::Parca => 8 << 20,
        }
    }

    /// The request; `None` when it would be larger than it may be.
    pub(super) fn request(
        &self,
        load: &Load,
        (node, version): (&str, &str),
        max_bytes: usize,
    ) -> Option<(Request, u64)> {
        let (content_type, body, n_cut, plain_bytes) = match self.encoding {
            Encoding::Otlp => {
                let (body, n_cut) = otlp::message(load, node, version);
                let plain_bytes = body.len();
                let packed = pyroscope::packed(&body);
                ("application/x-protobuf", packed, n_cut, plain_bytes)
            }
            Encoding::Pyroscope => {
                let (body, n_cut, unpacked) = pyroscope::message(load)?;
                ("application/proto", body, n_cut, unpacked)
            }
            Encoding::Parca => {
                let (body, n_cut) = parca::message(load);
                let plain_bytes = body.len();
                ("application/json", body, n_cut, plain_bytes)
            }
        };
        if plain_bytes > max_bytes {
            return None;
        }
        let mut headers = vec![("content-type".to_owned(), content_type.to_owned())];
        if self.encoding == Encoding::Otlp {
            headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
        }
        headers.extend(self.headers.iter().cloned());
        let request = Request {
            path: self.path.clone(),
            headers,
            body,
            plain_bytes,
        };
        Some((request, n_cut))
    }

    /// How much the receiver left out of what it took, and why.
    pub(super) fn left_out(&self, answer: &[u8]) -> Option<(u64, String)> {
        match self.encoding {
            Encoding::Otlp => otlp::left_out(answer),
            Encoding::Pyroscope | Encoding::Parca => None,
        }
    }
}
