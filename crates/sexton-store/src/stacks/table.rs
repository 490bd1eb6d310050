//! The three tables of stacks, as Parquet has them.
//!
//! Texts stand in the rows: Parquet keeps each once in a row group, and nobody has to join
//! a table of names. Numbers are small and mostly repeat.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Numbers that repeat.
    Number,
    /// Numbers that are near the one before.
    Near,
    /// Numbers of 64 bits that are near the one before.
    LongNear,
    /// Numbers of 64 bits that repeat.
    Long,
    /// Numbers of 64 bits without a sign, that are near the one before.
    Address,
    /// Text that repeats.
    Text,
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    holds: Holds,
    pub(crate) is_nullable: bool,
}

const fn column(name: &'static str, holds: Holds) -> Column {
    Column {
        name,
        holds,
        is_nullable: false,
    }
}

const fn maybe(name: &'static str, holds: Holds) -> Column {
    Column {
        name,
        holds,
        is_nullable: true,
    }
}

pub(crate) static SAMPLES: [Column; 11] = [
    column("segment", Holds::Long),
    column("time_ns", Holds::LongNear),
    column("cpu", Holds::Number),
    column("pid", Holds::Number),
    column("tid", Holds::Number),
    column("comm", Holds::Text),
    maybe("cgroup", Holds::Text),
    column("state", Holds::Text),
    column("event", Holds::Text),
    column("weight", Holds::Long),
    maybe("stack", Holds::Number),
];

pub(crate) static STACKS: [Column; 4] = [
    column("segment", Holds::Long),
    column("stack", Holds::Near),
    maybe("caller", Holds::Near),
    column("frame", Holds::Near),
];

pub(crate) static FRAMES: [Column; 7] = [
    column("segment", Holds::Long),
    column("frame", Holds::Near),
    column("kind", Holds::Text),
    maybe("symbol", Holds::Text),
    maybe("module", Holds::Text),
    column("address", Holds::Address),
    column("is_inlined", Holds::Number),
];

impl Column {
    fn physical(self) -> Physical {
        match self.holds {
            Holds::Number | Holds::Near => Physical::INT32,
            Holds::Long | Holds::LongNear | Holds::Address => Physical::INT64,
            Holds::Text => Physical::BYTE_ARRAY,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        match self.holds {
            Holds::Text => Some(LogicalType::String),
            Holds::Address => Some(LogicalType::integer(64, false)),
            _ => None,
        }
    }

    fn schema(self) -> Result<Type, ParquetError> {
        let repetition = if self.is_nullable {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        Type::primitive_type_builder(self.name, self.physical())
            .with_repetition(repetition)
            .with_logical_type(self.logical())
            .build()
    }
}

pub(crate) fn schema(table: &str, columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let fields = columns
        .iter()
        .map(|column| column.schema().map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    let table = Type::group_type_builder(table).with_fields(fields);
    Ok(Arc::new(table.build()?))
}

pub(crate) fn properties(columns: &[Column]) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("sexton ", env!("CARGO_PKG_VERSION")).into())
        // Written once in many minutes, and half of it is names.
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(9)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for column in columns {
        let path = ColumnPath::from(column.name);
        if matches!(column.holds, Holds::Near | Holds::LongNear | Holds::Address) {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        if column.name == "time_ns" {
            // Readers skip row groups by these.
            properties = properties.set_column_statistics_enabled(path, EnabledStatistics::Chunk);
        }
    }
    Ok(properties.build())
}

/// The values of a column.
pub(crate) enum Values {
    Numbers(Vec<Option<i32>>),
    Longs(Vec<Option<i64>>),
    Texts(Vec<Option<ByteArray>>),
}

/// Writes one column of a row group.
pub(crate) fn write(
    writer: &mut SerializedColumnWriter<'_>,
    column: Column,
    values: Values,
) -> Result<(), ParquetError> {
    match values {
        Values::Numbers(values) => write_typed::<Int32Type>(writer, column, values),
        Values::Longs(values) => write_typed::<Int64Type>(writer, column, values),
        Values::Texts(values) => write_typed::<ByteArrayType>(writer, column, values),
    }
}

fn write_typed<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    column: Column,
    values: Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let levels = column.is_nullable.then_some(levels.as_slice());
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    writer.typed::<T>().write_batch(&values, levels, None)?;
    Ok(())
}
