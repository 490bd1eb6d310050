//! Reads sealed segments: outside bytes, so nothing in them is believed.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::{FileMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use sexton_model::fact;
use sexton_model::gap::Gap;
use sexton_model::payload::{Fields, Value, stored};

use crate::checked::{CHECKSUMS, Checked, layout_crc};
use crate::columns::Column;
use crate::crc::crc32c;
use crate::json;
use crate::row::{Kind, Known, Row, Said, Series, parse_why};
use crate::seal::GAP_SENSOR;
use crate::thrift::{FILE_META_DATA, PAGE_HEADER, Struct};

/// More than a writer puts into a row group, by far.
const MAX_ROWS: i64 = 1 << 20;
const MAX_GROUP_BYTES: u64 = 64 << 20;
/// The largest segment is far smaller.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// That of a segment with a hundred row groups has some 100 kB.
const MAX_FOOTER_BYTES: u64 = 16 << 20;

/// Why a segment cannot be read.
#[derive(Debug)]
pub(crate) enum Damage {
    Gone,
    Denied,
    Malformed(String),
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("it was dropped meanwhile"),
            Self::Denied => f.write_str("permission denied"),
            Self::Malformed(why) => f.write_str(why),
        }
    }
}

pub(crate) fn malformed(why: impl fmt::Display) -> Damage {
    Damage::Malformed(why.to_string())
}

impl From<std::io::Error> for Damage {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Gone,
            std::io::ErrorKind::PermissionDenied => Self::Denied,
            _ => malformed(error),
        }
    }
}

/// A row group, and what it spans.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    index: usize,
    start: u64,
    pub(crate) checked: Checked,
}

/// A sealed segment that is being read.
pub(crate) struct Sealed {
    file: File,
    reader: SerializedFileReader<File>,
    pub(crate) groups: Vec<Group>,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed")
            .field("groups", &self.groups)
            .finish_non_exhaustive()
    }
}

impl Sealed {
    pub(crate) fn open(path: &Path) -> Result<Self, Damage> {
        Self::open_table(path, &Column::ALL.map(Column::name))
    }

    /// Opens a file that has these columns.
    pub(crate) fn open_table(path: &Path, columns: &[&str]) -> Result<Self, Damage> {
        Self::of_table(File::open(path)?, columns)
    }

    pub(crate) fn of(file: File) -> Result<Self, Damage> {
        Self::of_table(file, &Column::ALL.map(Column::name))
    }

    fn of_table(file: File, columns: &[&str]) -> Result<Self, Damage> {
        if file.metadata()?.len() > MAX_FILE_BYTES {
            return Err(malformed("it is far larger than any segment"));
        }
        let reader = open_reader(&file, columns)?;
        let groups = guarded(|| groups(&reader))?;
        Ok(Self {
            file,
            reader,
            groups,
        })
    }

    /// A text of the file's metadata.
    pub(crate) fn note(&self, key: &str) -> Option<&str> {
        note(self.reader.metadata().file_metadata(), key)
    }

    /// How many rows it has.
    pub(crate) fn n_rows(&self) -> u64 {
        let groups = self.reader.metadata().row_groups().iter();
        groups.map(|group| group.num_rows().unsigned_abs()).sum()
    }

    /// The rows of one row group, by series.
    pub(crate) fn rows(&self, group: &Group) -> Result<Vec<Row>, Damage> {
        self.read(group, read_group)
    }

    /// Reads one row group, once its checksum has been found to fit.
    pub(crate) fn read<T>(
        &self,
        group: &Group,
        read: impl FnOnce(&dyn RowGroupReader) -> Result<T, Damage>,
    ) -> Result<T, Damage> {
        let length = usize::try_from(group.checked.end - group.start).map_err(malformed)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, group.start)?;
        if crc32c(0, &bytes) != group.checked.crc {
            return Err(malformed("its checksum does not fit"));
        }
        guarded(|| {
            let reader = self.reader.get_row_group(group.index).map_err(malformed)?;
            check_pages(reader.metadata(), &bytes, group.start)?;
            drop(bytes);
            read(&*reader)
        })
    }
}

