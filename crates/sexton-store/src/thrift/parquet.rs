//! The structures of Parquet that the library reads, with the types of their fields.
//!
//! Source: `parquet.thrift` of <https://github.com/apache/parquet-format>. Left out is what no
//! segment has: encryption, Bloom filters, places on the earth.

use super::Type::{Binary, Bool, Byte, I16, I32, I64, List, Structure};
use super::{Fields, Type};

/// At the end of a file.
pub(crate) static FILE_META_DATA: Fields = &[
    (1, I32),
    (2, List(&Structure(&SCHEMA_ELEMENT))),
    (3, I64),
    (4, List(&Structure(&ROW_GROUP))),
    (5, KEY_VALUES),
    (6, Binary),
    (7, List(&Structure(&COLUMN_ORDER))),
];

/// Before each page.
pub(crate) static PAGE_HEADER: Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, Structure(&DATA_PAGE)),
    (6, EMPTY),
    (7, Structure(&DICTIONARY_PAGE)),
    (8, Structure(&DATA_PAGE_V2)),
];

const EMPTY: Type = Structure(&NOTHING);
const KEY_VALUES: Type = List(&Structure(&KEY_VALUE));

static NOTHING: Fields = &[];

static KEY_VALUE: Fields = &[(1, Binary), (2, Binary)];

static SCHEMA_ELEMENT: Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, Binary),
    (5, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, Structure(&LOGICAL_TYPE)),
];

static LOGICAL_TYPE: Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Structure(&DECIMAL)),
    (6, EMPTY),
    (7, Structure(&TIME)),
    (8, Structure(&TIME)),
    (10, Structure(&INTEGER)),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
];

static DECIMAL: Fields = &[(1, I32), (2, I32)];

static TIME: Fields = &[(1, Bool), (2, Structure(&TIME_UNIT))];

static TIME_UNIT: Fields = &[(1, EMPTY), (2, EMPTY), (3, EMPTY)];

static INTEGER: Fields = &[(1, Byte), (2, Bool)];

static ROW_GROUP: Fields = &[
    (1, List(&Structure(&COLUMN_CHUNK))),
    (2, I64),
    (3, I64),
    (4, List(&Structure(&SORTING_COLUMN))),
    (5, I64),
    (6, I64),
    (7, I16),
];

static SORTING_COLUMN: Fields = &[(1, I32), (2, Bool), (3, Bool)];

static COLUMN_CHUNK: Fields = &[
    (1, Binary),
    (2, I64),
    (3, Structure(&COLUMN_META_DATA)),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
];

static COLUMN_META_DATA: Fields = &[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Binary)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, KEY_VALUES),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, Structure(&STATISTICS)),
    (13, List(&Structure(&PAGE_ENCODING_STATS))),
    (16, Structure(&SIZE_STATISTICS)),
];

static STATISTICS: Fields = &[
    (1, Binary),
    (2, Binary),
    (3, I64),
    (4, I64),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
];

static PAGE_ENCODING_STATS: Fields = &[(1, I32), (2, I32), (3, I32)];

static SIZE_STATISTICS: Fields = &[(1, I64), (2, List(&I64)), (3, List(&I64))];

static COLUMN_ORDER: Fields = &[(1, EMPTY), (2, EMPTY)];

static DATA_PAGE: Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, Structure(&STATISTICS)),
];

static DICTIONARY_PAGE: Fields = &[(1, I32), (2, I32), (3, Bool)];

static DATA_PAGE_V2: Fields = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, I32),
    (6, I32),
    (7, Bool),
    (8, Structure(&STATISTICS)),
];
