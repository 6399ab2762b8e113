"""Cells of HBase-like stores as rows: their columns and kinds. ``binlake.decode.types.cell_text`` has the text form."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import pyarrow as pa

from binlake.decode.changes import TableSchema

ROW: Final = "row"
FAMILY: Final = "family"
QUALIFIER: Final = "qualifier"
TIMESTAMP: Final = "timestamp"
KIND: Final = "kind"
VALUE: Final = "value"
WRITTEN: Final = "written"

#: The record key of a cell. The first of them decides the bucket.
CELL_KEY: Final = (ROW, FAMILY, QUALIFIER, TIMESTAMP, KIND)

#: The columns of a table of cells. ``_binlake_order`` beside them is the sequence id.
CELL_FIELDS: Final = (
    pa.field(ROW, pa.string(), nullable=False),  # text form
    pa.field(FAMILY, pa.string(), nullable=False),
    pa.field(QUALIFIER, pa.string(), nullable=False),  # text form; of a family's marker empty
    pa.field(TIMESTAMP, pa.int64(), nullable=False),  # the store's unit: HBase milliseconds, Bigtable microseconds
    pa.field(KIND, pa.string(), nullable=False),  # CellKind
    pa.field(VALUE, pa.binary()),  # null for markers
    pa.field(WRITTEN, pa.timestamp("us", tz="UTC")),  # when the store logged the change; null if unknown
)
CELL_SCHEMA: Final = pa.schema(CELL_FIELDS)
#: How the columns of a table of cells come (``Column.wire``).
CELL_WIRE: Final = "cell"


class CellKind(StrEnum):
    """What a cell is: a value or one of the delete markers (HBase's ``Cell.Type``).

    At a timestamp T, ``Delete`` masks the version T of a column, ``DeleteColumn`` all its versions up to T,
    ``DeleteFamily`` all versions up to T of all columns of a family, ``DeleteFamilyVersion`` their versions T.
    ``DeleteRange:F`` (Bigtable) masks the versions from F, inclusive, to T, exclusive, of a column; the kind's text
    holds F, so that two ranges with one end are two cells.
    """

    PUT = "Put"
    DELETE = "Delete"
    DELETE_COLUMN = "DeleteColumn"
    DELETE_FAMILY = "DeleteFamily"
    DELETE_FAMILY_VERSION = "DeleteFamilyVersion"
    DELETE_RANGE = "DeleteRange"


def is_table_of_cells(schema: TableSchema) -> bool:
    """Whether the rows of a source table are cells."""
    return bool(schema.columns) and all(column.wire == CELL_WIRE for column in schema.columns)
