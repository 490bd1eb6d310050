//! Containers that Docker waits to start again, longer each time, up to a minute: few of
//! their ends are among the events that it still has, but it counts its restarts.

use serde::Deserialize;
use sexton_model::wall::unix_ns;

use crate::container::{Happening, Identity, Listed, What};

/// Containers that are asked about. A node where more wait has told enough.
pub(super) const ASKED_LIMIT: usize = 64;

/// The question about one container.
pub(super) fn question(id: &str) -> String {
    format!("/containers/{id}/json")
}

/// What Docker says of a container's last life.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LastLife {
    n_restarts: u32,
    started_ns: u64,
    ended_ns: u64,
    exit_code: i64,
}

#[derive(Deserialize)]
struct RawContainer {
    #[serde(rename = "RestartCount", default)]
    n_restarts: u32,
    #[serde(rename = "State")]
    state: RawState,
}

#[derive(Deserialize)]
struct RawState {
    #[serde(rename = "StartedAt")]
    started_at: String,
    #[serde(rename = "FinishedAt")]
    finished_at: String,
    #[serde(rename = "ExitCode")]
    exit_code: i64,
}

/// The last life that an answer tells of; none if it has begun to live again.
pub(super) fn last_life(body: &[u8]) -> Result<Option<LastLife>, String> {
    let raw: RawContainer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let times = [&raw.state.started_at, &raw.state.finished_at].map(|time| unix_ns(time));
    let [Some(started_ns), Some(ended_ns)] = times else {
        return Ok(None);
    };
    Ok((started_ns <= ended_ns).then_some(LastLife {
        n_restarts: raw.n_restarts,
        started_ns,
        ended_ns,
        exit_code: raw.state.exit_code,
    }))
}

/// Tells the count with the end that is known already, or with that of the last life, if it
/// was since then.
pub(super) fn add(past: &mut Vec<Happening>, listed: &Listed, last: &LastLife, since_ns: u64) {
    let of_it = |told: &&mut Happening| {
        told.identity.id == listed.identity.id && matches!(told.what, What::Exited { .. })
    };
    let known = past
        .iter_mut()
        .filter(of_it)
        .max_by_key(|told| told.wall_ns);
    if let Some(known) = known {
        known.identity.attempt = Some(last.n_restarts);
        return;
    }
    let exited = What::Exited {
        code: Some(last.exit_code),
        lived_s: None,
    };
    let told = [(last.started_ns, What::Started), (last.ended_ns, exited)];
    let told = told.into_iter().filter(|(wall_ns, _)| *wall_ns >= since_ns);
    past.extend(told.map(|(wall_ns, what)| Happening {
        identity: Identity {
            attempt: Some(last.n_restarts),
            ..listed.identity.clone()
        },
        what,
        wall_ns,
    }));
    past.sort_by_key(|told| told.wall_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::State;

    fn identity(id: &str) -> Identity {
        Identity {
            id: id.into(),
            ..Identity::default()
        }
    }

    fn exited(id: &str, wall_ns: u64) -> Happening {
        let what = What::Exited {
            code: Some(1),
            lived_s: None,
        };
        Happening {
            identity: identity(id),
            what,
            wall_ns,
        }
    }

    /// Which ends and starts of `a` are told when, with which count.
    fn check(mut past: Vec<Happening>, since_ns: u64, expected: &[(u64, Option<u32>)]) {
        let listed = Listed {
            identity: identity("a"),
            state: State::Restarting,
            created_ns: None,
            started_ns: None,
        };
        let last = LastLife {
            n_restarts: 12,
            started_ns: 40,
            ended_ns: 50,
            exit_code: 1,
        };
        add(&mut past, &listed, &last, since_ns);
        let told = past.iter().filter(|told| told.identity.id == "a");
        let told: Vec<_> = told
            .map(|told| (told.wall_ns, told.identity.attempt))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn a_count_goes_with_the_last_end_and_none_is_told_twice() {
        let known = vec![exited("a", 20), exited("a", 51), exited("b", 60)];
        check(known, 10, &[(20, None), (51, Some(12))]);
        check(vec![exited("b", 45)], 10, &[(40, Some(12)), (50, Some(12))]);
        check(vec![], 45, &[(50, Some(12))]);
        check(vec![], 60, &[]);
    }

    #[test]
    fn an_answer_is_read() {
        let answer = |finished: &str| {
            format!(
                r#"{{"RestartCount":12,"State":{{"Status":"restarting","StartedAt":"1970-01-01T00:00:01Z","FinishedAt":"{finished}","ExitCode":3}}}}"#
            )
        };
        let last = last_life(answer("1970-01-01T00:00:02.5Z").as_bytes());
        let expected = LastLife {
            n_restarts: 12,
            started_ns: 1_000_000_000,
            ended_ns: 2_500_000_000,
            exit_code: 3,
        };
        assert_eq!(last, Ok(Some(expected)));
        let lives = answer("0001-01-01T00:00:00Z");
        assert_eq!(last_life(lives.as_bytes()), Ok(None));
        assert!(last_life(b"{}").is_err());
    }
}
