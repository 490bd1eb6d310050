//! The two answers of the Docker API that we read: the list of containers, and events.

use std::collections::HashMap;

use serde::Deserialize;

use crate::container::{Happening, Identity, Listed, State, What, plain};

/// The list, ended ones included.
pub(crate) const LIST: &str = "/containers/json?all=1";

/// Answers `OK`, and costs the daemon nothing.
pub(crate) const PING: &str = "/_ping";

/// `{"type":["container"]}`. Not by kind of event too: Podman has names of its own for
/// some (`died`), and which of them a filter takes differs between its versions.
const CONTAINERS_ONLY: &str = "%7B%22type%22%3A%5B%22container%22%5D%7D";

/// The longest line of events. One holds the labels of a container, which may be large.
pub(crate) const LINE_LIMIT_BYTES: usize = 256 << 10;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Events from then on, without an end.
pub(crate) fn events_since(since_ns: u64) -> String {
    let since = seconds(since_ns);
    format!("/events?since={since}&filters={CONTAINERS_ONLY}")
}

/// Events from then until then.
pub(crate) fn events_between(since_ns: u64, until_ns: u64) -> String {
    let (since, until) = (seconds(since_ns), seconds(until_ns));
    format!("/events?since={since}&until={until}&filters={CONTAINERS_ONLY}")
}

/// With all nine digits: Docker reads what is after the point as nanoseconds.
fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / NS_PER_SECOND, ns % NS_PER_SECOND)
}

#[derive(Deserialize)]
struct RawListed {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "Names", default)]
    names: Option<Vec<String>>,
    #[serde(rename = "Image", default)]
    image: String,
    #[serde(rename = "Created", default)]
    created: Option<u64>,
    #[serde(rename = "Labels", default)]
    labels: Option<HashMap<String, String>>,
    #[serde(rename = "State", default)]
    state: String,
}

#[derive(Deserialize)]
struct RawEvent {
    #[serde(rename = "Type", default)]
    kind: String,
    #[serde(rename = "Action", default)]
    action: String,
    #[serde(rename = "Actor")]
    actor: RawActor,
    #[serde(rename = "timeNano")]
    time_ns: u64,
}

#[derive(Deserialize)]
struct RawActor {
    #[serde(rename = "ID")]
    id: String,
    #[serde(rename = "Attributes", default)]
    attributes: Option<HashMap<String, String>>,
}

/// The containers of a list.
pub(crate) fn list(body: &[u8]) -> Result<Vec<Listed>, String> {
    let raw: Vec<RawListed> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(raw.into_iter().map(listed).collect())
}

fn listed(raw: RawListed) -> Listed {
    let labels = raw.labels.unwrap_or_default();
    let names = raw.names.unwrap_or_default();
    // Links to a container are names with a second slash; its own has one.
    let name = names.iter().map(|name| name.trim_start_matches('/'));
    let name = name.min_by_key(|name| name.contains('/'));
    Listed {
        identity: Identity {
            name: name.map(plain),
            ..Identity::of(&raw.id, &raw.image, &labels)
        },
        state: match raw.state.as_str() {
            "running" | "paused" => State::Runs,
            "restarting" => State::Restarting,
            _ => State::Other,
        },
        created_ns: raw.created.and_then(|s| s.checked_mul(NS_PER_SECOND)),
        started_ns: None,
    }
}

/// What a line of events says, if it is of a kind that matters.
pub(crate) fn event(line: &[u8]) -> Result<Option<Happening>, String> {
    let raw: RawEvent = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    if raw.kind != "container" {
        return Ok(None);
    }
    let attributes = raw.actor.attributes.unwrap_or_default();
    let number = |key: &str| attributes.get(key).and_then(|value| value.parse().ok());
    let what = match raw.action.as_str() {
        "start" => What::Started,
        "die" | "died" => What::Exited {
            code: number("exitCode").or_else(|| number("containerExitCode")),
            lived_s: number("execDuration").and_then(|s: i64| u64::try_from(s).ok()),
        },
        "oom" => What::OutOfMemory,
        "kill"
            if attributes
                .get("signal")
                .is_some_and(|signal| is_sigkill(signal)) =>
        {
            What::Killed
        }
        _ => return Ok(None),
    };
    let image = attributes.get("image").map_or("", String::as_str);
    Ok(Some(Happening {
        identity: Identity {
            name: attributes.get("name").map(|name| plain(name)),
            ..Identity::of(&raw.actor.id, image, &attributes)
        },
        what,
        wall_ns: raw.time_ns,
    }))
}

fn is_sigkill(signal: &str) -> bool {
    matches!(signal, "9" | "KILL" | "SIGKILL")
}

/// Cuts a body into lines; one that is too long is left out and counted.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
    is_too_long: bool,
}