/// Reads row groups whose checksums nobody looks at: whoever makes a hostile segment makes
/// fitting ones.
pub(crate) fn read_unchecked(file: File) -> Result<usize, Damage> {
    let reader = open_reader(&file, &Column::ALL.map(Column::name))?;
    let length = file.metadata()?.len();
    let mut bytes = vec![0; usize::try_from(length.min(MAX_GROUP_BYTES)).map_err(malformed)?];
    file.read_exact_at(&mut bytes, 0)?;
    let mut n_rows = 0;
    for index in 0..reader.metadata().num_row_groups() {
        let group = reader.metadata().row_group(index);
        if is_plausible(group, 0..0, Column::ALL.len()) {
            let rows = guarded(|| {
                check_pages(group, &bytes, 0)?;
                read_group(&*reader.get_row_group(index).map_err(malformed)?)
            });
            n_rows += rows.map_or(0, |rows| rows.len());
        }
    }
    Ok(n_rows)
}

/// The library is not proof against every broken file.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, Damage>) -> Result<T, Damage> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(malformed("the Parquet library cannot read it")))
}

fn open_reader(file: &File, columns: &[&str]) -> Result<SerializedFileReader<File>, Damage> {
    check_footer(file)?;
    let copy = file.try_clone()?;
    let reader = guarded(|| SerializedFileReader::new(copy).map_err(malformed))?;
    check_columns(&reader, columns)?;
    Ok(reader)
}

/// See `thrift.rs` for what the library must not be given.
fn check_footer(file: &File) -> Result<(), Damage> {
    let length = file.metadata()?.len();
    let mut end = [0; 4];
    let at = length.checked_sub(FOOTER_END).ok_or_else(is_cut)?;
    file.read_exact_at(&mut end, at)?;
    let start = footer_start(at, end)?;
    let mut footer = vec![0; usize::try_from(at - start).map_err(malformed)?];
    file.read_exact_at(&mut footer, start)?;
    check_structure(&footer)
}

/// The same of a file in memory.
pub(crate) fn check_footer_bytes(file: &[u8]) -> Result<(), Damage> {
    let at = file.len().checked_sub(FOOTER_END as usize);
    let at = at.ok_or_else(is_cut)?;
    let end = file[at..].first_chunk().ok_or_else(is_cut)?;
    let start = footer_start(at as u64, *end)?;
    let start = usize::try_from(start).map_err(malformed)?;
    check_structure(&file[start..at])
}

/// The length of the footer, and the magic number.
const FOOTER_END: u64 = 8;

fn is_cut() -> Damage {
    malformed("it is cut")
}

fn footer_start(at: u64, length: [u8; 4]) -> Result<u64, Damage> {
    let bytes = u64::from(u32::from_le_bytes(length));
    let start = at.checked_sub(bytes).filter(|_| bytes <= MAX_FOOTER_BYTES);
    start.ok_or_else(|| malformed("its footer is longer than it can be"))
}

fn check_structure(footer: &[u8]) -> Result<(), Damage> {
    match Struct::read(footer, FILE_META_DATA) {
        Some(_) => Ok(()),
        None => Err(malformed("its footer makes no sense")),
    }
}

/// The same for the headers of all pages of a row group, whose bytes these are, from
/// `start` on.
pub(crate) fn check_pages(
    group: &RowGroupMetaData,
    bytes: &[u8],
    start: u64,
) -> Result<(), Damage> {
    const UNCOMPRESSED_BYTES: i64 = 2;
    const COMPRESSED_BYTES: i64 = 3;
    let bad = || malformed("the header of a page makes no sense");
    for column in group.columns() {
        let (first, length) = column.byte_range();
        let first = first.checked_sub(start).ok_or_else(bad)?;
        let range = usize::try_from(first)
            .ok()
            .zip(usize::try_from(length).ok());
        let mut pages = range
            .and_then(|(first, length)| bytes.get(first..)?.get(..length))
            .ok_or_else(bad)?;
        while !pages.is_empty() {
            let header = Struct::read(pages, PAGE_HEADER).ok_or_else(bad)?;
            let size = |field| {
                header
                    .number(field)
                    .and_then(|size| u64::try_from(size).ok())
            };
            let (unpacked, packed) = (size(UNCOMPRESSED_BYTES), size(COMPRESSED_BYTES));
            if unpacked.is_none_or(|size| size > MAX_GROUP_BYTES) {
                return Err(bad());
            }
            let end =
                packed.and_then(|size| header.length.checked_add(usize::try_from(size).ok()?));
            pages = end.and_then(|end| pages.get(end..)).ok_or_else(bad)?;
        }
    }
    Ok(())
}

