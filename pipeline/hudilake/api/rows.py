"""Rows from anywhere: Arrow, pandas, polars, DuckDB or Python values become rows with a table's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from hudilake.api.exact import UnfitError, cast_exactly, check_value
from hudilake.errors import ConfigError
from hudilake.format.definition.avro_types import lost_field
from hudilake.wording import counted

#: A pyarrow Table, RecordBatch or RecordBatchReader; whatever has the Arrow PyCapsule interface (a frame of pandas or
#: polars, a relation of DuckDB); or a sequence of mappings, a row each.
Rows: TypeAlias = Any

_TYPES: Final = {
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
}


def schema_of(columns: Rows) -> pa.Schema:
    """The columns of a new table, each with the type that a table stores for it.

    Args:
        columns: an Arrow schema, whatever has the Arrow PyCapsule interface, or a sequence of mappings.

    Raises ConfigError for anything else.
    """
    if isinstance(columns, pa.Schema):
        schema = columns
    elif hasattr(columns, "__arrow_c_schema__"):
        schema = pa.schema(columns)
    else:
        schema = rows_of(columns).schema
    return pa.schema([pa.field(field.name, _stored(field.type), field.nullable) for field in schema])


def _stored(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _stored(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([_stored_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored(kind.key_type), _stored_field(kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(_stored_field(kind.value_field))
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if kind == pa.string_view():
        return pa.string()
    return _TYPES.get(kind, kind)


def _stored_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _stored(field.type), field.nullable)


def rows_of(rows: Rows, schema: pa.Schema | None = None) -> pa.Table:
    """Rows as an Arrow table; nothing is copied where the source has Arrow columns.

    ``schema``: of the table that they are for; it gives the types of Python values.

    Raises ConfigError for what holds no rows, for two columns of one name, and for values that do not fit.
    """
    try:
        table = _rows_of(rows, schema)
    except pa.ArrowInvalid as error:
        raise ConfigError(f"the rows cannot be read: {error}", do_next="give a table, or a list of dicts") from error
    if len(set(table.column_names)) < table.num_columns:
        raise ConfigError(
            f"two columns of the rows have the same name: {', '.join(table.column_names)}",
            do_next="give each column a name of its own",
        )
    return table


def _rows_of(rows: Rows, schema: pa.Schema | None) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if isinstance(rows, pa.RecordBatch) or hasattr(rows, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(rows)])
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if isinstance(rows, Sequence) and not isinstance(rows, (str, bytes)) and all(isinstance(r, dict) for r in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        if schema is None:
            return pa.Table.from_pylist(list(rows))
        return _converted(rows, [_typed(name, schema) for name in names])
    raise ConfigError(
        f"{type(rows).__name__} holds no rows",
        do_next="give an Arrow table, a frame with the Arrow PyCapsule interface (pandas, polars), or a list of dicts",
    )


def _typed(name: str, schema: pa.Schema) -> pa.Field:
    if name not in schema.names:
        raise _unknown([name], schema)
    return schema.field(name)


def _converted(rows: Sequence[Any], fields: Sequence[pa.Field]) -> pa.Table:
    name = ""
    try:
        for name, kind in ((field.name, field.type) for field in fields):
            for value in (row.get(name) for row in rows):
                check_value(value, kind)
                _check_fields(value, kind, name)
        return pa.Table.from_pylist(list(rows), pa.schema(fields))
    except UnfitError as error:
        raise ConfigError(
            f"a value of the column {name} does not fit: {error}", do_next="give values of the column's type"
        ) from error
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"a value does not fit its column: {error}", do_next="give values of the column's type"
        ) from error


def _check_fields(value: Any, kind: pa.DataType, path: str) -> None:  # noqa: ANN401 - any Python value
    """Raise ConfigError for a key of a mapping that the struct it becomes has no field for: Arrow drops it."""
    if pa.types.is_struct(kind) and isinstance(value, Mapping):
        fields = {field.name: field.type for field in kind}
        for name, inner in value.items():
            if name not in fields:
                raise _lost(path, f"{path}.{name}")
            _check_fields(inner, fields[name], f"{path}.{name}")
    elif pa.types.is_map(kind) and isinstance(value, Mapping | list):
        entries = value.items() if isinstance(value, Mapping) else value
        for _, inner in entries:
            _check_fields(inner, kind.item_type, path)
    elif pa.types.is_list(kind) and isinstance(value, list | tuple):
        for inner in value:
            _check_fields(inner, kind.value_type, path)


def _lost(column: str, field: str) -> ConfigError:
    return ConfigError(f"the column {column} has no field {field}", do_next="leave it out, or add it with Table.evolve")


def conformed(rows: pa.Table, schema: pa.Schema, needed: Sequence[str] = ()) -> pa.Table:
    """n rows with the columns of ``schema``, in its order and types; nullable columns that they lack are null.

    Args:
        rows: n rows.
        schema: of the result.
        needed: columns that the rows must have, without nulls.

    Raises ConfigError for a column that the schema lacks, one that the rows lack, nulls in a column that may have
    none, and values that do not fit.
    """
    if unknown := [name for name in rows.column_names if name not in schema.names]:
        raise _unknown(unknown, schema)
    columns = [_column(rows, field, field.name in needed or not field.nullable) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _column(rows: pa.Table, field: pa.Field, required: bool) -> pa.ChunkedArray | pa.Array:
    if field.name not in rows.column_names:
        if required:
            raise ConfigError(f"the rows lack the column {field.name}", do_next="give every row a value of it")
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(field.name)
    if (lost := lost_field(column.type, field.type, field.name)) is not None:
        raise _lost(field.name, lost)
    try:
        column = cast_exactly(column, field.type)
    except (pa.ArrowException, UnfitError) as error:
        raise ConfigError(
            f"the column {field.name} does not fit the type {field.type}: {error}",
            do_next="convert the values, or change the table's column with Table.evolve",
        ) from error
    if required and column.null_count:
        raise ConfigError(
            f"{counted(column.null_count, 'row', 'has', 'have')} no value of {field.name}",
            do_next="leave them out, or give them a value",
        )
    return column


def _unknown(names: Sequence[str], schema: pa.Schema) -> ConfigError:
    return ConfigError(
        f"the table has no columns {', '.join(names)}",
        do_next=f"use its columns ({', '.join(schema.names)}), or add new ones with Table.evolve",
    )
