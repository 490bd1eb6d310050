//! What one request carries, and how it is made smaller.

use sexton_profile::window::WindowProfile;

use crate::points::Points;
use crate::push::logs::LogLine;

/// What one request carries.
#[derive(Debug, Clone)]
pub enum Load {
    /// Metrics at a time, in nanoseconds since 1970; counters count since the first.
    Metrics {
        /// Since when counters count.
        since_ns: u64,
        /// When they were so.
        at_ns: u64,
        /// The metrics.
        metrics: Vec<Points>,
    },
    /// Turns of findings.
    Logs(Vec<LogLine>),
    /// Profiles of one window.
    Profiles(Vec<WindowProfile>),
}

impl Load {
    /// Whether there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Metrics { metrics, .. } => metrics.is_empty(),
            Self::Logs(lines) => lines.is_empty(),
            Self::Profiles(profiles) => profiles.is_empty(),
        }
    }

    /// Two parts; `None` when it cannot be made smaller.
    pub(super) fn split(self) -> Option<(Self, Self)> {
        match self {
            Self::Metrics {
                since_ns,
                at_ns,
                metrics,
            } => {
                let (first, second) = split_metrics(metrics)?;
                let part = |metrics| Self::Metrics {
                    since_ns,
                    at_ns,
                    metrics,
                };
                Some((part(first), part(second)))
            }
            Self::Logs(lines) => {
                let (first, second) = halves(lines)?;
                Some((Self::Logs(first), Self::Logs(second)))
            }
            Self::Profiles(profiles) => {
                if let [profile] = profiles.as_slice() {
                    let (first, second) = profile.split()?;
                    return Some((Self::Profiles(vec![first]), Self::Profiles(vec![second])));
                }
                let (first, second) = halves(profiles)?;
                Some((Self::Profiles(first), Self::Profiles(second)))
            }
        }
    }
}

fn halves<T>(mut all: Vec<T>) -> Option<(Vec<T>, Vec<T>)> {
    if all.len() < 2 {
        return None;
    }
    let second = all.split_off(all.len() / 2);
    Some((all, second))
}

fn split_metrics(metrics: Vec<Points>) -> Option<(Vec<Points>, Vec<Points>)> {
    if let [metric] = metrics.as_slice() {
        let (first, second) = halves(metric.points.clone())?;
        let part = |points| Points {
            points,
            ..metric.clone()
        };
        return Some((vec![part(first)], vec![part(second)]));
    }
    halves(metrics)
}
