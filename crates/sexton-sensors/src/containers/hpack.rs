//! As much of HPACK (RFC 7541) as one call needs: headers out, and those that gRPC means
//! something by, in.
//!
//! We allow the peer no dynamic table, so there is nothing to remember between blocks.

use super::http2::Http2Error;

/// What a block of headers may come to when it is unpacked.
const FIELDS_LIMIT_BYTES: usize = 64 << 10;

/// The index of `:status: 200` in the static table; the six after it are other statuses.
const FIRST_STATUS: u64 = 8;
const STATUSES: [&str; 7] = ["200", "204", "206", "304", "400", "404", "500"];

/// The last of the static table.
const LAST_STATIC: u64 = 61;

/// How long the code of each byte is, and of the end. All codes follow from that: those
/// of one length count up in the order of bytes. Source: RFC 7541, appendix B.
#[rustfmt::skip]
const CODE_BITS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The longest code.
const LONGEST_BITS: u8 = 30;

/// The code that means the end, which no text has inside.
const END: usize = 256;

/// Writes a header as it is: not packed, and not to be remembered.
pub(super) fn encode(name: &str, value: &str, out: &mut Vec<u8>) {
    out.push(0);
    for text in [name, value] {
        encode_integer(text.len(), out);
        out.extend_from_slice(text.as_bytes());
    }
}

/// With seven bits in the first byte.
fn encode_integer(n: usize, out: &mut Vec<u8>) {
    const FULL: usize = 0x7f;
    let Some(mut left) = n.checked_sub(FULL) else {
        return out.push(n as u8);
    };
    out.push(FULL as u8);
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
}

/// Reads a block of headers. The name of one from the static table is told only if it is
/// `:status`; others of it are left out, as gRPC means nothing by them.
pub(super) fn decode(block: &[u8]) -> Result<Vec<(String, String)>, Http2Error> {
    let mut input = Input { bytes: block };
    let (mut fields, mut n_bytes) = (Vec::new(), 0);
    while let Some(&first) = input.bytes.first() {
        let field = match first {
            0x80.. => indexed(input.integer(7)?)?,
            0x40.. => input.literal(6)?,
            // The size of the table: ours has none, whatever it says.
            0x20.. => {
                input.integer(5)?;
                None
            }
            _ => input.literal(4)?,
        };
        if let Some((name, value)) = field {
            n_bytes += name.len() + value.len();
            if n_bytes > FIELDS_LIMIT_BYTES {
                return Err(Http2Error::LongHeaders);
            }
            fields.push((name, value));
        }
    }
    Ok(fields)
}

fn indexed(index: u64) -> Result<Option<(String, String)>, Http2Error> {
    let value = index.checked_sub(FIRST_STATUS).and_then(|nth| {
        let nth = usize::try_from(nth).ok()?;
        STATUSES.get(nth)
    });
    match value {
        Some(value) => Ok(Some((":status".into(), (*value).into()))),
        None => known_name(index).map(|_| None),
    }
}

/// The name of an entry, if it is one that matters.
fn known_name(index: u64) -> Result<Option<String>, Http2Error> {
    let n_statuses = STATUSES.len() as u64;
    match index {
        1..=LAST_STATIC if (FIRST_STATUS..FIRST_STATUS + n_statuses).contains(&index) => {
            Ok(Some(":status".into()))
        }
        1..=LAST_STATIC => Ok(None),
        _ => Err(Http2Error::BadHeaders),
    }
}