fn check_columns(reader: &SerializedFileReader<File>, columns: &[&str]) -> Result<(), Damage> {
    let fields = reader.metadata().file_metadata().schema_descr();
    let names = fields.columns().iter().map(|field| field.name());
    if names.eq(columns.iter().copied()) {
        Ok(())
    } else {
        Err(malformed("its columns are not those of a segment"))
    }
}

fn groups(reader: &SerializedFileReader<File>) -> Result<Vec<Group>, Damage> {
    let checked = checked(reader.metadata().file_metadata())?;
    let groups = reader.metadata().row_groups();
    let n_columns = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .num_columns();
    if checked.len() != groups.len() {
        return Err(malformed("its checksums do not fit its row groups"));
    }
    let mut start = 0;
    let mut found = Vec::new();
    for (index, (checked, group)) in checked.into_iter().zip(groups).enumerate() {
        if !is_plausible(group, start..checked.end, n_columns)
            || layout_crc(group) != checked.layout_crc
        {
            return Err(malformed("its footer contradicts itself"));
        }
        found.push(Group {
            index,
            start,
            checked,
        });
        start = checked.end;
    }
    Ok(found)
}

fn note<'a>(footer: &'a FileMetaData, key: &str) -> Option<&'a str> {
    let notes = footer.key_value_metadata()?;
    let found = notes.iter().find(|note| note.key == key)?;
    found.value.as_deref()
}

fn checked(footer: &FileMetaData) -> Result<Vec<Checked>, Damage> {
    let text = note(footer, CHECKSUMS).ok_or_else(|| malformed("it has no checksums"))?;
    let (crc, text) = text.split_once(' ').unwrap_or(("", text));
    if u32::from_str_radix(crc, 16) != Ok(crc32c(0, text.as_bytes())) {
        return Err(malformed("its checksums are damaged"));
    }
    serde_json::from_str(text).map_err(malformed)
}

fn is_plausible(group: &RowGroupMetaData, place: std::ops::Range<u64>, n_columns: usize) -> bool {
    (0..=MAX_ROWS).contains(&group.num_rows())
        && u64::try_from(group.total_byte_size()).is_ok_and(|bytes| bytes <= MAX_GROUP_BYTES)
        && place.start <= place.end
        && place.end - place.start <= MAX_GROUP_BYTES
        && group.num_columns() == n_columns
}

fn read_group(group: &dyn RowGroupReader) -> Result<Vec<Row>, Damage> {
    let n = usize::try_from(group.metadata().num_rows()).map_err(malformed)?;
    let times = read::<Int64Type>(group, Column::TimeNs, n)?;
    let values = read::<DoubleType>(group, Column::Value, n)?;
    let text = |column| read::<ByteArrayType>(group, column, n);
    let kinds = text(Column::Kind)?;
    let facts = text(Column::Fact)?;
    let subject_kinds = text(Column::SubjectKind)?;
    let subjects = text(Column::Subject)?;
    let sensors = text(Column::Sensor)?;
    let units = text(Column::Unit)?;
    let details = text(Column::Details)?;
    let gaps = [
        text(Column::GapWhy)?,
        text(Column::GapText)?,
        text(Column::GapRemedy)?,
    ];
    let mut series = SeriesCache::default();
    let mut rows = Vec::with_capacity(n);
    for i in 0..n {
        let key = [&kinds, &facts, &subject_kinds, &subjects, &sensors, &units];
        let known = series.find(key.map(|column| column[i].clone()))?;
        let said = match known.series.kind {
            Kind::Sample => Said::Value(values[i].ok_or_else(|| malformed("a sample is null"))?),
            Kind::Event => Said::Fields(parse_fields(details[i].as_ref())?),
            Kind::Gap => {
                let parts = gaps.each_ref().map(|column| column[i].as_ref());
                Said::Gap(Box::new(parse_gap(&known, details[i].as_ref(), parts)?))
            }
        };
        let time = times[i].and_then(|time| u64::try_from(time).ok());
        rows.push(Row {
            at_ns: time.ok_or_else(|| malformed("a time is before the boot"))?,
            known,
            said,
        });
    }
    Ok(rows)
}

