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
    /// Numbers of which many come once: a dictionary of them would be as long as they are.
    Passing,
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
    /// Text of which most comes once, next to text that is much like it.
    Name,
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
    column("pid", Holds::Passing),
    column("tid", Holds::Passing),
    column("comm", Holds::Text),
    maybe("cgroup", Holds::Text),
    column("state", Holds::Text),
    column("event", Holds::Text),
    column("weight", Holds::Long),
    maybe("stack", Holds::Near),
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
    maybe("symbol", Holds::Name),
    maybe("module", Holds::Text),
    column("address", Holds::Address),
    column("is_inlined", Holds::Number),
];

impl Column {
    fn physical(self) -> Physical {
        match self.holds {
            Holds::Number | Holds::Passing | Holds::Near => Physical::INT32,
            Holds::Long | Holds::LongNear | Holds::Address => Physical::INT64,
            Holds::Text | Holds::Name => Physical::BYTE_ARRAY,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        match self.holds {
            Holds::Text | Holds::Name => Some(LogicalType::String),
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

/// How hard zstd tries. Chosen: above this it takes five times as long for a hundredth.
const LEVEL: i32 = 15;

pub(crate) fn properties(columns: &[Column]) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("sexton ", env!("CARGO_PKG_VERSION")).into())
        // Written once in many minutes, and much of it is names.
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for column in columns {
        let path = ColumnPath::from(column.name);
        let encoding = match column.holds {
            Holds::Near | Holds::LongNear | Holds::Address => Some(Encoding::DELTA_BINARY_PACKED),
            Holds::Passing | Holds::Name => Some(Encoding::PLAIN),
            Holds::Number | Holds::Long | Holds::Text => None,
        };
        if let Some(encoding) = encoding {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), encoding);
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
