//! Keeps what was done without a person where it can be seen: log, status, findings log.

use sexton_host::clock;
use sexton_model::subject::Subject;

use super::{Agent, Level};
use crate::status::ActStatus;

/// Acts that the status names.
const MAX_ACTS: usize = 20;

impl Agent {
    /// Notes an act, or what kept it from being done.
    pub fn note_act(&mut self, subject: &Subject, act: ActStatus) {
        let undo = act.undo_file.as_ref().map_or(String::new(), |file| {
            format!("; to undo: sexton fix --undo {}", file.display())
        });
        let line = format!(
            "remedy {}: {}:{}: {}{undo}",
            act.outcome, act.code, act.origin, act.text
        );
        let level = match act.outcome.as_str() {
            "planned" => Level::Info,
            _ => Level::Warning,
        };
        self.say(level, &line);
        let noted = self.findings.add_act(subject, &act, clock::now());
        if let Err(error) = noted {
            let text = format!("cannot write the findings log: {}", error.chain());
            self.say(Level::Warning, &text);
        }
        self.shared.change(|status| {
            status.acts.push(act);
            let n_old = status.acts.len().saturating_sub(MAX_ACTS);
            status.acts.drain(..n_old);
        });
    }
}
