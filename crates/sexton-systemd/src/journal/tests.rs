//! A file put together by the book; real ones are read in `sexton-kernel-tests`.

use super::*;
use fuzzing::journal_file;

/// Objects one after the other, behind a header.
struct Writer {
    content: Vec<u8>,
    is_compact: bool,
}

const TABLE: u64 = 256;

impl Writer {
    fn new(is_compact: bool) -> Self {
        let mut content = vec![0; 512];
        content[..8].copy_from_slice(SIGNATURE);
        let mut writer = Self {
            content,
            is_compact,
        };
        if is_compact {
            writer.content[12..16].copy_from_slice(&COMPACT.to_le_bytes());
        }
        writer.content[24..40].fill(7);
        writer.put(120, TABLE);
        writer.put(128, 16);
        writer
    }

    fn put(&mut self, at: u64, value: u64) {
        let at = usize::try_from(at).expect("small");
        self.content[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn object(&mut self, kind: u8, len: usize) -> u64 {
        let offset = self.content.len() as u64;
        self.content
            .resize(self.content.len() + len.next_multiple_of(8), 0);
        let at = usize::try_from(offset).expect("small");
        self.content[at] = kind;
        self.put(offset + 8, len as u64);
        offset
    }

    fn text(&mut self, at: u64, text: &[u8]) {
        let at = usize::try_from(at).expect("small");
        self.content[at..at + text.len()].copy_from_slice(text);
    }

    /// An entry with two fields: a message, and one that is of no interest.
    fn entry(&mut self, monotonic_us: u64) -> u64 {
        let items = [
            self.data(&format!("MESSAGE=written at {monotonic_us}")),
            self.data("_PID=4"),
        ];
        let width = if self.is_compact { 4 } else { 16 };
        let entry = self.object(TYPE_ENTRY, 64 + width * items.len());
        for (i, item) in items.iter().enumerate() {
            let bytes = item.to_le_bytes();
            let bytes = &bytes[..width.min(8)];
            self.text(entry + 64 + (i * width) as u64, bytes);
        }
        self.put(entry + 32, monotonic_us);
        self.text(entry + 40, &[9; 16]);
        entry
    }

    fn data(&mut self, text: &str) -> u64 {
        let payload = if self.is_compact { 72 } else { 64 };
        let data = self.object(TYPE_DATA, payload + text.len());
        self.text(data + payload as u64, text.as_bytes());
        data
    }

    fn array(&mut self, entries: &[u64], room: usize) -> u64 {
        let width = if self.is_compact { 4 } else { 8 };
        let array = self.object(TYPE_ENTRY_ARRAY, 24 + width * room);
        for (i, entry) in entries.iter().enumerate() {
            let bytes = entry.to_le_bytes();
            self.text(array + 24 + (i * width) as u64, &bytes[..width]);
        }
        array
    }

    /// A unit that wrote at these moments, in front of those there are.
    fn unit(&mut self, field: u64, name: &str, moments: &[u64]) -> u64 {
        let entries: Vec<u64> = moments.iter().map(|at| self.entry(*at)).collect();
        let data = self.data(&format!("{WRITER}={name}"));
        let before = number(&self.content, usize::try_from(field + 32).expect("small"));
        self.put(data + 32, before.expect("a number"));
        self.put(field + 32, data);
        self.put(data + 40, entries.first().copied().unwrap_or(0));
        self.put(data + 56, entries.len() as u64);
        // The first array has room for two, the next for as many as there are.
        if let Some(rest) = entries.get(1..).filter(|rest| !rest.is_empty()) {
            let (near, far) = rest.split_at(rest.len().min(2));
            let first = self.array(near, 2);
            self.put(data + 48, first);
            if !far.is_empty() {
                let second = self.array(far, far.len() + 3);
                self.put(first + 16, second);
            }
        }
        data
    }

    fn field(&mut self, name: &[u8]) -> u64 {
        let field = self.object(TYPE_FIELD, 40 + name.len());
        self.text(field + 40, name);
        let before = number(&self.content, usize::try_from(TABLE).expect("small"));
        self.put(field + 24, before.expect("a number"));
        self.put(TABLE, field);
        field
    }
}

impl Bytes for Writer {
    fn at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let from = usize::try_from(offset).expect("small");
        let found = self.content.get(from..from + len);
        Ok(found.ok_or(io::ErrorKind::UnexpectedEof)?.to_vec())
    }
}

fn journal(is_compact: bool) -> Writer {
    let mut writer = Writer::new(is_compact);
    let field = writer.field(WRITER.as_bytes());
    writer.field(b"MESSAGE");
    writer.unit(field, "quiet.service", &[5]);
    writer.unit(field, "ecs.service", &[10, 20, 30, 40, 50, 60, 70]);
    writer
}

#[test]
fn units_and_their_last_entries_are_found() {
    for is_compact in [false, true] {
        let file = journal(is_compact);
        let header = Header::read(&file).expect("a header");
        let field = header.field(&file, WRITER).expect("read").expect("there");
        let units = header
            .values(&file, (field, WRITER), &|_| false)
            .expect("units");
        let names: Vec<&str> = units.iter().map(|unit| unit.value.as_str()).collect();
        assert_eq!(names, ["ecs.service", "quiet.service"]);
        let last = |most| {
            let written = header.last(&file, &units[0], most).expect("entries");
            let moments = written.iter().map(|entry| entry.monotonic_us);
            moments.collect::<Vec<_>>()
        };
        assert_eq!(last(3), [50, 60, 70]);
        assert_eq!(last(100), [10, 20, 30, 40, 50, 60, 70]);
        let written = header.last(&file, &units[0], 1).expect("entries");
        let texts = header.texts(&file, &written[0], &["MESSAGE"]);
        let said = [("MESSAGE", b"written at 70".to_vec())];
        assert_eq!(texts.expect("fields"), said);
        let known = units[1].offset;
        let news = header.values(&file, (field, WRITER), &|offset| offset == known);
        assert_eq!(news.expect("units").len(), 1);
        assert_eq!(Header::n_of(&file, units[0].offset).expect("a count"), 7);
    }
}

#[test]
fn what_is_no_journal_or_leads_in_a_circle_is_refused() {
    let mut file = journal(false);
    assert_eq!(journal_file(&file.content).len(), 2);
    assert!(journal_file(&file.content[..300]).is_empty());
    assert!(journal_file(b"LPKSHHR").is_empty());
    let header = Header::read(&file).expect("a header");
    let field = header.field(&file, WRITER).expect("read").expect("there");
    // Its list of units begins anew where it should end.
    let head = header
        .values(&file, (field, WRITER), &|_| false)
        .expect("units");
    file.put(head[1].offset + 32, head[0].offset);
    let error = header
        .values(&file, (field, WRITER), &|_| false)
        .expect_err("no end");
    assert!(error.to_string().contains("no end"), "{error}");
}

#[test]
fn any_cut_or_flipped_byte_is_survived() {
    let whole = journal(true).content;
    for at in 0..whole.len() {
        journal_file(&whole[..at]);
        let mut flipped = whole.clone();
        flipped[at] ^= 0xff;
        journal_file(&flipped);
    }
}
