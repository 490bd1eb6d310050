//! The arithmetic of restarts: whether systemd's start limit can ever end a loop.

use std::path::Path;

use crate::unit_file::settings::Settings;
use crate::unit_file::span;
use crate::unit_file::tree::Tree;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

/// What holds for every unit that says nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// `DefaultRestartSec=`
    pub restart_ns: u64,
    /// `DefaultStartLimitIntervalSec=`
    pub interval_ns: u64,
    /// `DefaultStartLimitBurst=`
    pub burst: u64,
}

impl Default for Defaults {
    /// systemd's own: 100 ms, and 5 starts within 10 s.
    fn default() -> Self {
        Self {
            restart_ns: SECOND_NS / 10,
            interval_ns: 10 * SECOND_NS,
            burst: 5,
        }
    }
}

/// What `system.conf` and its drop-ins of this root set.
pub(crate) fn manager(tree: &mut Tree<'_>) -> Settings {
    let mut settings = Settings::default();
    // The main file counts least; of two the stronger folder's is the one that is read.
    let main = ["/etc", "/run", "/usr/local/lib", "/usr/lib"];
    for folder in main {
        let path = Path::new(folder).join("systemd/system.conf");
        if tree.exists(&path) {
            settings.add(&tree.text(&path).unwrap_or_default());
            break;
        }
    }
    let mut files: std::collections::BTreeMap<String, std::path::PathBuf> = Default::default();
    for folder in main {
        let folder = Path::new(folder).join("systemd/system.conf.d");
        for entry in tree.list(&folder) {
            if entry.name.ends_with(".conf") {
                let path = folder.join(&entry.name);
                files.entry(entry.name).or_insert(path);
            }
        }
    }
    for path in files.into_values() {
        settings.add(&tree.text(&path).unwrap_or_default());
    }
    settings
}

impl Defaults {
    /// As these settings of the service manager say.
    pub(crate) fn of(settings: &Settings) -> Self {
        let own = Self::default();
        let span = |key: &str| settings.last("Manager", key).and_then(span::parse_ns);
        let burst = settings.last("Manager", "DefaultStartLimitBurst");
        Self {
            restart_ns: span("DefaultRestartSec").unwrap_or(own.restart_ns),
            interval_ns: span("DefaultStartLimitIntervalSec")
                .or_else(|| span("DefaultStartLimitInterval"))
                .unwrap_or(own.interval_ns),
            burst: burst
                .and_then(|burst| burst.parse().ok())
                .unwrap_or(own.burst),
        }
    }
}

/// How a service is restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// `Restart=`: `no`, `on-failure`, `always` and so on.
    pub when: String,
    /// From the end of one run to the start of the next.
    pub delay_ns: u64,
    /// The longest that this delay grows to.
    pub delay_max_ns: u64,
    /// The window in which starts are counted; 0 counts none.
    pub interval_ns: u64,
    /// How many starts are allowed in it.
    pub burst: u64,
    /// Exit codes that end the loop.
    pub prevented_by: Vec<String>,
}

impl Restart {
    /// Of a service's settings.
    pub fn of(settings: &Settings, defaults: &Defaults) -> Self {
        let span = |section, key| settings.last(section, key).and_then(span::parse_ns);
        let delay_ns = span("Service", "RestartSec").unwrap_or(defaults.restart_ns);
        let steps = settings
            .last("Service", "RestartSteps")
            .and_then(|n| n.parse::<u64>().ok());
        let grown = span("Service", "RestartMaxDelaySec").filter(|_| steps.unwrap_or(0) > 0);
        let burst = settings.last("Unit", "StartLimitBurst");
        // The names of before systemd 230 still work.
        let burst = burst.or(settings.last("Service", "StartLimitBurst"));
        let interval_ns = span("Unit", "StartLimitIntervalSec")
            .or_else(|| span("Unit", "StartLimitInterval"))
            .or_else(|| span("Service", "StartLimitInterval"))
            .unwrap_or(defaults.interval_ns);
        Self {
            when: settings
                .last("Service", "Restart")
                .unwrap_or("no")
                .to_owned(),
            delay_ns,
            delay_max_ns: grown.unwrap_or(delay_ns).max(delay_ns),
            interval_ns,
            burst: burst.and_then(|n| n.parse().ok()).unwrap_or(defaults.burst),
            prevented_by: settings.words("Service", "RestartPreventExitStatus"),
        }
    }