impl Lines {
    /// Hands over every line that `bytes` end: `None` for one that was too long.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Option<&[u8]>)) {
        let mut parts = bytes.split(|&byte| byte == b'\n');
        let last = parts.next_back().unwrap_or_default();
        for part in parts {
            self.add(part);
            self.end(&mut take);
        }
        self.add(last);
    }

    /// Ends the line that has begun, if any has.
    pub(crate) fn end(&mut self, mut take: impl FnMut(Option<&[u8]>)) {
        if std::mem::take(&mut self.is_too_long) {
            take(None);
        } else if !self.begun.trim_ascii().is_empty() {
            take(Some(&self.begun));
        }
        self.begun.clear();
    }

    fn add(&mut self, part: &[u8]) {
        if self.is_too_long || self.begun.len() + part.len() > LINE_LIMIT_BYTES {
            self.is_too_long = true;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An event as `what id name image lived`.
    fn check(line: &str, expected: Result<Option<(What, &str, &str)>, ()>) {
        let told = event(line.as_bytes()).map_err(drop);
        let told = told
            .map(|event| event.map(|event| (event.what, event.identity.id, event.identity.image)));
        let expected = expected
            .map(|event| event.map(|(what, id, image)| (what, id.to_owned(), image.to_owned())));
        assert_eq!(told, expected, "{line}");
    }

    fn exited(code: i64, lived_s: Option<u64>) -> What {
        What::Exited {
            code: Some(code),
            lived_s,
        }
    }

    #[test]
    fn events_that_matter_are_told() {
        let line = |action: &str, more: &str| {
            format!(
                r#"{{"Type":"container","Action":"{action}","Actor":{{"ID":"ab","Attributes":{{{more}"image":"i:1"}}}},"timeNano":7}}"#
            )
        };
        check(&line("start", ""), Ok(Some((What::Started, "ab", "i:1"))));
        check(&line("oom", ""), Ok(Some((What::OutOfMemory, "ab", "i:1"))));
        check(
            &line("kill", r#""signal":"9","#),
            Ok(Some((What::Killed, "ab", "i:1"))),
        );
        check(&line("kill", r#""signal":"15","#), Ok(None));
        let newer = r#""exitCode":"137","execDuration":"12","#;
        check(
            &line("die", newer),
            Ok(Some((exited(137, Some(12)), "ab", "i:1"))),
        );
        let podman = r#""containerExitCode":"17","#;
        check(
            &line("died", podman),
            Ok(Some((exited(17, None), "ab", "i:1"))),
        );
        check(&line("exec_create: sh", ""), Ok(None));
        check(&line("create", ""), Ok(None));
    }

    #[test]
    fn other_things_are_left_out_and_nonsense_is_an_error() {
        check(
            r#"{"Type":"network","Action":"start","Actor":{"ID":"n"},"timeNano":1}"#,
            Ok(None),
        );
        check(
            r#"{"Type":"container","Action":"start","timeNano":1}"#,
            Err(()),
        );
        check(
            r#"{"Type":"container","Action":"start","Actor":{"ID":"a"},"timeNano":-1}"#,
            Err(()),
        );
        check("{", Err(()));
        check(
            r#"{"Type":"container","Action":"start","Actor":{"ID":"a","Attributes":null},"timeNano":1}"#,
            Ok(Some((What::Started, "a", ""))),
        );
        check(
            r#"{"Type":"container","Action":"start","Actor":{"ID":"a","Attributes":{"image":"x\n\u001b[31m"}},"timeNano":1}"#,
            Ok(Some((What::Started, "a", r"x\012\033[31m"))),
        );
    }

    #[test]
    fn times_have_all_their_digits() {
        assert!(events_since(1_700_000_000_000_000_042).contains("since=1700000000.000000042&"));
        assert!(events_between(1, NS_PER_SECOND).contains("since=0.000000001&until=1.000000000&"));
    }

    #[test]
    fn a_long_line_costs_only_itself() {
        let mut lines = Lines::default();
        let mut told = Vec::new();
        let long = [b'x'; LINE_LIMIT_BYTES];
        for bytes in [&b"a\nb"[..], b"c\n", &long, &long, b"\n\nd\r\n", b"e"] {
            lines.feed(bytes, |line| {
                told.push(line.map(|line| String::from_utf8_lossy(line).into_owned()))
            });
        }
        lines.end(|line| told.push(line.map(|line| String::from_utf8_lossy(line).into_owned())));
        let expected = [Some("a"), Some("bc"), None, Some("d\r"), Some("e")];
        assert_eq!(told, expected.map(|line| line.map(str::to_owned)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = event(&bytes);
            let _ = list(&bytes);
            Lines::default().feed(&bytes, |_| {});
        }
    }
}
