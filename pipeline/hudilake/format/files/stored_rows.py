"""Rows as files store them: the meta fields, then the columns in the order and the types of the table's schema."""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.avro_types import lost_field
from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD


def stored_rows(
    rows: pa.Table, schema: pa.Schema, instant: str, partition_path: str, file_id: str, first: int = 0
) -> pa.Table:
    """The rows of one file group as they are stored.

    Args:
        rows: ``_hoodie_record_key`` and columns of the schema.
        schema: the stored columns without the meta fields; one that ``rows`` lacks is null.
        instant: of the commit.
        partition_path, file_id: of the file group.
        first: the number of the first row among the rows that the commit stores in the file group.

    Raises as ``aligned_columns``.
    """
    count = rows.num_rows
    meta = [
        _constant(instant, count),
        sequence_numbers(instant, file_id, count, first),
        rows.column(RECORD_KEY_FIELD),
        _constant(partition_path, count),
        _constant(file_id, count),
    ]
    return pa.Table.from_arrays(meta + aligned_columns(rows, schema), schema=_file_schema(schema))


def aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table in the schema's columns, order and types. Raises UnsupportedError for values that do not fit."""
    return pa.Table.from_arrays(aligned_columns(table, schema), schema=schema)


def aligned_columns(table: pa.Table, schema: pa.Schema) -> list[pa.Array | pa.ChunkedArray]:
    """The table's columns in the schema's order and types; columns it lacks are null.

    Raises UnsupportedError for a column that the schema lacks, a value that its type cannot hold exactly, or nulls
    where the schema allows none.
    """
    names = set(table.column_names)
    if unknown := names - set(schema.names) - set(META_FIELDS):
        raise UnsupportedError(
            f"columns {sorted(unknown)} are not in the table's schema", do_next="commit a schema that has them first"
        )
    return [_aligned(table, field, field.name in names) for field in schema]


def _aligned(table: pa.Table, field: pa.Field, present: bool) -> pa.Array | pa.ChunkedArray:
    column = table.column(field.name) if present else pa.nulls(table.num_rows, field.type)
    if column.type != field.type:
        if (lost := lost_field(column.type, field.type)) is not None:
            raise UnsupportedError(
                f"column {field.name} has values with a field {lost}, which the table's schema lacks",
                do_next="commit a schema that has it first",
            )
        try:
            column = column.cast(field.type)
        except pa.ArrowException as error:
            raise UnsupportedError(
                f"column {field.name} cannot be stored as {field.type}: {error}",
                do_next="correct the value, or widen the column's type in the table",
            ) from error
    if not field.nullable and column.null_count:
        raise UnsupportedError(
            f"column {field.name} has nulls, which the table's schema forbids",
            do_next="give the column values, or make it nullable in the table",
        )
    return column


def sequence_numbers(instant: str, file_id: str, count: int, first: int = 0) -> pa.Array:
    """``_hoodie_commit_seqno`` of ``count`` rows: ``<instant>_<file group>_<n>``, n from ``first`` on, unique in the
    commit.

    The file group's number is a 64-bit digest of its id; Hudi has the number of the Spark task in its place.
    """
    digest = int.from_bytes(hashlib.blake2b(file_id.encode(), digest_size=8).digest(), "big")
    numbers = pa.array(np.arange(first, first + count, dtype=np.int64)).cast(pa.string())
    return pc.binary_join_element_wise(pa.scalar(f"{instant}_{digest}_"), numbers, "")


def _constant(value: str, count: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([value]))


@lru_cache(maxsize=256)
def _file_schema(arrow_schema: pa.Schema) -> pa.Schema:
    constant = pa.dictionary(pa.int32(), pa.string())
    types = [constant, pa.string(), pa.string(), constant, constant]
    return pa.schema([pa.field(n, t) for n, t in zip(META_FIELDS, types, strict=True)] + list(arrow_schema))