/// Series that were met in a row group; mostly it is that of the row before.
#[derive(Default)]
struct SeriesCache {
    known: HashMap<Series, Arc<Known>>,
    last: Option<([Option<ByteArray>; 6], Arc<Known>)>,
}

impl SeriesCache {
    fn find(&mut self, key: [Option<ByteArray>; 6]) -> Result<Arc<Known>, Damage> {
        if let Some((last, known)) = &self.last
            && *last == key
        {
            return Ok(Arc::clone(known));
        }
        let text = |i: usize| utf8(key[i].as_ref()).map(|text| text.unwrap_or_default());
        let name = text(1)?;
        let series = Series {
            kind: Kind::by_name(text(0)?).ok_or_else(|| malformed("a kind is unknown"))?,
            fact: fact::by_name(name)
                .map_or_else(|| Cow::Owned(name.to_owned()), |fact| fact.name.into()),
            subject_kind: text(2)?.to_owned().into(),
            subject: text(3)?.into(),
            sensor: text(4)?.to_owned().into(),
            unit: text(5)?.to_owned().into(),
        };
        let known = self
            .known
            .entry(series)
            .or_insert_with_key(|series| Arc::new(Known::new(series.clone())));
        let known = Arc::clone(known);
        self.last = Some((key, Arc::clone(&known)));
        Ok(known)
    }
}

fn utf8(bytes: Option<&ByteArray>) -> Result<Option<&str>, Damage> {
    bytes
        .map(|bytes| bytes.as_utf8().map_err(malformed))
        .transpose()
}

fn parse_fields(bytes: Option<&ByteArray>) -> Result<Fields, Damage> {
    match utf8(bytes)? {
        Some(text) => json::parse(text).map_err(malformed),
        None => Ok(Fields::new()),
    }
}

fn parse_gap(
    known: &Known,
    details: Option<&ByteArray>,
    [why, text, remedy]: [Option<&ByteArray>; 3],
) -> Result<Gap, Damage> {
    let details = parse_fields(details)?;
    let other = stored(&details, GAP_SENSOR).and_then(Value::as_text);
    Ok(Gap {
        sensor: other.map_or_else(
            || known.series.sensor.clone(),
            |name| Cow::Owned(name.to_owned()),
        ),
        why: parse_why(utf8(why)?.unwrap_or_default()),
        text: utf8(text)?.unwrap_or_default().to_owned(),
        remedy: utf8(remedy)?.map(str::to_owned),
    })
}

/// One column of a row group.
fn read<T: DataType>(
    group: &dyn RowGroupReader,
    column: Column,
    n: usize,
) -> Result<Vec<Option<T::T>>, Damage> {
    read_column::<T>(group, column as usize, column.is_nullable(), n)
}

/// The column at a place in a row group of `n` rows, none of which is null.
pub(crate) fn read_required<T: DataType>(
    group: &dyn RowGroupReader,
    at: usize,
    n: usize,
) -> Result<Vec<T::T>, Damage> {
    let reader = group.get_column_reader(at).map_err(malformed)?;
    let mut values = Vec::with_capacity(n);
    let read = get_typed_column_reader::<T>(reader).read_records(n, None, None, &mut values);
    read.map_err(malformed)?;
    if values.len() != n {
        return Err(malformed("a column is too short"));
    }
    Ok(values)
}

/// The column at a place in a row group of `n` rows.
pub(crate) fn read_column<T: DataType>(
    group: &dyn RowGroupReader,
    at: usize,
    is_nullable: bool,
    n: usize,
) -> Result<Vec<Option<T::T>>, Damage> {
    let reader = group.get_column_reader(at).map_err(malformed)?;
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let all = if is_nullable {
        let read = reader.read_records(n, Some(&mut levels), None, &mut values);
        read.map_err(malformed)?;
        levels.len() == n
    } else {
        let read = reader.read_records(n, None, None, &mut values);
        read.map_err(malformed)?;
        levels.resize(values.len(), 1);
        values.len() == n
    };
    if !all {
        return Err(malformed("a column is too short"));
    }
    let mut values = values.into_iter();
    Ok(levels
        .into_iter()
        .map(|level| (level == 1).then(|| values.next()).flatten())
        .collect())
}
