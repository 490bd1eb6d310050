//! Reads files of the lake: outside bytes, so nothing in them is believed.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use sexton_store::{guard, open_outside};

use crate::error::LakeError;

/// No text is longer; the rest is cut.
const MAX_TEXT: usize = 1024;
/// More columns than any report has.
const MAX_COLUMNS: usize = 4096;
/// Values that are decoded at once.
const AT_ONCE: usize = 8192;

/// A file of the lake that is being read.
pub struct File {
    reader: SerializedFileReader<Bytes>,
    columns: HashMap<String, (usize, Physical)>,
    /// Columns that say that they are times, and in what.
    units: HashMap<String, TimeUnit>,
}

/// The texts of one column of a row group: numbers into a dictionary.
#[derive(Debug, Clone, Default)]
pub struct TextColumn {
    /// What the numbers mean.
    pub values: Vec<Arc<str>>,
    /// A number for each row; `u32::MAX` if there is no text.
    pub ids: Vec<u32>,
}

impl TextColumn {
    /// A row without a text.
    pub const NONE: u32 = u32::MAX;

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The text of a row.
    pub fn get(&self, row: usize) -> Option<&str> {
        let id = *self.ids.get(row)?;
        self.values.get(id as usize).map(|text| &**text)
    }
}

impl File {
    /// Opens a file.
    pub fn open(bytes: Bytes) -> Result<Self, LakeError> {
        let reader = open_outside(&bytes).map_err(LakeError::Malformed)?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        if schema.num_columns() > MAX_COLUMNS {
            return Err(LakeError::Malformed("it has too many columns".to_owned()));
        }
        // A nested column is none of ours, and neither is one of another type.
        let flat = schema.columns().iter().enumerate();
        let flat = flat.filter(|(_, column)| {
            column.path().parts().len() == 1
                && column.max_rep_level() == 0
                && column.max_def_level() <= 1
        });
        let mut columns = HashMap::new();
        let mut units = HashMap::new();
        for (at, column) in flat {
            let name = column.name().to_owned();
            units.extend(unit_of(column).map(|unit| (name.clone(), unit)));
            columns.insert(name, (at, column.physical_type()));
        }
        Ok(Self {
            reader,
            columns,
            units,
        })
    }

    /// How many row groups it has.
    pub fn n_groups(&self) -> usize {
        self.reader.metadata().num_row_groups()
    }

    /// How many rows a row group has.
    pub fn n_rows(&self, group: usize) -> usize {
        usize::try_from(self.reader.metadata().row_group(group).num_rows()).unwrap_or(0)
    }

    /// The names of its columns of texts.
    pub fn text_columns(&self) -> impl Iterator<Item = &str> {
        self.of_type(Physical::BYTE_ARRAY)
    }

    /// The names of its columns of numbers.
    pub fn number_columns(&self) -> impl Iterator<Item = &str> {
        self.of_type(Physical::DOUBLE)
    }

    /// The names of its columns of times.
    pub fn time_columns(&self) -> impl Iterator<Item = &str> {
        self.of_type(Physical::INT64)
    }

    /// Whether a column says that it is a time; else it may be any whole number.
    pub fn is_time(&self, name: &str) -> bool {
        self.units.contains_key(name)
    }

