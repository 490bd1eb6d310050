//! Parca: `WriteRaw` by its gateway, as JSON.

use serde_json::{Value, json};
use sexton_profile::export::pprof_window;
use sexton_profile::window::WindowProfile;

use super::load::Load;
use super::pyroscope::{NAME, packed};

const MAX_DEPTH: usize = 1_024;

/// The message, and how many stacks were cut.
pub(super) fn message(load: &Load) -> (Vec<u8>, u64) {
    let Load::Profiles(profiles) = load else {
        return (Vec::new(), 0);
    };
    let mut n_cut = 0;
    let series = profiles.iter().map(|profile| {
        let encoded = pprof_window::encode(profile, MAX_DEPTH);
        n_cut += encoded.n_cut;
        let raw = base64(&packed(&encoded.bytes));
        json!({ "labels": { "labels": labels(profile) }, "samples": [{ "rawProfile": raw }] })
    });
    let series: Vec<Value> = series.collect();
    let request = json!({ "series": series, "normalized": true });
    (request.to_string().into_bytes(), n_cut)
}

fn labels(profile: &WindowProfile) -> Vec<Value> {
    let label = |name: &str, value: &str| json!({ "name": name, "value": value });
    let named = std::iter::once(label(NAME.0, NAME.1));
    let rest = profile
        .labels
        .iter()
        .map(|(name, value)| label(name, value));
    named.chain(rest).collect()
}

/// Standard base64, as JSON of protobuf has bytes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= three.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (&[0xff, 0xfe, 0xfb], "//77"),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }
}
