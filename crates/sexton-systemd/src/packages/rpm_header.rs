//! Headers of rpm: tags and their values. The format is described in rpm's own
//! `docs/manual/format_header.md`.

const NAME: u32 = 1000;
const VERSION: u32 = 1001;
const RELEASE: u32 = 1002;
const DIRINDEXES: u32 = 1116;
const BASENAMES: u32 = 1117;
const DIRNAMES: u32 = 1118;

/// What is needed of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) files: Vec<String>,
}

/// `None` if it makes no sense.
pub(super) fn parse(raw: &[u8]) -> Option<Header> {
    let n_entries = word(raw, 0)? as usize;
    let n_bytes = word(raw, 4)? as usize;
    let index = raw.get(8..8 + n_entries.checked_mul(16)?)?;
    let store = raw.get(8 + index.len()..)?;
    let store = store.get(..n_bytes.min(store.len()))?;
    let find = |tag: u32| {
        let entry = index
            .chunks_exact(16)
            .find(|entry| word(entry, 0) == Some(tag))?;
        let offset = word(entry, 8)? as usize;
        Some((store.get(offset..)?, word(entry, 12)? as usize))
    };
    let text = |tag| find(tag).and_then(|(bytes, _)| strings(bytes, 1).pop());
    let list = |tag| find(tag).map_or_else(Vec::new, |(bytes, n)| strings(bytes, n));
    let (folders, names) = (list(DIRNAMES), list(BASENAMES));
    let indexes = find(DIRINDEXES).map_or(&[][..], |(bytes, _)| bytes);
    let path = |(n, name): (usize, &String)| {
        let folder = folders.get(word(indexes, n * 4)? as usize)?;
        Some(format!("{folder}{name}"))
    };
    Some(Header {
        name: text(NAME)?,
        version: format!("{}-{}", text(VERSION)?, text(RELEASE).unwrap_or_default()),
        files: names.iter().enumerate().filter_map(path).collect(),
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// At most `n` strings, each with a zero at its end.
fn strings(bytes: &[u8], n: usize) -> Vec<String> {
    let parts = bytes.split(|&b| b == 0).take(n);
    parts
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_two_files() {
        let store = b"ecs\x001.0\x002\0/usr/bin/\0/lib/\0a\0b\0\0\0\0\0\0\0\0\0\x01".to_vec();
        let entries: [(u32, u32, u32); 6] = [
            (NAME, 0, 1),
            (VERSION, 4, 1),
            (RELEASE, 8, 1),
            (DIRNAMES, 10, 2),
            (BASENAMES, 26, 2),
            (DIRINDEXES, 31, 2),
        ];
        let mut raw = [6_u32.to_be_bytes(), (store.len() as u32).to_be_bytes()].concat();
        for (tag, offset, n) in entries {
            raw.extend(
                [tag, 0, offset, n]
                    .iter()
                    .flat_map(|word| word.to_be_bytes()),
            );
        }
        raw.extend(store);
        let header = parse(&raw).expect("a header");
        assert_eq!(
            (header.name.as_str(), header.version.as_str()),
            ("ecs", "1.0-2")
        );
        assert_eq!(header.files[0], "/usr/bin/a");
        for cut in 0..raw.len() {
            parse(&raw[..cut]);
        }
    }
}
