//! The part of a writer that keeps samples of stacks.

use sexton_model::gap::{Gap, Why};
use sexton_model::moment::Moment;
use sexton_model::stack::{StackSample, StackTables};

use super::{BundleWriter, store_gap};
use crate::SENSOR;
use crate::error::StoreError;

impl BundleWriter {
    /// Takes samples of stacks, whose numbers are of these tables; they are kept once `sync`
    /// has returned. Tables need not be the same from call to call: what samples refer to
    /// is found again by what it is. Within one batch samples may come in any order.
    ///
    /// After an error those that were not taken are counted, and spoken of by a gap once
    /// there is room again.
    pub fn append_stacks(
        &mut self,
        samples: &[StackSample],
        tables: &StackTables,
    ) -> Result<(), StoreError> {
        let taken = self.stacks.append(&self.ledger, samples, tables);
        taken.map_err(|(error, n_left)| {
            self.n_samples_refused += n_left;
            error
        })
    }

    /// Samples of stacks that were kept so far.
    pub fn n_samples(&self) -> u64 {
        self.stacks.n_kept()
    }

    /// Makes a gap of samples that found no room.
    pub(super) fn speak_of_refused_samples(&mut self, now: Moment) -> Result<(), StoreError> {
        if self.n_samples_refused == 0 {
            return Ok(());
        }
        let text = format!(
            "{} samples of stacks until {} ns after boot dropped: buffer full",
            self.n_samples_refused,
            now.as_ns()
        );
        let gap = Gap::new(SENSOR, Why::Lost(self.n_samples_refused), text);
        self.push(&store_gap(now, gap))?;
        self.n_samples_refused = 0;
        Ok(())
    }

    /// Makes a gap of the end of a log of stacks that a killed writer left torn.
    pub(super) fn speak_of_torn_stacks(
        &mut self,
        now: Moment,
        torn_bytes: u64,
    ) -> Result<(), StoreError> {
        if torn_bytes == 0 {
            return Ok(());
        }
        let text = format!(
            "the recorder was killed: samples of stacks in its last {torn_bytes} bytes are lost"
        );
        self.push(&store_gap(now, Gap::new(SENSOR, Why::Lost(0), text)))?;
        self.flush()
    }
}
