//! The one flat table that every sealed segment is.
//!
//! `details` is a JSON object in a string column, not a Parquet map: `pandas` shows a map
//! as a list of pairs, and a string can share the dictionary. DuckDB reads it with
//! `details ->> 'exit_code'`, pandas with `json.loads`.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// The columns, in their order in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    TimeNs,
    WallNs,
    Sensor,
    Kind,
    SubjectKind,
    Subject,
    Fact,
    Unit,
    Value,
    Details,
    GapWhy,
    GapText,
    GapRemedy,
}

impl Column {
    pub(crate) const ALL: [Column; 13] = [
        Column::TimeNs,
        Column::WallNs,
        Column::Sensor,
        Column::Kind,
        Column::SubjectKind,
        Column::Subject,
        Column::Fact,
        Column::Unit,
        Column::Value,
        Column::Details,
        Column::GapWhy,
        Column::GapText,
        Column::GapRemedy,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Column::TimeNs => "time_ns",
            Column::WallNs => "wall_ns",
            Column::Sensor => "sensor",
            Column::Kind => "kind",
            Column::SubjectKind => "subject_kind",
            Column::Subject => "subject",
            Column::Fact => "fact",
            Column::Unit => "unit",
            Column::Value => "value",
            Column::Details => "details",
            Column::GapWhy => "gap_why",
            Column::GapText => "gap_text",
            Column::GapRemedy => "gap_remedy",
        }
    }

    fn physical(self) -> Physical {
        match self {
            Column::TimeNs | Column::WallNs => Physical::INT64,
            Column::Value => Physical::DOUBLE,
            _ => Physical::BYTE_ARRAY,
        }
    }

    pub(crate) fn is_nullable(self) -> bool {
        !matches!(
            self,
            Column::TimeNs | Column::Sensor | Column::Kind | Column::SubjectKind | Column::Subject
        )
    }

    fn schema(self) -> Result<Type, ParquetError> {
        let repetition = if self.is_nullable() {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let string = self.physical() == Physical::BYTE_ARRAY;
        Type::primitive_type_builder(self.name(), self.physical())
            .with_repetition(repetition)
            .with_logical_type(string.then_some(LogicalType::String))
            .build()
    }
}

pub(crate) fn schema() -> Result<TypePtr, ParquetError> {
    let fields = Column::ALL
        .into_iter()
        .map(|column| column.schema().map(Arc::new))
        .collect::<Result<Vec<_>, _>>()?;
    let table = Type::group_type_builder("records").with_fields(fields);
    Ok(Arc::new(table.build()?))
}

pub(crate) fn properties() -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("sexton ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true);
    for column in [Column::TimeNs, Column::WallNs] {
        let path = ColumnPath::from(column.name());
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
            // Readers skip row groups by these.
            .set_column_statistics_enabled(path, EnabledStatistics::Chunk);
    }
    Ok(properties.build())
}