    /// Whether it is restarted when it fails.
    pub fn is_on_failure(&self) -> bool {
        matches!(
            self.when.as_str(),
            "always" | "on-failure" | "on-abnormal" | "on-abort" | "on-watchdog"
        )
    }

    /// Whether a service that fails at once is restarted without end: the window is over
    /// before so many starts fit into it, or nothing is counted.
    pub fn is_endless(&self) -> bool {
        let spread = self.delay_ns.saturating_mul(self.burst);
        let unlimited = self.interval_ns == 0 || self.burst == 0;
        self.is_on_failure() && (unlimited || spread >= self.interval_ns)
    }

    /// At most so many runs a day, each with a memory cgroup of its own: as many as the
    /// delays leave room for if a run itself takes no time.
    pub fn runs_per_day(&self) -> u64 {
        // systemd does nothing faster than about a hundred times a second.
        DAY_NS / self.delay_max_ns.max(SECOND_NS / 100)
    }

    /// The sum, for a person to check.
    pub fn arithmetic(&self) -> String {
        let seconds = |ns: u64| match ns {
            u64::MAX => "infinity".to_owned(),
            _ => format!("{}s", ns as f64 / 1e9),
        };
        if self.interval_ns == 0 || self.burst == 0 {
            return "the start limit is off".into();
        }
        format!(
            "RestartSec {} x StartLimitBurst {} = {}, StartLimitIntervalSec is {}",
            seconds(self.delay_ns),
            self.burst,
            seconds(self.delay_ns.saturating_mul(self.burst)),
            seconds(self.interval_ns),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, endless: bool, runs_per_day: u64) {
        let restart = Restart::of(&Settings::parse(text), &Defaults::default());
        assert_eq!(restart.is_endless(), endless, "{text}");
        assert_eq!(restart.runs_per_day(), runs_per_day, "{text}");
    }

    #[test]
    fn the_limit_must_be_reached_within_its_window() {
        check(
            "[Service]\nRestart=on-failure\nRestartSec=10s\n",
            true,
            8_640,
        );
        check("[Service]\nRestart=always\n", false, 864_000);
        check("[Service]\nRestart=always\nRestartSec=2\n", true, 43_200);
        check(
            "[Service]\nRestart=always\nRestartSec=1999ms\n",
            false,
            43_221,
        );
        check("[Service]\nRestartSec=10s\n", false, 8_640);
        check("[Service]\nRestart=no\nRestartSec=10s\n", false, 8_640);
        check(
            "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\n",
            true,
            864_000,
        );
        check(
            "[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=3\n[Service]\nRestart=always\nRestartSec=10\n",
            false,
            8_640,
        );
        check(
            "[Service]\nRestart=always\nRestartSec=1\nStartLimitInterval=0\n",
            true,
            86_400,
        );
        check(
            "[Service]\nRestart=always\nRestartSec=5\nRestartSteps=8\nRestartMaxDelaySec=1h\n",
            true,
            24,
        );
    }

    #[test]
    fn defaults_of_the_image_count() {
        let text = "[Manager]\nDefaultStartLimitIntervalSec=1min\nDefaultStartLimitBurst=10\nDefaultRestartSec=5s\n";
        let defaults = Defaults::of(&Settings::parse(text));
        let restart = Restart::of(&Settings::parse("[Service]\nRestart=always\n"), &defaults);
        assert!(!restart.is_endless());
        assert_eq!(
            restart.arithmetic(),
            "RestartSec 5s x StartLimitBurst 10 = 50s, StartLimitIntervalSec is 60s"
        );
    }
}
