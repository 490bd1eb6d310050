//! Where records and verdicts go beside the ring: Kubernetes, the bucket of the fleet, receivers of
//! exports, and the helper that acts. Each is off unless the configuration names it.

use std::sync::Arc;

use anyhow::Result;
use sexton_agent::{Agent, Fleet, OnVerdict, Shared, Tap};
use sexton_host::Host;

use super::config::Config;
use super::export::Export;
use super::kubernetes::Kubernetes;
use super::remedy::Remedy;
use super::{fleet, log};

pub(super) struct Outlets {
    kubernetes: Option<Kubernetes>,
    fleet: Option<Fleet>,
    export: Option<Export>,
    pub(super) remedy: Remedy,
}

impl Outlets {
    pub(super) fn start(
        config: &Config,
        host: &Arc<Host>,
        agent: &mut Agent,
        shared: &Shared,
    ) -> Result<Self> {
        let ring = (config.ring.as_path(), agent.bundle());
        Ok(Self {
            kubernetes: Kubernetes::start(&config.kubernetes, log())?,
            fleet: fleet::start(config, host, log())?,
            export: Export::start(&config.export, ring, shared, log)?,
            remedy: Remedy::new(&config.remedy),
        })
    }

    /// Has the agent show records and verdicts to all of them, and records to `shown`.
    pub(super) fn connect(&self, agent: &mut Agent, shown: Option<Tap>) {
        let taps = [
            shown,
            self.kubernetes.as_ref().map(Kubernetes::tap),
            self.fleet.as_ref().map(Fleet::tap),
            self.export.as_ref().map(Export::tap),
        ];
        let mut taps: Vec<Tap> = taps.into_iter().flatten().collect();
        if !taps.is_empty() {
            agent.set_tap(Box::new(move |records| {
                taps.iter_mut().for_each(|tap| tap(records));
            }));
        }
        let told = [
            self.kubernetes.as_ref().map(Kubernetes::on_verdict),
            self.fleet.as_ref().map(Fleet::on_verdict),
            Some(self.remedy.on_verdict()),
        ];
        let mut told: Vec<OnVerdict> = told.into_iter().flatten().collect();
        agent.set_on_verdict(Box::new(move |judged| {
            told.iter_mut().for_each(|tell| tell(judged));
        }));
    }

    /// How each of them is, and what was done.
    pub(super) fn tell_status(&self, agent: &mut Agent, shared: &Shared) {
        self.kubernetes.iter().for_each(|it| it.tell_status(shared));
        self.remedy.tell(agent);
        self.fleet.iter().for_each(|it| it.tell_status(shared));
        self.export.iter().for_each(|it| it.tell_status(shared));
    }

    pub(super) fn stop(&self) {
        self.fleet.iter().for_each(Fleet::stop);
    }
}
