//! The page, as the build put it into this program.

use crate::http::{Payload, Problem, Response};

/// A file of the page.
struct Asset {
    /// Its path in the address.
    path: &'static str,
    kind: &'static str,
    /// Packed with gzip.
    packed: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// What to do when the page is not there.
pub(crate) const REMEDY: &str = "this sexton was built without its page: type `cargo xtask page` \
    (it needs Node and npm, and installs them) and build again; the interface at /api/v1 works \
    without it";

const NO_PAGE: &str = include_str!("no_page.html");

/// Whether the page was not there when this was built.
pub(crate) fn is_missing() -> bool {
    ASSETS.is_empty()
}

/// The page of the node, among those of the build.
pub(crate) const OF_NODE: &str = "";

/// A file of a page, by the folder of that page and its path. There is no folder behind this:
/// what is not in the list is not there.
pub(crate) fn find(folder: &str, path: &str) -> Result<Response, Problem> {
    let wanted = if path == "/" { "/index.html" } else { path };
    let full = format!("{folder}{wanted}");
    if let Some(asset) = ASSETS.iter().find(|asset| asset.path == full) {
        let body = Payload::StaticPacked(asset.packed);
        return Ok(Response::new(200, asset.kind, body));
    }
    if wanted == "/index.html" && is_missing() {
        let body = Payload::Static(NO_PAGE.as_bytes());
        return Ok(Response::new(200, "text/html; charset=utf-8", body));
    }
    Err(Problem::new(404, "there is nothing of that name"))
}

/// A file of the page as text.
pub(crate) fn text(path: &str) -> Option<String> {
    use std::io::Read as _;
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(asset.packed);
    unpacked.read_to_string(&mut text).ok()?;
    Some(text)
}
