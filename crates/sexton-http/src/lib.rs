//! One request to a server outside of the node, within a time and a size.
//!
//! Each request has a connection of its own: there is one in many seconds, and tokens and
//! certificates are read anew for it, because they rotate. What a server may send is bounded,
//! and so is the time for all of it.

mod ask;
mod error;
mod part;
mod server;
mod tls;

pub use ask::{Answer, Ask, Bounds};
pub use error::HttpError;
pub use part::Part;
pub use server::{Identity, Server, Trust, Url};
