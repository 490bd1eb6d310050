//! Writes a table as Parquet, column by column.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::error::LakeError;
use crate::table::{Cells, Table};

/// A report is never larger.
pub const MAX_REPORT_BYTES: usize = 64 << 10;

/// Rows of a row group.
const GROUP_ROWS: usize = 128 << 10;

/// The file of a table.
pub fn parquet_of(table: Table) -> Result<Vec<u8>, LakeError> {
    let n_rows = table.n_rows();
    let columns = table.finished();
    write(&columns, n_rows).map_err(LakeError::Write)
}

fn write(columns: &BTreeMap<String, Cells>, n_rows: usize) -> Result<Vec<u8>, ParquetError> {
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema(columns)?, Arc::new(properties()?))?;
    for start in (0..n_rows).step_by(GROUP_ROWS) {
        let rows = start..n_rows.min(start + GROUP_ROWS);
        let mut group = writer.next_row_group()?;
        for cells in columns.values() {
            let missing = || ParquetError::General("a column is missing".to_owned());
            let mut column = group.next_column()?.ok_or_else(missing)?;
            write_cells(&mut column, cells, rows.clone())?;
            column.close()?;
        }
        group.close()?;
    }
    writer.into_inner()
}

fn properties() -> Result<WriterProperties, ParquetError> {
    Ok(WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("sexton ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .build())
}

fn schema(columns: &BTreeMap<String, Cells>) -> Result<TypePtr, ParquetError> {
    let field = |(name, cells): (&String, &Cells)| {
        let (physical, logical) = match cells {
            Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cells::Number(_) => (Physical::DOUBLE, None),
            Cells::Time(_) => (
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
            ),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let table = Type::group_type_builder("reports").with_fields(fields);
    Ok(Arc::new(table.build()?))
}

fn write_cells(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &Cells,
    rows: Range<usize>,
) -> Result<(), ParquetError> {
    match cells {
        Cells::Number(cells) => write_typed::<DoubleType, _>(writer, &cells[rows], |cell| *cell),
        Cells::Time(cells) => write_typed::<Int64Type, _>(writer, &cells[rows], |cell| *cell),
        Cells::Text(cells) => {
            write_typed::<ByteArrayType, _>(writer, &cells[rows], |cell| ByteArray::from(&**cell))
        }
    }
}

fn write_typed<T: DataType, C>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &[Option<C>],
    value: impl Fn(&C) -> T::T,
) -> Result<(), ParquetError> {
    const AT_ONCE: usize = 4096;
    for cells in cells.chunks(AT_ONCE) {
        let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
        let values: Vec<T::T> = cells.iter().flatten().map(&value).collect();
        writer
            .typed::<T>()
            .write_batch(&values, Some(&levels), None)?;
    }
    Ok(())
}
