//! Where clients come in: an address, and the token that they need off loopback.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::ServeError;
use crate::http::{Handler, Listener, StopHandle, Tls};

/// An address that is listened on.
pub(crate) struct Door {
    listener: Listener,
    address: SocketAddr,
    token: Option<String>,
}

/// Ends a server from another thread.
#[derive(Debug, Clone)]
pub struct Stopper(StopHandle);

impl Stopper {
    /// No further connection is taken.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Door {
    /// Listens. Nothing is open to the network without a token.
    pub(crate) fn open(listen: SocketAddr, token: Option<&str>) -> Result<Self, ServeError> {
        if token.is_none() && !is_loopback(listen.ip()) {
            return Err(ServeError::NoToken(listen));
        }
        let failed = |error| ServeError::Listen(listen, error);
        let listener = Listener::bind(listen).map_err(failed)?;
        Ok(Self {
            address: listener.address().map_err(failed)?,
            listener,
            token: token.map(str::to_owned),
        })
    }

    /// Speaks TLS from now on, and nothing else.
    pub(crate) fn set_tls(&mut self, tls: Tls) {
        self.listener.set_tls(tls);
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to open in a browser, with the token if there is one.
    pub(crate) fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            });
        }
        match &self.token {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        }
    }

    /// What ends it.
    pub(crate) fn stopper(&self) -> Stopper {
        Stopper(self.listener.stop_handle())
    }

    /// Answers until it is stopped.
    pub(crate) fn run(self, handler: Arc<impl Handler>) {
        self.listener.run(handler);
    }
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
    }
}
