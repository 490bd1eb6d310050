//! Sends what the agent records to receivers: joins the configuration and the agent's ring with
//! `sexton-export`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use sexton_agent::{ExportStatus, Level, Log, Shared, Tap};
use sexton_export::push::{
    Channel, Encoding, Now, OwnFigures, Owners, Pace, Pusher, Receiver, Settings, Signal, Source,
    Stats,
};
use sexton_host::clock;
use sexton_http::{Identity, Part, Server, Trust};
use sexton_store::{Bundle, Ring};

use super::config::export::{ExportConfig, ReceiverConfig};
use super::scrape;

/// What sends. Nothing of it is there when no receiver is named.
pub struct Export {
    pushers: Vec<Pusher>,
    owners: Arc<Mutex<Owners>>,
}

impl Export {
    /// Starts sending to the receivers of the configuration.
    pub fn start(
        config: &ExportConfig,
        (ring, bundle): (&Path, &Path),
        shared: &Shared,
        log: impl Fn() -> Log,
    ) -> Result<Option<Self>> {
        if config.is_empty() {
            return Ok(None);
        }
        let node = Bundle::open(bundle)
            .context("cannot read the ring")?
            .node()
            .clone();
        let owners: Arc<Mutex<Owners>> = Arc::default();
        let status = shared.clone();
        let own: OwnFigures = Arc::new(move || scrape::own(&status.get()));
        let ring = Ring::at(ring);
        let pace: Arc<Pace> = Arc::default();
        let mut pushers = Vec::new();
        for (kind, receiver) in receivers(config) {
            let of = |signal| kind.receiver(receiver, signal);
            let wanted = [
                (receiver.metrics, Signal::Metrics),
                (receiver.logs, Signal::Logs),
                (receiver.profiles, Signal::Profiles),
            ];
            let wanted = wanted.into_iter().filter(|(is_wanted, _)| *is_wanted);
            let channels = wanted.map(|(_, signal)| {
                let receiver = of(signal);
                let from = (node.boot_id.as_str(), node.name.as_str());
                let source = Source::new(ring.clone(), from, Arc::clone(&owners), Arc::clone(&own));
                let place = ring.place_of(receiver.name);
                Channel::new(receiver, source, place, env!("SEXTON_VERSION"), now())
            });
            let settings = Settings {
                server: server(receiver),
                channels: channels.collect(),
                version: env!("SEXTON_VERSION"),
                now,
                pace: Arc::clone(&pace),
            };
            let mut log = log();
            let log = Box::new(move |is_trouble: bool, text: &str| {
                let level = match is_trouble {
                    true => Level::Warning,
                    false => Level::Info,
                };
                log(level, text);
            });
            pushers.push(Pusher::start(settings, log).context("cannot start a thread that sends")?);
        }
        Ok(Some(Self { pushers, owners }))
    }

    /// What the agent shows its records to: they say which container is whose.
    pub fn tap(&self) -> Tap {
        let owners = Arc::clone(&self.owners);
        Box::new(move |records| {
            let mut owners = owners.lock().unwrap_or_else(PoisonError::into_inner);
            records.iter().for_each(|record| owners.take(record));
        })
    }

    /// Puts how it goes into the agent's status.
    pub fn tell_status(&self, shared: &Shared) {
        let stats = self.pushers.iter().flat_map(Pusher::stats);
        let exports = stats.map(status).collect();
        shared.change(|all| all.exports = exports);
    }
}

/// A kind of receiver.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Otlp,
    Pyroscope,
    Parca,
}

fn receivers(config: &ExportConfig) -> impl Iterator<Item = (Kind, &ReceiverConfig)> {
    let all = [
        (Kind::Otlp, &config.otlp),
        (Kind::Pyroscope, &config.pyroscope),
        (Kind::Parca, &config.parca),
    ];
    all.into_iter()
        .filter_map(|(kind, receiver)| Some((kind, receiver.as_ref()?)))
}

impl Kind {
    fn receiver(self, config: &ReceiverConfig, signal: Signal) -> Receiver {
        let (name, encoding, path) = match (self, signal) {
            (Self::Otlp, Signal::Metrics) => ("otlp-metrics", Encoding::Otlp, "/v1/metrics"),
            (Self::Otlp, Signal::Logs) => ("otlp-logs", Encoding::Otlp, "/v1/logs"),
            (Self::Otlp, Signal::Profiles) => {
                let path = "/v1development/profiles";
                ("otlp-profiles", Encoding::Otlp, path)
            }
            (Self::Pyroscope, _) => {
                let path = "/push.v1.PusherService/Push";
                ("pyroscope", Encoding::Pyroscope, path)
            }
            (Self::Parca, _) => ("parca", Encoding::Parca, "/api/profiles/writeraw"),
        };
        Receiver {
            name,
            signal,
            encoding,
            path: format!("{}{path}", config.endpoint.path),
            max_age: config.max_age,
            headers: config.headers.clone(),
        }
    }
}

fn server(config: &ReceiverConfig) -> Server {
    let trust = match (&config.tls_ca, config.endpoint.is_https) {
        (_, false) => Trust::Plain,
        (Some(file), true) => Trust::Authority(Part::File(file.clone())),
        (None, true) => Trust::System,
    };
    let token = config.token_file.clone().map(Part::File);
    Server {
        host: config.endpoint.host.clone(),
        port: config.endpoint.port,
        trust,
        server_name: None,
        identity: token.map_or(Identity::Anonymous, Identity::Token),
    }
}

fn now() -> Now {
    Now {
        boot: clock::now(),
        wall_ns: clock::wall_ns(),
    }
}

fn status(stats: Stats) -> ExportStatus {
    ExportStatus {
        channel: stats.channel,
        sent: stats.n_sent,
        sent_bytes: stats.sent_bytes,
        requests: stats.n_requests,
        refused: stats.n_refused,
        dropped: stats.n_dropped,
        cut: stats.n_cut,
        folded: stats.n_folded,
        lag_seconds: stats.lag_seconds,
        trouble: stats.trouble,
    }
}
