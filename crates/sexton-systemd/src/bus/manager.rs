//! A manager: a systemd that can be asked.

use std::path::PathBuf;
use std::time::Duration;

use super::connection::{Address, Connection};
use super::error::BusError;
use super::session::Session;

/// A systemd that can be asked: the node's, or that of a user.
#[derive(Debug, Clone)]
pub struct Manager {
    /// Where, the first that answers.
    addresses: Vec<Address>,
    /// The longest wait for any answer.
    within: Duration,
    /// Whose it is, unless it is the node's.
    user: Option<u32>,
}

impl Manager {
    /// The manager of the node: over the system bus, or over its private socket, which is for
    /// root and needs no bus.
    pub fn of_node(bus: PathBuf, private: PathBuf, within: Duration) -> Self {
        let address = |path, has_bus| Address {
            path,
            has_bus,
            user: None,
        };
        Self {
            addresses: vec![address(bus, true), address(private, false)],
            within,
            user: None,
        }
    }

    /// The manager of a user, at a socket that only this user may serve.
    pub fn of_user(user: u32, private: PathBuf, within: Duration) -> Self {
        let address = Address {
            path: private,
            has_bus: false,
            user: Some(user),
        };
        Self {
            addresses: vec![address],
            within,
            user: Some(user),
        }
    }

    /// Whose it is, unless it is the node's.
    pub fn user(&self) -> Option<u32> {
        self.user
    }

    /// Connects to the first that answers. The errors are of those before it.
    pub fn connect(&self) -> (Option<Session>, Vec<BusError>) {
        let mut errors = Vec::new();
        for address in &self.addresses {
            match Connection::open(address, self.within) {
                Ok(connection) => return (Some(Session::new(connection)), errors),
                Err(error) => errors.push(error),
            }
        }
        (None, errors)
    }

    /// The manager of a user ends when the user has left, and then nothing is hidden.
    pub fn has_ended(&self, error: &BusError) -> bool {
        self.user.is_some() && error.is_end()
    }
}
