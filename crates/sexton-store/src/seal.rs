//! Writes a sealed segment: one row group for each block of the open one, so that no
//! more than a block is in memory.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use sexton_model::fact::sexton::SEXTON_WALL_CLOCK_NS;
use sexton_model::payload::Value;

use crate::checked::CheckedWriter;
use crate::columns::{self, Column};
use crate::error::StoreError;
use crate::json;
use crate::ledger::Shared;
use crate::row::{Kind, Row, Said};

/// The detail that names the blind sensor, when another one speaks of it.
pub(crate) const GAP_SENSOR: &str = "sensor";

/// The wall clock against the clock of the recording, as it was last sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WallOffset(Option<i64>);

impl WallOffset {
    /// What the wall clock said at each of these moments, which are in the order of time.
    fn walk(&mut self, rows: &[Row]) -> Vec<Option<i64>> {
        rows.iter()
            .map(|row| {
                let at = time(row);
                if row.known.fact() == Some(&SEXTON_WALL_CLOCK_NS)
                    && let Said::Value(wall_ns) = row.said
                {
                    self.0 = Some((wall_ns as i64).saturating_sub(at));
                }
                self.0.map(|offset| at.saturating_add(offset))
            })
            .collect()
    }
}

/// A signed count lasts for 292 years after boot.
fn time(row: &Row) -> i64 {
    i64::try_from(row.at_ns).unwrap_or(i64::MAX)
}

/// A sealed segment in the making.
pub(crate) struct Sealer<'a> {
    file: CheckedWriter<'a>,
    wall: &'a mut WallOffset,
}

impl<'a> Sealer<'a> {
    pub(crate) fn new(
        ledger: &'a Shared,
        file: (&'a File, &'a Path),
        wall: &'a mut WallOffset,
    ) -> Result<Self, StoreError> {
        let file = CheckedWriter::new(ledger, file, columns::schema(), columns::properties())?;
        Ok(Self { file, wall })
    }

    /// Adds the rows of one block.
    pub(crate) fn block(&mut self, mut rows: Vec<Row>) -> Result<(), StoreError> {
        crate::row::sort_by_time(&mut rows);
        let wall = self.wall.walk(&rows);
        let mut rows: Vec<(Row, Option<i64>)> = rows.into_iter().zip(wall).collect();
        // Stable, so each series stays in the order of time.
        rows.sort_by(|(a, _), (b, _)| {
            if Arc::ptr_eq(&a.known, &b.known) {
                std::cmp::Ordering::Equal
            } else {
                a.known.series.cmp(&b.known.series)
            }
        });
        let times = || rows.iter().map(|(row, _)| time(row).cast_unsigned());
        let span_ns = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        self.file.group(span_ns, |group| {
            for column in Column::ALL {
                let missing = || ParquetError::General(format!("no column {}", column.name()));
                let mut writer = group.next_column()?.ok_or_else(missing)?;
                write_column(&mut writer, column, &rows)?;
                writer.close()?;
            }
            Ok(())
        })
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        self.file.finish()
    }
}

fn write_column(
    writer: &mut SerializedColumnWriter<'_>,
    column: Column,
    rows: &[(Row, Option<i64>)],
) -> Result<(), ParquetError> {
    match column {
        Column::TimeNs => write::<Int64Type>(writer, column, rows, |row, _| Some(time(row))),
        Column::WallNs => write::<Int64Type>(writer, column, rows, |_, wall| wall),
        Column::Value => write::<DoubleType>(writer, column, rows, |row, _| match row.said {
            Said::Value(value) => Some(value),
            _ => None,
        }),
        _ => {
            let mut last: Option<(String, ByteArray)> = None;
            write::<ByteArrayType>(writer, column, rows, |row, _| {
                let text = text(column, row)?;
                // Rows are sorted by series: mostly it is the text of the row before.
                if let Some((known, bytes)) = &last
                    && *known == text
                {
                    return Some(bytes.clone());
                }
                let bytes = ByteArray::from(&*text);
                last = Some((text.into_owned(), bytes.clone()));
                Some(bytes)
            })
        }
    }
}

fn write<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    column: Column,
    rows: &[(Row, Option<i64>)],
    mut value: impl FnMut(&Row, Option<i64>) -> Option<T::T>,
) -> Result<(), ParquetError> {
    const AT_ONCE: usize = 4096;
    for rows in rows.chunks(AT_ONCE) {
        let values: Vec<Option<T::T>> = rows.iter().map(|(row, wall)| value(row, *wall)).collect();
        let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let levels = column.is_nullable().then_some(levels.as_slice());
        let values: Vec<T::T> = values.into_iter().flatten().collect();
        writer.typed::<T>().write_batch(&values, levels, None)?;
    }
    Ok(())
}

fn text(column: Column, row: &Row) -> Option<std::borrow::Cow<'_, str>> {
    let series = &row.known.series;
    let gap = match &row.said {
        Said::Gap(gap) => Some(gap),
        _ => None,
    };
    let said = |text: &'_ str| !text.is_empty();
    match column {
        Column::Sensor => Some((&*series.sensor).into()),
        Column::Kind => Some(series.kind.name().into()),
        Column::SubjectKind => Some((&*series.subject_kind).into()),
        Column::Subject => Some((&*series.subject).into()),
        Column::Fact => said(&series.fact).then(|| (&*series.fact).into()),
        Column::Unit => said(&series.unit).then(|| (&*series.unit).into()),
        Column::Details => details(row).map(Into::into),
        Column::GapWhy => gap.map(|gap| gap.why.to_string().into()),
        Column::GapText => gap.map(|gap| gap.text.as_str().into()),
        Column::GapRemedy => gap.and_then(|gap| gap.remedy.as_deref()).map(Into::into),
        Column::TimeNs | Column::WallNs | Column::Value => None,
    }
}

fn details(row: &Row) -> Option<String> {
    match (&row.said, row.known.series.kind) {
        (Said::Fields(fields), Kind::Event) => Some(json::object(fields)),
        (Said::Gap(gap), _) if gap.sensor != row.known.series.sensor => {
            Some(json::object(&vec![(
                GAP_SENSOR.into(),
                Value::Text(gap.sensor.clone().into_owned()),
            )]))
        }
        _ => None,
    }
}
