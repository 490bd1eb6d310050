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
use sexton_model::record::Detail;

use crate::columns::Column;
use crate::crc::crc32c;
use crate::row::{Kind, Known, Row, Said, Series, parse_why};
use crate::seal::{CHECKSUMS, Checked, GAP_SENSOR, layout_crc};

/// More than a writer puts into a row group, by far.
const MAX_ROWS: i64 = 1 << 20;
const MAX_GROUP_BYTES: u64 = 64 << 20;
/// The footer of the largest segment is far smaller.
const MAX_FILE_BYTES: u64 = 4 << 30;

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

fn malformed(why: impl fmt::Display) -> Damage {
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
        let file = File::open(path)?;
        if file.metadata()?.len() > MAX_FILE_BYTES {
            return Err(malformed("it is far larger than any segment"));
        }
        let copy = file.try_clone()?;
        let reader = guarded(|| SerializedFileReader::new(copy).map_err(malformed))?;
        let fields = reader.metadata().file_metadata().schema_descr();
        let names: Vec<&str> = fields.columns().iter().map(|field| field.name()).collect();
        if names != Column::ALL.map(Column::name) {
            return Err(malformed("its columns are not those of a segment"));
        }
        let groups = guarded(|| groups(&reader))?;
        Ok(Self {
            file,
            reader,
            groups,
        })
    }

    /// The rows of one row group, by series.
    pub(crate) fn rows(&self, group: &Group) -> Result<Vec<Row>, Damage> {
        let length = usize::try_from(group.checked.end - group.start).map_err(malformed)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, group.start)?;
        if crc32c(0, &bytes) != group.checked.crc {
            return Err(malformed("its checksum does not fit"));
        }
        drop(bytes);
        guarded(|| read_group(&*self.reader.get_row_group(group.index).map_err(malformed)?))
    }
}

/// The library is not proof against every broken file.
fn guarded<T>(read: impl FnOnce() -> Result<T, Damage>) -> Result<T, Damage> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(malformed("the Parquet library gave up on it")))
}

fn groups(reader: &SerializedFileReader<File>) -> Result<Vec<Group>, Damage> {
    let checked = checked(reader.metadata().file_metadata())?;
    let groups = reader.metadata().row_groups();
    if checked.len() != groups.len() {
        return Err(malformed("its checksums do not fit its row groups"));
    }
    let mut start = 0;
    let mut found = Vec::new();
    for (index, (checked, group)) in checked.into_iter().zip(groups).enumerate() {
        if !is_plausible(group, start..checked.end) || layout_crc(group) != checked.layout_crc {
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

fn checked(footer: &FileMetaData) -> Result<Vec<Checked>, Damage> {
    let text = footer
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == CHECKSUMS))
        .and_then(|pair| pair.value.as_deref())
        .ok_or_else(|| malformed("it has no checksums"))?;
    let (crc, text) = text.split_once(' ').unwrap_or(("", text));
    if u32::from_str_radix(crc, 16) != Ok(crc32c(0, text.as_bytes())) {
        return Err(malformed("its checksums are damaged"));
    }
    serde_json::from_str(text).map_err(malformed)
}

fn is_plausible(group: &RowGroupMetaData, place: std::ops::Range<u64>) -> bool {
    (0..=MAX_ROWS).contains(&group.num_rows())
        && u64::try_from(group.total_byte_size()).is_ok_and(|bytes| bytes <= MAX_GROUP_BYTES)
        && place.start <= place.end
        && place.end - place.start <= MAX_GROUP_BYTES
        && group.num_columns() == Column::ALL.len()
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
            Kind::Event => Said::Details(parse_details(details[i].as_ref())?),
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

/// A JSON object of strings, in its order.
fn parse_details(bytes: Option<&ByteArray>) -> Result<Vec<Detail>, Damage> {
    struct Pairs(Vec<Detail>);
    struct Visitor;
    impl<'de> serde::de::Visitor<'de> for Visitor {
        type Value = Pairs;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of strings")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
            let mut pairs = Vec::new();
            while let Some((key, value)) = map.next_entry::<String, String>()? {
                pairs.push((Cow::Owned(key), value));
            }
            Ok(Pairs(pairs))
        }
    }
    impl<'de> serde::Deserialize<'de> for Pairs {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            from.deserialize_map(Visitor)
        }
    }
    let Some(text) = utf8(bytes)? else {
        return Ok(Vec::new());
    };
    let Pairs(pairs) = serde_json::from_str(text).map_err(malformed)?;
    Ok(pairs)
}

fn parse_gap(
    known: &Known,
    details: Option<&ByteArray>,
    [why, text, remedy]: [Option<&ByteArray>; 3],
) -> Result<Gap, Damage> {
    let details = parse_details(details)?;
    let other = details.into_iter().find(|(key, _)| key == GAP_SENSOR);
    Ok(Gap {
        sensor: other.map_or_else(|| known.series.sensor.clone(), |(_, name)| name.into()),
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
    let reader = group
        .get_column_reader(column as usize)
        .map_err(malformed)?;
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let all = if column.is_nullable() {
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