    fn of_type(&self, wanted: Physical) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter();
        columns.filter_map(move |(name, (_, kind))| (*kind == wanted).then_some(&**name))
    }

    /// The texts of a column; none at all if the file has no such column.
    pub fn texts(&self, group: usize, name: &str) -> Result<TextColumn, LakeError> {
        let mut column = TextColumn::default();
        let mut by_bytes: HashMap<Vec<u8>, u32> = HashMap::new();
        // A dictionary hands out the same bytes again: mostly their address tells them.
        let mut by_place: HashMap<(usize, usize), u32> = HashMap::new();
        let mut kept: Vec<ByteArray> = Vec::new();
        let mut last = ((0, usize::MAX), 0);
        let TextColumn { values, ids } = &mut column;
        ids.reserve(self.n_rows(group));
        self.each::<ByteArrayType>(group, name, Physical::BYTE_ARRAY, |cell| {
            let Some(bytes) = cell else {
                ids.push(TextColumn::NONE);
                return;
            };
            let place = (bytes.data().as_ptr() as usize, bytes.len());
            if place == last.0 {
                ids.push(last.1);
                return;
            }
            let id = *by_place.entry(place).or_insert_with(|| {
                let cut = &bytes.data()[..bytes.len().min(MAX_TEXT)];
                // As long as it is kept, no other text can be at its place.
                kept.push(bytes.clone());
                *by_bytes.entry(cut.to_vec()).or_insert_with(|| {
                    values.push(String::from_utf8_lossy(cut).into());
                    (values.len() - 1) as u32
                })
            });
            last = (place, id);
            ids.push(id);
        })?;
        Ok(column)
    }

    /// The numbers of a column; `NaN` where there is none.
    pub fn numbers(&self, group: usize, name: &str) -> Result<Vec<f64>, LakeError> {
        let mut numbers = Vec::with_capacity(self.n_rows(group));
        self.each::<DoubleType>(group, name, Physical::DOUBLE, |cell| {
            numbers.push(cell.copied().filter(|n| n.is_finite()).unwrap_or(f64::NAN));
        })?;
        Ok(numbers)
    }

    /// The times of a column, in microseconds since 1970. Other writers have other units.
    pub fn times(&self, group: usize, name: &str) -> Result<Vec<Option<i64>>, LakeError> {
        let mut times = Vec::with_capacity(self.n_rows(group));
        let unit = self.units.get(name);
        self.each::<Int64Type>(group, name, Physical::INT64, |cell| {
            times.push(cell.map(|time| match unit {
                Some(TimeUnit::MILLIS) => time.saturating_mul(1000),
                Some(TimeUnit::NANOS) => time.div_euclid(1000),
                _ => *time,
            }));
        })?;
        Ok(times)
    }

    /// Calls `take` for each row of a column, in order.
    fn each<T: DataType>(
        &self,
        group: usize,
        name: &str,
        wanted: Physical,
        mut take: impl FnMut(Option<&T::T>),
    ) -> Result<(), LakeError> {
        let n_rows = self.n_rows(group);
        let Some((at, _)) = self.columns.get(name).filter(|(_, kind)| *kind == wanted) else {
            (0..n_rows).for_each(|_| take(None));
            return Ok(());
        };
        let read = || -> Result<usize, String> {
            let text = |error: parquet::errors::ParquetError| error.to_string();
            let group = self.reader.get_row_group(group).map_err(text)?;
            let optional = group.metadata().column(*at).column_descr().max_def_level() > 0;
            let reader = group.get_column_reader(*at).map_err(text)?;
            let mut reader = get_typed_column_reader::<T>(reader);
            let (mut values, mut levels) = (Vec::new(), Vec::new());
            let mut n_read = 0;
            while n_read < n_rows {
                values.clear();
                levels.clear();
                let at_once = AT_ONCE.min(n_rows - n_read);
                let levels_of = optional.then_some(&mut levels);
                let (n, _, _) = reader
                    .read_records(at_once, levels_of, None, &mut values)
                    .map_err(text)?;
                if n == 0 {
                    break;
                }
                let mut values = values.iter();
                if optional {
                    levels
                        .iter()
                        .for_each(|level| take(if *level > 0 { values.next() } else { None }));
                } else {
                    values.for_each(|value| take(Some(value)));
                }
                n_read += n;
            }
            Ok(n_read)
        };
        match guard(read) {
            Ok(n) if n == n_rows => Ok(()),
            Ok(n) => Err(LakeError::Malformed(format!(
                "column {name} has {n} of {n_rows} rows"
            ))),
            Err(why) => Err(LakeError::Malformed(format!("column {name}: {why}"))),
        }
    }
}

/// The unit of a column of times.
fn unit_of(column: &ColumnDescriptor) -> Option<TimeUnit> {
    match (column.logical_type_ref(), column.converted_type()) {
        (Some(LogicalType::Timestamp(time)), _) => Some(time.unit),
        (None, ConvertedType::TIMESTAMP_MILLIS) => Some(TimeUnit::MILLIS),
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(TimeUnit::MICROS),
        _ => None,
    }
}