struct Input<'b> {
    bytes: &'b [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> Result<u8, Http2Error> {
        let (&first, rest) = self.bytes.split_first().ok_or(Http2Error::BadHeaders)?;
        self.bytes = rest;
        Ok(first)
    }

    /// A number that begins in the low bits of the next byte.
    fn integer(&mut self, n_bits: u32) -> Result<u64, Http2Error> {
        let full = (1_u64 << n_bits) - 1;
        let mut n = u64::from(self.byte()?) & full;
        if n < full {
            return Ok(n);
        }
        // Four more bytes are 256 MiB; nothing here is longer.
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            n += u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(Http2Error::BadHeaders)
    }

    fn literal(&mut self, n_bits: u32) -> Result<Option<(String, String)>, Http2Error> {
        let name = match self.integer(n_bits)? {
            0 => Some(self.text()?),
            index => known_name(index)?,
        };
        let value = self.text()?;
        Ok(name.map(|name| (name, value)))
    }

    fn text(&mut self) -> Result<String, Http2Error> {
        let is_packed = self.bytes.first().is_some_and(|first| first & 0x80 != 0);
        let length = usize::try_from(self.integer(7)?).map_err(|_| Http2Error::BadHeaders)?;
        let (bytes, rest) = self
            .bytes
            .split_at_checked(length)
            .ok_or(Http2Error::BadHeaders)?;
        self.bytes = rest;
        let bytes = if is_packed {
            unpack(bytes)?
        } else {
            bytes.to_vec()
        };
        String::from_utf8(bytes).map_err(|_| Http2Error::BadHeaders)
    }
}

/// Undoes the Huffman code, bit by bit: these texts are short.
fn unpack(bytes: &[u8]) -> Result<Vec<u8>, Http2Error> {
    let mut out = Vec::with_capacity(bytes.len() * 8 / 5);
    let (mut code, mut n_bits) = (0_u32, 0_u8);
    for bit in bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |nth| byte >> nth & 1))
    {
        code = code << 1 | u32::from(bit);
        n_bits += 1;
        match symbol(code, n_bits) {
            Some(END) => return Err(Http2Error::BadHeaders),
            Some(symbol) => {
                out.push(symbol as u8);
                (code, n_bits) = (0, 0);
            }
            None if n_bits >= LONGEST_BITS => return Err(Http2Error::BadHeaders),
            None => {}
        }
    }
    // What is left fills up the last byte with ones.
    let is_filler = n_bits < 8 && code == (1 << n_bits) - 1;
    is_filler.then_some(out).ok_or(Http2Error::BadHeaders)
}

/// The symbol that has this code of this length.
fn symbol(code: u32, n_bits: u8) -> Option<usize> {
    let count = |bits: u8| CODE_BITS.iter().filter(|&&of| of == bits).count() as u32;
    let first = (1..n_bits).fold(0, |first, bits| (first + count(bits)) << 1);
    let nth = code.checked_sub(first)? as usize;
    let of_that_length = CODE_BITS.iter().enumerate();
    let mut of_that_length = of_that_length.filter(|&(_, &bits)| bits == n_bits);
    of_that_length.nth(nth).map(|(symbol, _)| symbol)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(block: &[u8], expected: &[(&str, &str)]) {
        let fields = decode(block).expect("headers");
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(fields, expected);
    }

    /// RFC 7541, appendix C.
    #[test]
    fn the_examples_of_the_standard_are_read() {
        check(
            b"\x40\x0acustom-key\x0dcustom-header",
            &[("custom-key", "custom-header")],
        );
        check(b"\x04\x0c/sample/path", &[]);
        check(b"\x10\x08password\x06secret", &[("password", "secret")]);
        check(
            b"\x48\x03302\x8d",
            &[(":status", "302"), (":status", "404")],
        );
        check(
            b"\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
            &[("custom-key", "custom-value")],
        );
        check(b"\x48\x82\x64\x02", &[(":status", "302")]);
        check(b"\x20\x88", &[(":status", "200")]);
    }

    #[test]
    fn nonsense_is_an_error() {
        for block in [
            &b"\x80"[..],
            b"\xbe",
            b"\x40",
            b"\x00\x05abc",
            b"\x00\x81\x00\x00",
            b"\x00\x84\xff\xff\xff\xff\x00",
            b"\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(decode(block).is_err(), "{block:x?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(name in "[a-z-]{1,200}", value in "[ -~]{0,300}") {
            let mut block = Vec::new();
            encode(&name, &value, &mut block);
            prop_assert_eq!(decode(&block).expect("headers"), [(name, value)]);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
        }
    }
}
