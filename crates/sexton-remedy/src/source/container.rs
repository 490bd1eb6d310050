//! A container as the source of trouble: one that its runtime starts again and again.

use sexton_model::fix::PlannedStep;

use crate::command::{line, run};
use crate::consent::Consent;
use crate::error::RemedyError;
use crate::journal::{Change, Journal};

/// A container that a runtime with docker's command line manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The program: `docker`, `podman`, `nerdctl`.
    pub runtime: String,
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What makes the runtime start it again: `always`, `on-failure:3`.
    pub restart: String,
}

impl Container {
    /// Asks a runtime for a container, by name or id. `None` when it has none of that name.
    pub fn look(runtime: &str, name: &str) -> Result<Option<Self>, RemedyError> {
        const FORMAT: &str = "{{.Id}}\t{{.Name}}\t{{.HostConfig.RestartPolicy.Name}}\t{{.HostConfig.RestartPolicy.MaximumRetryCount}}";
        match run(
            runtime,
            &["container", "inspect", "--format", FORMAT, "--", name],
        ) {
            Ok(shown) => Ok(parse(runtime, &shown)),
            Err(RemedyError::Failed { said, .. }) if said.to_lowercase().contains("no such") => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What stopping it would change.
    pub fn plan(&self) -> PlannedStep {
        PlannedStep {
            title: format!("stop the container {} and its restarts", self.name),
            changes: self
                .commands()
                .iter()
                .map(|args| line(&self.runtime, args))
                .collect(),
            undo: Some(format!(
                "restart policy {} again, and starts it",
                self.restart
            )),
            predicted: None,
            withheld: None,
            except: None,
        }
    }

    fn commands(&self) -> [Vec<&str>; 2] {
        [
            vec!["update", "--restart=no", &self.id],
            vec!["stop", &self.id],
        ]
    }

    /// Stops it.
    pub fn stop(&self, _consent: &Consent, journal: &mut Journal) -> Result<(), RemedyError> {
        journal.note(&Change::Container {
            runtime: self.runtime.clone(),
            id: self.id.clone(),
            restart: self.restart.clone(),
        })?;
        for args in self.commands() {
            run(&self.runtime, &args)?;
        }
        Ok(())
    }
}

/// Takes back what was done to a container.
pub(crate) fn restore(runtime: &str, id: &str, restart: &str) -> Result<(), RemedyError> {
    run(runtime, &["update", &format!("--restart={restart}"), id])?;
    run(runtime, &["start", id]).map(drop)
}

fn parse(runtime: &str, shown: &str) -> Option<Container> {
    let mut fields = shown.trim_end().split('\t');
    let (id, name) = (fields.next()?, fields.next()?);
    let (policy, retries) = (fields.next()?, fields.next()?);
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| Container {
        runtime: runtime.to_owned(),
        id: id.to_owned(),
        name: name.trim_start_matches('/').to_owned(),
        restart: match (policy, retries) {
            ("", _) => "no".into(),
            ("on-failure", n) if n != "0" => format!("on-failure:{n}"),
            (policy, _) => policy.into(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_inspect_shows_is_read() {
        let container = parse("docker", "0ab1\t/ecs-agent\ton-failure\t3\n").expect("one");
        assert_eq!(
            (&*container.name, &*container.restart),
            ("ecs-agent", "on-failure:3")
        );
        assert_eq!(
            container.plan().changes,
            ["docker update --restart=no 0ab1", "docker stop 0ab1"]
        );
        assert_eq!(parse("docker", "\t\t\t\n"), None);
        assert_eq!(parse("docker", "--help\t/x\tno\t0\n"), None);
    }
}
