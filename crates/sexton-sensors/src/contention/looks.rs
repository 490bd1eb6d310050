//! When all processes are looked at, and what is told after a look.

use std::time::Duration;

use sexton_host::Host;
use sexton_model::moment::Moment;
use sexton_model::record::Sink;

use super::owners;
use super::processes::{Look, Processes};
use super::sign::left_out;
use crate::effort::Effort;

/// How often processes are looked at, unless that takes too much.
const EVERY: Duration = Duration::from_secs(5);

/// The looks.
#[derive(Debug, Default)]
pub(super) struct Looks {
    processes: Processes,
    looked: Option<Moment>,
    /// Until when it rests after the effort of a look.
    rests: Moment,
}

impl Looks {
    /// One poll.
    pub(super) fn poll(&mut self, host: &Host, asks: bool, out: &mut Sink) {
        let now = out.now();
        if !asks {
            // What was seen so far was told, and nothing is kept while all is quiet.
            self.looked = None;
            return self.processes.forget();
        }
        // Polls are not exactly on time; one that is a little early counts.
        let is_early = |at: Moment| now.since(at) + EVERY / 10 < EVERY;
        if self.looked.is_some_and(is_early) || now < self.rests {
            return;
        }
        let effort = Effort::begin();
        let look = self.processes.look(host, (self.looked, now));
        if let Some(at) = self.looked.replace(now) {
            tell_left_out(&look, out);
            owners::tell(host, &look, now.since(at), out);
        }
        self.rests = now.after(effort.rest());
    }
}

/// What a look had no time for.
fn tell_left_out(look: &Look, out: &mut Sink) {
    let what = "processes were not asked how long they waited for a core";
    let of_threads = "processes were not asked how long their threads waited for a core";
    for (n, what) in [
        (look.n_left_out, what),
        (look.n_threads_left_out, of_threads),
    ] {
        if n > 0 {
            left_out(n, what, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sign that comes and goes: nothing is kept when it is gone.
    #[test]
    fn nothing_is_read_while_all_is_quiet() {
        let host = Host::live().expect("a mount table");
        let mut looks = Looks::default();
        let mut poll = |ns: u64, asks| {
            let mut out = Sink::new(super::super::NAME, Moment::from_ns(ns));
            looks.poll(&host, asks, &mut out);
            looks.processes.is_empty()
        };
        assert!(poll(1, false));
        assert!(!poll(2, true));
        assert!(poll(3, false));
        // The look before has to be rested from.
        assert!(poll(4, true));
        assert!(!poll(100_000_000_000, true));
    }
}
